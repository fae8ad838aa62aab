"""Scores by class means, as functions on tensors of B tasks, with gradients."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def class_means(support: Tensor, labels: Tensor, way: int) -> Tensor:
    """The mean of the support rows [B, n, ...] of each class, by labels [B, n]: [B, way, ...]."""
    members = functional.one_hot(labels, way).to(support.dtype).mT
    sums = members @ support.flatten(2)
    means = sums / members.sum(2, keepdim=True).clamp(min=1)
    return means.reshape(len(support), way, *support.shape[2:])


def squared_distances(rows: Tensor, points: Tensor) -> Tensor:
    """Of rows [B, m, d] and points [B, k, d], the squared Euclidean distances [B, m, k], none below zero."""
    lengths = rows.square().sum(2, keepdim=True) + points.square().sum(2).unsqueeze(1)
    return torch.baddbmm(lengths, rows, points.mT, alpha=-2).clamp(min=0)


def cosine_scores(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Cosines of queries [B, m, d] with the classes' mean support rows, [B, m, way]."""
    means = functional.normalize(class_means(support, labels, way), dim=2)
    return functional.normalize(query, dim=2) @ means.mT
