"""The head of HELA-VFA: a distance between prototypes and queries through a bell curve of their values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.methods.method import Method
from shotproof.methods.shared.gram import centroids


@dataclass(frozen=True)
class HelaVfa(Method):
    """Score: minus |sqrt|f(x)| - sqrt|f(p)||^2 / sqrt 2, f(u) = mean + exp(-(u - mean)^2 / (2 std^2)) / sqrt(2 pi).

    As the published code computes it. Mean and standard deviation are taken over all queries of the task, and over all
    prototypes: a query's score depends on the other queries.
    """

    about = "HELA-VFA's distance; its statistics are over all queries"
    paper = (
        "Lee et al., HELA-VFA: A Hellinger Distance-Attention-based Feature Aggregation Network for Few-Shot "
        "Classification, 2024"
    )
    family = "transductive"

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Statistics count each query once per class and each prototype once per query, as the published code does."""
        prototypes, rows = centroids(support.double(), labels, way), query.double()
        freedom = max(1, rows.shape[1] * way * rows.shape[2] - 1)
        bells = _bell(rows, way / freedom), _bell(prototypes, rows.shape[1] / freedom)
        return -torch.cdist(*bells, compute_mode="donot_use_mm_for_euclid_dist").square() / math.sqrt(2)


def _bell(values: Tensor, weight: float) -> Tensor:
    """sqrt|f| of values [B, r, d], with variance `weight` times the summed squares of the task."""
    mean = values.mean((1, 2), keepdim=True)
    square = (values - mean).square()
    variance = weight * square.sum((1, 2), keepdim=True)
    # Values that are all the same lie on the top of the bell.
    curve = (-square / (2 * torch.where(variance > 0, variance, 1.0))).exp() / math.sqrt(2 * math.pi)
    return (mean + curve).abs().sqrt()
