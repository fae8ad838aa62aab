"""Attention over support rows, as in matching networks."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

LEAST = 1e-6  # added to a probability before the logarithm, as the published code does


def attention_scores(cosines: Tensor, labels: Tensor, way: int, scale: float) -> Tensor:
    """The logarithm of the attention that each class's support rows get, [B, m, way].

    Args:
        cosines: of queries with support rows, [B, m, n]; those below 0 count as 0
        labels: of the support rows, [B, n]
        way: the number of classes
        scale: how sharp the attention is
    """
    attention = (scale * cosines.clamp(min=0)).softmax(-1)
    return (attention @ functional.one_hot(labels, way).to(cosines.dtype) + LEAST).log()
