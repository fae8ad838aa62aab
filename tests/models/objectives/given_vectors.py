"""Networks that give items as they are, so that a test says what an objective sees."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import Objective


class GivenMaps(BackboneNetwork):
    """Items [b, d, h, w] are their own maps."""

    def stages(self, items: Tensor) -> list[Tensor]:
        return [items]


def network_on(objective: Objective[Any], *shape: int, classes: int, seed: int = 0) -> FewShotNetwork:
    """The network of an objective that sees items of this shape (channels, height, width) as they are."""
    backbone = GivenMaps()
    backbone.settle((shape[0], shape[1], shape[2]))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return FewShotNetwork(backbone, objective.prepare(backbone, classes, 3))


def as_items(vectors: Tensor) -> Tensor:
    """Vectors [b, d] as items of one location, in float32."""
    return vectors.float()[..., None, None]
