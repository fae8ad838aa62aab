"""Matching networks: attention of queries over support rows."""

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
    """Minus the logarithm of the total attention on the support rows of the query's class.

    The attention is the softmax over all support rows of `scale` times the cosine, with negative cosines set to 0. With
    `context` (full-context embeddings), a bidirectional LSTM first reads the support rows in their order, and another
    LSTM refines each query by attention to the support, for as many steps as there are support rows.
    """

    about = "tasks: attention over support rows"
    paper = (
        "Vinyals et al., Matching Networks for One Shot Learning, 2016; Chen et al., A Closer Look at Few-shot "
        "Classification, 2019"
    )
    example = "matching(scale=10)"
    settings = trained_by(optimizer="adam", lr=1e-3, weight_decay=0.0)

    scale: float = option(100.0, "factor of the cosines: sharpness of the attention", above=0)
    context: bool = option(False, "full-context embeddings, by recurrent networks")

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the recurrent networks if `context` is set."""
        return _Context(backbone.dim) if self.context else nn.Module()

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute the logarithm of the attention on each class."""
        if self.context:
            support, query = net.head(support, query)
        cosines = functional.normalize(query, dim=2) @ functional.normalize(support, dim=2).mT
        return attention_scores(cosines, labels, way, self.scale)

    def task_loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Compute the negative log-likelihood, as scores are log-probabilities."""
        return functional.nll_loss(scores.flatten(0, 1), labels.flatten())


class _Context(nn.Module):
    """Full-context embeddings of support rows [B, n, d] and queries [B, m, d]."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.reader = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.cell = nn.LSTMCell(2 * dim, dim)

    def forward(self, support: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        outputs, _ = self.reader(support)
        forward, backward = outputs.chunk(2, dim=-1)
        support = support + forward + backward
        hidden, memory = query, torch.zeros_like(query).flatten(0, 1)
        for _ in range(support.shape[1]):
            attended = (hidden @ support.mT).softmax(-1) @ support
            state = hidden.flatten(0, 1), memory
            output, memory = self.cell(torch.cat([query, attended], -1).flatten(0, 1), state)
            hidden = output.view_as(query) + query
        return support, hidden
