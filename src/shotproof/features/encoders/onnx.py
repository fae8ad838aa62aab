"""Any exported model of images or sounds, with its preprocessing stated: in a small file beside it, or as options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from shotproof.core.errors import InputError, MissingExtra, UnknownName, did_you_mean, first_line
from shotproof.core.options import option
from shotproof.core.storage.files import file_sha256, path_exists, read_toml, require_file
from shotproof.features.encoders.onnx_sound import (
    BANDS_FIRST,
    FRONT_ENDS,
    INPUTS,
    SPECTROGRAM,
    TIME_FIRST,
    WAVEFORM,
    ClipPreparation,
    clip_preparation,
)
from shotproof.features.encoders.pretrained_network import LONGEST_CLIP, NetworkEncoder
from shotproof.media.clip import RATES
from shotproof.media.images import REDUCED, open_image

if TYPE_CHECKING:
    import torch

SIDE = 224
LONGEST_SIDE = 8_192  # pixels
SCALE = 1 / 255
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's
NUMBERS = {2: "two", 3: "three", 4: "four"}
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
STATED = (
    "input",
    "size",
    "scale",
    "mean",
    "std",
    "layout",
    "output",
    "front_end",
    "rate",
    "seconds",
)  # in the file too
LAYOUTS = {"image": ("nchw", "nhwc"), WAVEFORM: (), SPECTROGRAM: (TIME_FIRST, BANDS_FIRST)}

Triple = tuple[float, float, float]


class Preprocessing(NamedTuple):
    """All that is stated or told by the model: (x * scale - mean) / std of an image of this size, and the output."""

    size: list[int]
    scale: float
    mean: list[float]
    std: list[float]
    layout: str
    output: str


@dataclass(frozen=True)
class Onnx(NetworkEncoder):
    """A model in ONNX that takes one batch of RGB images, of clips' samples, or of spectrograms.

    Without `input`, two axes are samples, four axes images, and a `front_end` makes spectrograms. The whole image is
    resized (bicubic, no crop), and its values become (x * `scale` - `mean`) / `std`. A file MODEL.onnx.toml beside
    MODEL.onnx may state the same options; those given here override it. Without `output`, it is the first with two
    axes, else the first with four, averaged over height and width; with `maps`, the first with four axes, as it is.

    Of sounds, an output of three axes, tokens of time, is averaged too, or with `maps` a row of locations. Spectrograms
    are made as the model's own code makes them, and cut or filled up with zeros to the length that the model takes.
    """

    about = "any exported model of images or sounds in ONNX, with its preprocessing stated (extra: onnx)"
    example = "onnx:model.onnx(size=224)"
    reduces = True

    path: Path = option(help="the model", argument=True, path=True)
    input: str | None = option(None, "what it takes; None: as its input's axes tell", choices=INPUTS)
    size: int | tuple[int, int] | None = option(
        None,
        f"a side, or height and width, in pixels; None: as the model's input says, else {SIDE}",
        least=1,
        most=LONGEST_SIDE,
    )
    scale: float | None = option(
        None, "what values are multiplied by first; None: 1/255 of images, 1 of sounds", above=0
    )
    mean: float | Triple | None = option(None, "one number, or one per channel; None: ImageNet's, or the front end's")
    std: float | Triple | None = option(
        None, "one number, or one per channel; None: ImageNet's, or the front end's", above=0
    )
    layout: str | None = option(
        None,
        "the order of axes, of images nchw or nhwc, of spectrograms tf or ft (time, bands); None: as the input says",
        choices=(*LAYOUTS["image"], *LAYOUTS[SPECTROGRAM]),
    )
    output: str | None = option(None, "the output to take, by its name")
    maps: bool = option(False, "local maps, the first output with four axes; of sounds, also with three")
    front_end: str | None = option(None, "what makes spectrograms", choices=FRONT_ENDS)
    rate: int | None = option(
        None, "samples per second of an input of samples; None: 16,000", least=RATES[0], most=RATES[-1]
    )
    seconds: float | None = option(
        None, "length of the clips; None: as an input of samples says, else 5", above=0, most=LONGEST_CLIP
    )

    def extras(self) -> Mapping[str, str]:
        """What runs the model."""
        return {"onnxruntime": "onnx"} | ({"soundfile": "sound"} if self.input in (WAVEFORM, SPECTROGRAM) else {})

    @cached_property
    def medium(self) -> str:  # type: ignore[override]
        """What its items are: `image` or `sound`."""
        return "sound" if isinstance(self.preprocessing, ClipPreparation) else "image"

    @cached_property
    def preprocessing(self) -> Preprocessing | ClipPreparation:
        """What is stated, here or beside the model, and what the model's input and outputs say."""
        given = {key: value for key in STATED if (value := getattr(self, key)) is not None}
        stated = {**dict.fromkeys(STATED), **self._sidecar(), **given}
        shape = self._input.shape
        kind = stated["input"] or self._kind_of(shape)
        self._check_stated(kind, stated)
        if kind != "image":
            output = self._checked_output(stated["output"], (2, 3, 4))
            return clip_preparation(kind, stated, [*map(_fixed, shape[1:])], output, f"model {self.path}")
        layout = stated["layout"] or self._layout_of(shape)
        own = [_fixed(axis) or SIDE for axis in (shape[2:] if layout == "nchw" else shape[1:3])]
        if stated["size"] is None and max(own) > LONGEST_SIDE:
            raise InputError(
                f"model {self.path}: expected images of at most {LONGEST_SIDE:,} pixels a side, found {own}"
            )
        return Preprocessing(
            own if stated["size"] is None else _repeated(stated["size"], 2),
            SCALE if stated["scale"] is None else stated["scale"],
            _repeated(MEAN if stated["mean"] is None else stated["mean"], 3),
            _repeated(STD if stated["std"] is None else stated["std"], 3),
            layout,
            self._checked_output(stated["output"], (2, 4)),
        )

    def __getstate__(self) -> dict[str, Any]:
        # Processes that decode images need not open the model for what was read already.
        read = {key: value for key, value in vars(self).items() if key == "preprocessing"}
        return {**super().__getstate__(), **read}

    @cached_property
    def fingerprint(self) -> str:
        """Return digest of the file and of weights kept beside it, preprocessing, output."""
        # Exporters put large weights into MODEL.onnx.data or MODEL.onnx_data.
        files = [self.path, *(self.path.with_name(f"{self.path.name}{end}") for end in (".data", "_data"))]
        preprocessing = [*self.preprocessing, *([True] if self.maps else [])]  # first, as it says what is wrong
        digests = [file_sha256(path) for path in files if path.is_file()]
        decoded = "" if isinstance(self.preprocessing, ClipPreparation) else f" {REDUCED}"
        return f"onnx sha256={','.join(digests)}{decoded} {preprocessing}"

    @cached_property
    def network(self) -> Any:
        """Return the session that runs the model."""
        return self._session("CPUExecutionProvider")

    def load(self, path: Any) -> npt.NDArray[np.float32]:
        """Return the image as the model wants it, [3, height, width] or [height, width, 3]; of sounds, the clip."""
        if isinstance(self.preprocessing, ClipPreparation):
            return self.preprocessing.prepared(path)
        (height, width), scale, *moments, layout, _ = self.preprocessing
        image = open_image(path, side=max(height, width)).resize((width, height), Image.Resampling.BICUBIC)
        mean, std = np.array(moments, dtype=np.float32)
        normalized: npt.NDArray[np.float32] = (np.asarray(image, np.float32) * np.float32(scale) - mean) / std
        return normalized if layout == "nhwc" else np.ascontiguousarray(normalized.transpose(2, 0, 1))

    def move(self, device: torch.device) -> torch.device:
        """Run on the GPU where the device is one and this onnxruntime can; the batches stay in main memory."""
        import onnxruntime
        import torch

        if device.type == "cuda" and "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            vars(self)["network"] = self._session("CUDAExecutionProvider")
        return torch.device("cpu")

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Images or clips, [b, ...], to features, [b, d], or maps, [b, d, h, w]."""
        import torch

        images = batch.numpy().astype(TYPES[self._input.type])
        # A model exported for a fixed batch gets just that, the last one filled up.
        size = _fixed(self._input.shape[0]) or len(images)
        padded = np.concatenate([images, np.repeat(images[-1:], -len(images) % size, axis=0)])
        outputs = [self._run(padded[start : start + size]) for start in range(0, len(padded), size)]
        values = np.concatenate(outputs)[: len(images)]
        if values.ndim == 3 and self.medium == "sound":  # tokens of time, [b, t, d]
            values = np.ascontiguousarray(values.transpose(0, 2, 1)[:, :, None])
        if self.medium == "sound":
            values = values.mean(axis=(2, 3)) if values.ndim == 4 and not self.maps else values
        elif self.maps and values.ndim == 4 and self.preprocessing.layout == "nhwc":
            values = values.transpose(0, 3, 1, 2)
        elif values.ndim == 4 and not self.maps:
            values = values.mean(axis=(2, 3) if self.preprocessing.layout == "nchw" else (1, 2))
        return torch.from_numpy(values)

    def _run(self, images: npt.NDArray[Any]) -> npt.NDArray[Any]:
        try:
            values: npt.NDArray[Any] = self.network.run([self.preprocessing.output], {self._input.name: images})[0]
        except _runtime_errors() as error:
            raise InputError(f"model {self.path} cannot be run on {list(images.shape)}: {first_line(error)}") from error
        return values

    @property
    def _input(self) -> Any:
        inputs, _ = self._nodes
        if len(inputs) != 1 or len(inputs[0].shape) not in (2, 3, 4) or inputs[0].type not in TYPES:
            found = ", ".join(f"{node.name} {node.type} {node.shape}" for node in inputs)
            raise InputError(
                f"model {self.path}: expected one input of floats, images of four axes or sounds of two to four, "
                f"found {found}"
            )
        return inputs[0]

    @property
    def _nodes(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the model's inputs and outputs, whose names are text."""
        try:
            nodes = self.network.get_inputs(), self.network.get_outputs()
            for node in (*nodes[0], *nodes[1]):
                _ = node.name, node.type, node.shape
        except UnicodeDecodeError as error:
            raise InputError(f"model {self.path}: the name of an input or output is not text in UTF-8") from error
        return nodes

    def _session(self, provider: str) -> Any:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtra("encoder 'onnx'", "onnx") from error
        require_file(self.path, f"model {self.path}")
        try:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1  # batches run side by side, each on one thread
            return onnxruntime.InferenceSession(self.path, options, providers=[provider])
        except _runtime_errors() as error:
            raise InputError(f"model {self.path} cannot be read as ONNX: {first_line(error)}") from error

    def _sidecar(self) -> dict[str, Any]:
        """What MODEL.onnx.toml states, if there is one."""
        path = self.path.with_name(f"{self.path.name}.toml")
        if not path_exists(path):
            return {}
        stated = read_toml(path, str(path))
        rules = {option.name: option for option in self.options() if option.name in STATED}
        for key in stated:
            if key not in rules:
                raise InputError(f"{path} has an unknown key '{key}'{did_you_mean(key, rules)}")
        try:
            return {key: rules[key].check(value) for key, value in stated.items()}
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def _kind_of(self, shape: Sequence[Any]) -> str:
        """What the model takes, by the axes of its input."""
        if len(shape) == 2:
            return WAVEFORM
        if self.front_end is not None or self._sidecar().get("front_end") is not None:
            return SPECTROGRAM
        if len(shape) == 4 and 1 not in (shape[1], shape[3]):
            return "image"
        raise InputError(f"model {self.path}: its input {shape} does not tell what it takes: give input or front_end")

    def _check_stated(self, kind: str, stated: Mapping[str, Any]) -> None:
        """Refuse what does not go with the kind of input."""
        if stated["layout"] is not None and stated["layout"] not in LAYOUTS[kind]:
            expected = " or ".join(LAYOUTS[kind]) or "none"
            raise InputError(f"model {self.path}: layout of {kind}: expected {expected}, found '{stated['layout']}'")
        if kind == "image":
            if len(self._input.shape) != 4:
                raise InputError(
                    f"model {self.path}: expected an input of images, four axes, found {self._input.shape}"
                )
            for key in ("front_end", "rate", "seconds"):
                if stated[key] is not None:
                    raise InputError(f"model {self.path}: {key} is of sounds, and the model takes images")

    def _layout_of(self, shape: Sequence[Any]) -> str:
        if 3 not in (shape[1], shape[3]):
            raise InputError(f"model {self.path}: its input {shape} does not tell where the channels are: give layout")
        return "nchw" if shape[1] == 3 else "nhwc"

    def _checked_output(self, output: Any, axes: tuple[int, ...]) -> str:
        outputs = {node.name: len(node.shape or ()) for node in self._nodes[1]}
        if output is not None and output not in outputs:
            raise UnknownName(f"output of model {self.path}", str(output), outputs)
        axes = tuple(count for count in axes if count > 2 or not self.maps)
        usable = [output] if output else sorted((n for n in outputs if outputs[n] in axes), key=outputs.__getitem__)
        if not usable:
            wanted = f"{' or '.join(NUMBERS[count] for count in axes)} axes{', a map' if self.maps else ''}"
            raise InputError(f"model {self.path} has no output with {wanted}: give output, one of {list(outputs)}")
        return str(usable[0])


def _repeated(value: Any, count: int) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value] * count


def _fixed(axis: Any) -> int | None:
    """Return the length of an axis of a model's input; None where it is free."""
    return axis if isinstance(axis, int) and axis > 0 else None


def _runtime_errors() -> tuple[type[Exception], ...]:
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    names = (
        "Fail",
        "InvalidArgument",
        "InvalidGraph",
        "InvalidProtobuf",
        "NoModel",
        "NotImplemented",
        "RuntimeException",
    )
    return tuple(getattr(state, name) for name in names)
