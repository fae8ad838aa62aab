"""SimCLR: the two views of an item are alike, those of different items are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import ViewBatch, ViewObjective
from shotproof.models.objectives.contrast import Projection


@dataclass(frozen=True)
class SimClr(ViewObjective):
    """Cross-entropy of telling the other view of an item among all other views of the batch, by cosine.

    Views are compared after a projection of two layers; scores are cosines of the backbone's vectors. Labels are not
    used.
    """

    about = "views: each item's two views are told from those of all others; without labels"
    paper = "Chen et al., A Simple Framework for Contrastive Learning of Visual Representations, 2020"
    example = "simclr(temperature=0.1)"
    settings: ClassVar[Mapping[str, Any]] = {
        "optimizer": "adam",
        "lr": 1e-3,
        "weight_decay": 1e-6,
        "schedule": "cosine",
        "epochs": 200,
        "batch": 256,
    }

    temperature: float = option(0.5, "what cosines are divided by", above=0)
    projection: int = option(128, "dimensions in which views are compared", least=1)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The projection."""
        return Projection(backbone.dim, self.projection)

    def loss(self, net: FewShotNetwork, batch: ViewBatch, generator: Generator) -> Tensor:
        """The mean over both views of all items."""
        rows = net.head(net(torch.cat([batch.first, batch.second])))
        itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
        similarities = (rows @ rows.mT / self.temperature).masked_fill(itself, -torch.inf)
        other = torch.arange(len(rows), device=rows.device).roll(len(batch.first))
        return functional.cross_entropy(similarities, other)
