"""Contrastive prototypes: views of a class are alike, and near the class's mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor
from torch.nn import functional

from shotproof.core.options import option
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import ViewBatch, ViewObjective


@dataclass(frozen=True)
class ContrastiveProto(ViewObjective):
    """Prototypes of the batch's classes, and a supervised contrastive loss beside them.

    Cross-entropy of cosines between second views and the class means of first views, plus `contrast` times that of
    telling the views of the same class among all others.
    """

    about = "views: class means of the batch, and a supervised contrastive loss"
    paper = "Sgouropoulos et al., Prototypical Contrastive Learning for Improved Few-Shot Audio Classification, 2025"
    example = "contrastive-proto(contrast=0.5)"
    settings: ClassVar[Mapping[str, Any]] = {"optimizer": "adam", "lr": 1e-3, "schedule": "cosine", "batch": 256}

    temperature: float = option(0.1, "what cosines are divided by", above=0)
    contrast: float = option(1.0, "weight of the contrastive loss", least=0)

    def loss(self, net: FewShotNetwork, batch: ViewBatch, generator: Generator) -> Tensor:
        """Both losses, on vectors of length 1."""
        rows = functional.normalize(net(torch.cat([batch.first, batch.second])), dim=1)
        first, second = rows.chunk(2)
        told = prototype_loss(first, second, batch.labels, self.temperature)
        return told + self.contrast * contrastive_loss(rows, batch.labels.repeat(2), self.temperature)


def prototype_loss(first: Tensor, second: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of cosines of rows `second` [b, d] with the class means of rows `first`, by labels [b].

    Every row has a column with the mean of its class, which counts as many times as the class has rows: dividing by
    that number leaves one column per class, without a look at which classes there are.
    """
    alike = (labels[:, None] == labels).to(first.dtype)
    members = alike.sum(1)
    means = functional.normalize(alike @ first, dim=1)
    logits = second @ means.mT / temperature
    return (torch.logsumexp(logits - members.log(), dim=1) - logits.diagonal()).mean()


def contrastive_loss(rows: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Minus the mean log-probability of the rows of the same class among all other rows, of rows [b, d] of length 1.

    Khosla et al., Supervised Contrastive Learning, 2020, with the mean outside of the logarithm.
    """
    itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    logits = (rows @ rows.mT / temperature).masked_fill(itself, -torch.inf)
    likely = functional.log_softmax(logits, dim=1).masked_fill(itself, 0.0)
    alike = (labels[:, None] == labels) & ~itself
    return -((likely * alike).sum(1) / alike.sum(1)).mean()
