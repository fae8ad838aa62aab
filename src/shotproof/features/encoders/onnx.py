"""The encoder `onnx`: an exported model of images or sounds; its preprocessing is stated in a file or as options."""

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
    prepare_clips,
)
from shotproof.features.encoders.pretrained_network import LONGEST_CLIP, NetworkEncoder
from shotproof.media.clip import RATES
from shotproof.media.images import REDUCED, open_image

if TYPE_CHECKING:
    import torch

SIDE = 224
LONGEST_SIDE = 8_192  # pixels
SCALE = 1 / 255
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet
NUMBERS = {2: "two", 3: "three", 4: "four"}
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
SETTINGS = (  # options that may also be in the file beside the model
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
)
LAYOUTS = {"image": ("nchw", "nhwc"), WAVEFORM: (), SPECTROGRAM: (TIME_FIRST, BANDS_FIRST)}

Triple = tuple[float, float, float]


class Preprocessing(NamedTuple):
    """Preprocessing of images: (x * scale - mean) / std of an image of this size; and the name of the output."""

    size: list[int]
    scale: float
    mean: list[float]
    std: list[float]
    layout: str
    output: str


@dataclass(frozen=True)
class Onnx(NetworkEncoder):
    """An ONNX model whose input is a batch of RGB images, of samples of clips, or of spectrograms.

    Without `input`, two axes mean samples, four axes images, and a `front_end` spectrograms. The whole image is resized
    (bicubic, no crop), and its values become (x * `scale` - `mean`) / `std`. A file MODEL.onnx.toml beside MODEL.onnx
    may state the same options; those given here override it. The default `output` is the first with two axes, or else
    the first with four, averaged over height and width; with `maps`, the first with four axes, unchanged.

    For sounds, an output of three axes, time tokens, is averaged as well, or with `maps` becomes a row of locations.
    Spectrograms are computed as in the model's own code, and cut or padded with zeros to the length of its input.
    """

    about = "any exported model of images or sounds in ONNX, with its preprocessing stated (extra: onnx)"
    example = "onnx:model.onnx(size=224)"
    reduces = True

    path: Path = option(help="model file", argument=True, path=True)
    input: str | None = option(None, "kind of the model's input; None: inferred from its axes", choices=INPUTS)
    size: int | tuple[int, int] | None = option(
        None,
        f"side of images, or height and width, in pixels; None: that of the model's input, or {SIDE}",
        least=1,
        most=LONGEST_SIDE,
    )
    scale: float | None = option(
        None, "factor for values before normalization; None: 1/255 for images, 1 for sounds", above=0
    )
    mean: float | Triple | None = option(
        None, "mean to subtract, one or one per channel; None: that of ImageNet, or of the front end"
    )
    std: float | Triple | None = option(
        None,
        "standard deviation to divide by, one or one per channel; None: that of ImageNet, or of the front end",
        above=0,
    )
    layout: str | None = option(
        None,
        "order of axes: nchw or nhwc for images, tf or ft (time, bands) for spectrograms; None: inferred",
        choices=(*LAYOUTS["image"], *LAYOUTS[SPECTROGRAM]),
    )
    output: str | None = option(None, "name of the output to use")
    maps: bool = option(False, "local maps: the first output with four axes, or for sounds with three")
    front_end: str | None = option(None, "front end that computes spectrograms", choices=FRONT_ENDS)
    rate: int | None = option(
        None, "sampling rate of an input of samples; None: 16,000", least=RATES[0], most=RATES[-1]
    )
    seconds: float | None = option(
        None, "length of the clips; None: that of an input of samples, or 5", above=0, most=LONGEST_CLIP
    )

    def extras(self) -> Mapping[str, str]:
        """Return the packages that run the model and read sounds."""
        return {"onnxruntime": "onnx"} | ({"soundfile": "sound"} if self.input in (WAVEFORM, SPECTROGRAM) else {})

    @cached_property
    def medium(self) -> str:  # type: ignore[override]
        """Return the kind of its items: `image` or `sound`."""
        return "sound" if isinstance(self.preprocessing, ClipPreparation) else "image"

    @cached_property
    def preprocessing(self) -> Preprocessing | ClipPreparation:
        """Return the preprocessing, from the options, the file beside the model, and the model's input and outputs."""
        options = {key: value for key in SETTINGS if (value := getattr(self, key)) is not None}
        settings = {**dict.fromkeys(SETTINGS), **self._read_sidecar(), **options}
        shape = self._input.shape
        kind = settings["input"] or self._infer_kind(shape)
        self._check_settings(kind, settings)
        if kind != "image":
            output = self._choose_output(settings["output"], (2, 3, 4))
            return prepare_clips(kind, settings, [*map(_fixed_length, shape[1:])], output, f"model {self.path}")
        layout = settings["layout"] or self._infer_layout(shape)
        input_size = [_fixed_length(axis) or SIDE for axis in (shape[2:] if layout == "nchw" else shape[1:3])]
        if settings["size"] is None and max(input_size) > LONGEST_SIDE:
            raise InputError(
                f"model {self.path}: expected images of at most {LONGEST_SIDE:,} pixels a side, found {input_size}"
            )
        return Preprocessing(
            input_size if settings["size"] is None else _repeat(settings["size"], 2),
            SCALE if settings["scale"] is None else settings["scale"],
            _repeat(MEAN if settings["mean"] is None else settings["mean"], 3),
            _repeat(STD if settings["std"] is None else settings["std"], 3),
            layout,
            self._choose_output(settings["output"], (2, 4)),
        )

    def __getstate__(self) -> dict[str, Any]:
        # With this, processes that decode images need not open the model.
        preprocessing = {key: value for key, value in vars(self).items() if key == "preprocessing"}
        return {**super().__getstate__(), **preprocessing}

    @cached_property
    def fingerprint(self) -> str:
        """Return the digests of the model's file and of weights beside it, the preprocessing and the output."""
        preprocessing = [*self.preprocessing, *([True] if self.maps else [])]  # first, because it reports errors
        digests = model_digests(self.path)
        decoded = "" if isinstance(self.preprocessing, ClipPreparation) else f" {REDUCED}"
        return f"onnx sha256={','.join(digests)}{decoded} {preprocessing}"

    @cached_property
    def network(self) -> Any:
        """Return the session that runs the model."""
        return self._open_session("CPUExecutionProvider")

    def load(self, path: Any) -> npt.NDArray[np.float32]:
        """Read an image as the model's input, [3, height, width] or [height, width, 3], or a clip."""
        if isinstance(self.preprocessing, ClipPreparation):
            return self.preprocessing.read(path)
        (height, width), scale, *moments, layout, _ = self.preprocessing
        image = open_image(path, side=max(height, width)).resize((width, height), Image.Resampling.BICUBIC)
        mean, std = np.array(moments, dtype=np.float32)
        normalized: npt.NDArray[np.float32] = (np.asarray(image, np.float32) * np.float32(scale) - mean) / std
        return normalized if layout == "nhwc" else np.ascontiguousarray(normalized.transpose(2, 0, 1))

    def move(self, device: torch.device) -> torch.device:
        """Use the GPU if the device is one and onnxruntime supports it; the batches stay in main memory."""
        import onnxruntime
        import torch

        if device.type == "cuda" and "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            vars(self)["network"] = self._open_session("CUDAExecutionProvider")
        return torch.device("cpu")

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Encode images or clips, [b, ...], as features, [b, d], or maps, [b, d, h, w]."""
        import torch

        inputs = batch.numpy().astype(TYPES[self._input.type])
        # For a model with a fixed batch size, the last batch is padded.
        size = _fixed_length(self._input.shape[0]) or len(inputs)
        padded = np.concatenate([inputs, np.repeat(inputs[-1:], -len(inputs) % size, axis=0)])
        outputs = [self._run(padded[start : start + size]) for start in range(0, len(padded), size)]
        values = np.concatenate(outputs)[: len(inputs)]
        if values.ndim == 3 and self.medium == "sound":  # time tokens, [b, t, d]
            values = np.ascontiguousarray(values.transpose(0, 2, 1)[:, :, None])
        if self.medium == "sound":
            values = values.mean(axis=(2, 3)) if values.ndim == 4 and not self.maps else values
        elif self.maps and values.ndim == 4 and self.preprocessing.layout == "nhwc":
            values = values.transpose(0, 3, 1, 2)
        elif values.ndim == 4 and not self.maps:
            values = values.mean(axis=(2, 3) if self.preprocessing.layout == "nchw" else (1, 2))
        return torch.from_numpy(values)

    def _run(self, inputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        try:
            values: npt.NDArray[Any] = self.network.run([self.preprocessing.output], {self._input.name: inputs})[0]
        except _runtime_errors() as error:
            raise InputError(f"model {self.path} cannot be run on {list(inputs.shape)}: {first_line(error)}") from error
        return values

    @property
    def _input(self) -> Any:
        inputs, _ = self._nodes
        if len(inputs) != 1 or len(inputs[0].shape) not in (2, 3, 4) or inputs[0].type not in TYPES:
            listed = ", ".join(f"{node.name} {node.type} {node.shape}" for node in inputs)
            raise InputError(
                f"model {self.path}: expected one input of floats, four axes for images or two to four for sounds, "
                f"found {listed}"
            )
        return inputs[0]

    @property
    def _nodes(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the model's inputs and outputs, after checking that their names are valid text."""
        try:
            nodes = self.network.get_inputs(), self.network.get_outputs()
            for node in (*nodes[0], *nodes[1]):
                _ = node.name, node.type, node.shape
        except UnicodeDecodeError as error:
            raise InputError(f"model {self.path}: the name of an input or output is not valid UTF-8 text") from error
        return nodes

    def _open_session(self, provider: str) -> Any:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtra("encoder 'onnx'", "onnx") from error
        require_file(self.path, f"model {self.path}")
        try:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1  # batches run in parallel, each on one thread
            return onnxruntime.InferenceSession(self.path, options, providers=[provider])
        except _runtime_errors() as error:
            raise InputError(f"model {self.path} cannot be read as ONNX: {first_line(error)}") from error

    def _read_sidecar(self) -> dict[str, Any]:
        """Read the settings in MODEL.onnx.toml, if there is such a file."""
        path = self.path.with_name(f"{self.path.name}.toml")
        if not path_exists(path):
            return {}
        settings = read_toml(path, str(path))
        rules = {option.name: option for option in self.options() if option.name in SETTINGS}
        for key in settings:
            if key not in rules:
                raise InputError(f"{path} has an unknown key '{key}'{did_you_mean(key, rules)}")
        try:
            return {key: rules[key].check(value) for key, value in settings.items()}
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def _infer_kind(self, shape: Sequence[Any]) -> str:
        """Infer the kind of the model's input from its axes."""
        if len(shape) == 2:
            return WAVEFORM
        if self.front_end is not None or self._read_sidecar().get("front_end") is not None:
            return SPECTROGRAM
        if len(shape) == 4 and 1 not in (shape[1], shape[3]):
            return "image"
        raise InputError(
            f"model {self.path}: cannot infer the kind of input from its shape {shape}: give input or front_end"
        )

    def _check_settings(self, kind: str, settings: Mapping[str, Any]) -> None:
        """Check that the settings fit the kind of input."""
        if settings["layout"] is not None and settings["layout"] not in LAYOUTS[kind]:
            expected = " or ".join(LAYOUTS[kind]) or "none"
            raise InputError(f"model {self.path}: layout of {kind}: expected {expected}, found '{settings['layout']}'")
        if kind == "image":
            if len(self._input.shape) != 4:
                raise InputError(
                    f"model {self.path}: expected an input of images, four axes, found {self._input.shape}"
                )
            for key in ("front_end", "rate", "seconds"):
                if settings[key] is not None:
                    raise InputError(f"model {self.path}: {key} is for sounds, but the model takes images")

    def _infer_layout(self, shape: Sequence[Any]) -> str:
        if 3 not in (shape[1], shape[3]):
            raise InputError(
                f"model {self.path}: cannot infer the axis of the channels from the input's shape {shape}: give layout"
            )
        return "nchw" if shape[1] == 3 else "nhwc"

    def _choose_output(self, output: Any, axis_counts: tuple[int, ...]) -> str:
        outputs = {node.name: len(node.shape or ()) for node in self._nodes[1]}
        if output is not None and output not in outputs:
            raise UnknownName(f"output of model {self.path}", str(output), outputs)
        counts = tuple(count for count in axis_counts if count > 2 or not self.maps)
        candidates = (
            [output] if output else sorted((n for n in outputs if outputs[n] in counts), key=outputs.__getitem__)
        )
        if not candidates:
            expected = f"{' or '.join(NUMBERS[count] for count in counts)} axes{', a map' if self.maps else ''}"
            raise InputError(f"model {self.path} has no output with {expected}: give output, one of {list(outputs)}")
        return str(candidates[0])


def model_digests(path: Path) -> list[str]:
    """Return the digest of a model's file, and of the files with large weights that exporters write beside it.

    These are MODEL.onnx.data and MODEL.onnx_data.
    """
    files = [path, *(path.with_name(f"{path.name}{end}") for end in (".data", "_data"))]
    return [file_sha256(file) for file in files if file.is_file()]


def _repeat(value: Any, count: int) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value] * count


def _fixed_length(axis: Any) -> int | None:
    """Return the length of an axis of a model's input; None if it is not fixed."""
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
