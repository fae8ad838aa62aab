"""Matching networks: attention of a query over the support rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.functional.gram import attention_scores
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskObjective, trained_by


@dataclass(frozen=True)
class Matching(TaskObjective):
    """Minus the logarithm of the attention that the support rows of the query's class get.

    The attention is the softmax over all support rows of `scale` times the cosine, cosines below 0 taken as 0. With
    `context`, a recurrent network in both directions reads the support rows first, in their order, and another one each
    query with the support in view, as many times as there are support rows.
    """

    about = "tasks: attention over support rows"
    paper = (
        "Vinyals et al., Matching Networks for One Shot Learning, 2016; Chen et al., A Closer Look at Few-shot "
        "Classification, 2019"
    )
    example = "matching(scale=10)"
    settings = trained_by(optimizer="adam", lr=1e-3, weight_decay=0.0)

    scale: float = option(100.0, "factor of the cosines: how sharp the attention is", above=0)
    context: bool = option(False, "full-context embeddings, by recurrent networks")

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The recurrent networks, where there are any."""
        return _Context(backbone.dim) if self.context else nn.Module()

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The logarithm of the attention."""
        if self.context:
            support, query = net.head(support, query)
        cosines = functional.normalize(query, dim=2) @ functional.normalize(support, dim=2).mT
        return attention_scores(cosines, labels, way, self.scale)

    def task_loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Scores are logarithms of probabilities already."""
        return functional.nll_loss(scores.flatten(0, 1), labels.flatten())


class _Context(nn.Module):
    """Support rows [B, n, d] and queries [B, m, d] as they are in view of the support."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.reader = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.cell = nn.LSTMCell(2 * dim, dim)

    def forward(self, support: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        read, _ = self.reader(support)
        forward, backward = read.chunk(2, dim=-1)
        support = support + forward + backward
        hidden, memory = query, torch.zeros_like(query).flatten(0, 1)
        for _ in range(support.shape[1]):
            seen = (hidden @ support.mT).softmax(-1) @ support
            state = hidden.flatten(0, 1), memory
            moved, memory = self.cell(torch.cat([query, seen], -1).flatten(0, 1), state)
            hidden = moved.view_as(query) + query
        return support, hidden
