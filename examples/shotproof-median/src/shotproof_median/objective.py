"""Custom objective: train a network for nearest class medians."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskObjective, trained_by


@dataclass(frozen=True)
class MedianNet(TaskObjective):
    """Cross-entropy of minus the distances to class medians, times a learned scale."""

    about = "tasks: nearest class median, with a learned scale"
    settings = trained_by(optimizer="adam", lr=1e-3)

    scale: float = option(0.1, "the scale at the start", above=0)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the head, which is the learned scale."""
        head = nn.Module()
        head.scale = nn.Parameter(torch.tensor(self.scale))
        return head

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute scores [B, m, way] from support [B, n, d] with labels [B, n] and query [B, m, d]."""
        of_class = [support.masked_fill((labels != c).unsqueeze(-1), torch.nan).nanmedian(1).values for c in range(way)]
        return -net.head.scale * torch.cdist(query, torch.stack(of_class, 1), p=1)
