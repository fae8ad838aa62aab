"""Slow encoder and method that log the node on which they run."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
from torch import Tensor

from shotproof.features.encoders.pixels import Pixels
from shotproof.learners.heads.inductive.centroids import NearestCentroid
from shotproof.learners.method import Method

LOG = "SCALE_TESTS_LOG"  # environment variable with the log's path; it is carried to the workers


def note_node() -> None:
    """Append the id of this node to the log, if the process is part of a cluster."""
    import ray

    if LOG in os.environ and ray.is_initialized():
        with Path(os.environ[LOG]).open("a") as file:
            file.write(f"{ray.get_runtime_context().get_node_id()}\n")


@dataclass(frozen=True)
class SlowPixels(Pixels):
    """Pixels, with a delay per file."""

    def load(self, path: Path) -> npt.NDArray[Any]:
        note_node()
        time.sleep(0.01)
        return super().load(path)


@dataclass(frozen=True)
class SlowCentroids(Method):
    """Nearest centroids, with a delay per batch."""

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        note_node()
        time.sleep(0.1)
        return NearestCentroid().scores(support, labels, query, way)
