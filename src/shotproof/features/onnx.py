"""Any exported model, with its preprocessing stated: in a small file beside it, or as options."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from shotproof.errors import InputError, MissingExtra, UnknownName, did_you_mean, first_line
from shotproof.features.network import NetworkEncoder
from shotproof.images import open_image

DEFAULTS: dict[str, Any] = {
    "size": None,
    "scale": 1 / 255,
    "mean": (0.485, 0.456, 0.406),
    "std": (0.229, 0.224, 0.225),
    "layout": None,
    "output": None,
}
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


class Onnx(NetworkEncoder):
    """A model in ONNX that takes one batch of RGB images.

    The whole image is resized to `size` (a side, or height and width; bicubic, no crop), and its values become
    (x * `scale` - `mean`) / `std`. Defaults: size as the model's input says, else 224; scale 1/255; mean (0.485,
    0.456, 0.406) and std (0.229, 0.224, 0.225), those of ImageNet; `layout` nchw or nhwc, as the model's input
    says; `output` the first with two axes, else the first with four, averaged over height and width. With `maps`,
    `output` is the first with four axes, as it is.
    A file MODEL.onnx.toml beside MODEL.onnx may state the same keys; options given here override it.
    """

    about = "any exported model in ONNX, with its preprocessing stated (extra: onnx)"
    name = "onnx"

    def __init__(
        self,
        path: str,
        size: int | Sequence[int] | None = None,
        scale: float | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        layout: str | None = None,
        output: str | None = None,
        maps: bool = False,
    ) -> None:
        self.path = Path(path)
        self.maps = maps
        given = {"size": size, "scale": scale, "mean": mean, "std": std, "layout": layout, "output": output}
        stated = DEFAULTS | self._sidecar() | {key: value for key, value in given.items() if value is not None}
        shape = self._input.shape
        self.layout = self._checked_layout(stated["layout"], shape)
        height, width = shape[2:] if self.layout == "nchw" else shape[1:3]
        own_size = [_fixed(height) or 224, _fixed(width) or 224]
        self.size = _numbers("size", own_size if stated["size"] is None else stated["size"], 2)
        self.scale = _numbers("scale", stated["scale"], 1)[0]
        self.mean = _numbers("mean", stated["mean"], 3)
        self.std = _numbers("std", stated["std"], 3)
        self.output = self._checked_output(stated["output"])

    def parameters(self) -> dict[str, Any]:
        """The file's name and the preprocessing."""
        return {
            "model": self.path.name,
            "size": self.size,
            "scale": self.scale,
            "mean": self.mean,
            "std": self.std,
            "layout": self.layout,
            "output": self.output,
            **({"maps": True} if self.maps else {}),
        }

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the file and of weights kept beside it, preprocessing, output."""
        # Exporters put large weights into MODEL.onnx.data or MODEL.onnx_data.
        files = [self.path, *(self.path.with_name(f"{self.path.name}{end}") for end in (".data", "_data"))]
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()]
        return (
            f"onnx sha256={','.join(digests)} {[value for key, value in self.parameters().items() if key != 'model']}"
        )

    @cached_property
    def network(self) -> Any:
        """The session that runs the model."""
        return self._session("CPUExecutionProvider")

    def load(self, path: Path) -> npt.NDArray[np.float32]:
        """The image as the model wants it, [3, height, width] or [height, width, 3]."""
        height, width = self.size
        image = open_image(path).resize((width, height), Image.Resampling.BICUBIC)
        mean, std = np.array([self.mean, self.std], dtype=np.float32)
        normalised: npt.NDArray[np.float32] = (np.asarray(image, np.float32) * np.float32(self.scale) - mean) / std
        return normalised if self.layout == "nhwc" else np.ascontiguousarray(normalised.transpose(2, 0, 1))

    def move(self, device: torch.device) -> torch.device:
        """Run on the GPU where the device is one and this onnxruntime can; the batches stay in main memory."""
        import onnxruntime

        if device.type == "cuda" and "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            self.network = self._session("CUDAExecutionProvider")
        return torch.device("cpu")

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Images, [b, ...], to features, [b, d], or maps, [b, d, h, w]."""
        images = batch.numpy().astype(TYPES[self._input.type])
        # A model exported for a fixed batch gets just that, the last one filled up.
        size = _fixed(self._input.shape[0]) or len(images)
        padded = np.concatenate([images, np.repeat(images[-1:], -len(images) % size, axis=0)])
        outputs = [self._run(padded[start : start + size]) for start in range(0, len(padded), size)]
        values = np.concatenate(outputs)[: len(images)]
        if self.maps and values.ndim == 4 and self.layout == "nhwc":
            values = values.transpose(0, 3, 1, 2)
        elif values.ndim == 4 and not self.maps:
            values = values.mean(axis=(2, 3) if self.layout == "nchw" else (1, 2))
        return torch.from_numpy(values)

    def _run(self, images: npt.NDArray[Any]) -> npt.NDArray[Any]:
        try:
            values: npt.NDArray[Any] = self.network.run([self.output], {self._input.name: images})[0]
        except _runtime_errors() as error:
            raise InputError(f"model {self.path} cannot be run on {list(images.shape)}: {first_line(error)}") from error
        return values

    @property
    def _input(self) -> Any:
        inputs = self.network.get_inputs()
        if len(inputs) != 1 or len(inputs[0].shape) != 4 or inputs[0].type not in TYPES:
            found = ", ".join(f"{node.name} {node.type} {node.shape}" for node in inputs)
            raise InputError(f"model {self.path}: expected one input of images, four axes of floats, found {found}")
        return inputs[0]

    def _session(self, provider: str) -> Any:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtra("encoder 'onnx'", "onnx") from error
        if not self.path.is_file():
            raise InputError(f"model {self.path} does not exist")
        try:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1  # batches run side by side, each on one thread
            return onnxruntime.InferenceSession(self.path, options, providers=[provider])
        except _runtime_errors() as error:
            raise InputError(f"model {self.path} cannot be read as ONNX: {first_line(error)}") from error

    def _sidecar(self) -> dict[str, Any]:
        """What MODEL.onnx.toml states, if there is one."""
        path = self.path.with_name(f"{self.path.name}.toml")
        if not path.is_file():
            return {}
        try:
            stated = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise InputError(f"{path} cannot be read as TOML: {error}") from error
        for key in stated:
            if key not in DEFAULTS:
                raise InputError(f"{path} has an unknown key '{key}'{did_you_mean(key, DEFAULTS)}")
        return stated

    def _checked_layout(self, layout: Any, shape: Sequence[Any]) -> str:
        if layout is None and 3 in (shape[1], shape[3]):
            return "nchw" if shape[1] == 3 else "nhwc"
        if layout is None:
            raise InputError(f"model {self.path}: its input {shape} does not tell where the channels are: give layout")
        if layout not in ("nchw", "nhwc"):
            raise UnknownName("layout", str(layout), ("nchw", "nhwc"))
        return str(layout)

    def _checked_output(self, output: Any) -> str:
        outputs = {node.name: len(node.shape or ()) for node in self.network.get_outputs()}
        if output is not None and output not in outputs:
            raise UnknownName(f"output of model {self.path}", str(output), outputs)
        axes = (4,) if self.maps else (2, 4)
        usable = [output] if output else sorted((n for n in outputs if outputs[n] in axes), key=outputs.__getitem__)
        if not usable:
            wanted = "four axes, a map" if self.maps else "two or four axes"
            raise InputError(f"model {self.path} has no output with {wanted}: give output, one of {list(outputs)}")
        return str(usable[0])


def _numbers(key: str, value: Any, count: int) -> list[Any]:
    """One number, or `count` of them, as a list of `count`: positive, but for means; whole, for a size."""
    numbers = list(value) if isinstance(value, list | tuple) else [value] * count
    kinds = (int,) if key == "size" else (int, float)
    if len(numbers) != count or any(type(n) not in kinds or (n <= 0 and key != "mean") for n in numbers):
        expected = f"{'whole ' if key == 'size' else ''}{'' if key == 'mean' else 'positive '}number"
        raise InputError(
            f"encoder 'onnx': {key} {value!r}: expected a {expected}{f', or {count}' if count > 1 else ''}"
        )
    return numbers


def _fixed(axis: Any) -> int | None:
    """The length of an axis of a model's input; None where it is free."""
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
