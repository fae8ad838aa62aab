"""Class means and scores by them, as functions on tensors of B tasks, with gradients."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def class_means(rows: Tensor, labels: Tensor, way: int) -> Tensor:
    """The mean of the rows [B, n, ...] of each class, by labels [B, n]: [B, way, ...]."""
    means = mean_weights(labels, way).to(rows.dtype) @ rows.flatten(2)
    return means.view(*means.shape[:2], *rows.shape[2:])


def squared_distances(rows: Tensor, points: Tensor) -> Tensor:
    """Of rows [B, m, d] and points [B, k, d], the squared Euclidean distances [B, m, k], none below zero."""
    lengths = rows.square().sum(2, keepdim=True) + points.square().sum(2).unsqueeze(1)
    return torch.baddbmm(lengths, rows, points.mT, alpha=-2).clamp(min=0)


def cosine_scores(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Cosines of queries [B, m, d] with the classes' mean support rows, [B, m, way]."""
    means = functional.normalize(class_means(support, labels, way), dim=2)
    return functional.normalize(query, dim=2) @ means.mT


def members(labels: Tensor, way: int) -> Tensor:
    """Labels [B, n] to float64 [B, way, n]: 1 where the row is of the class."""
    return (labels.unsqueeze(1) == torch.arange(way, device=labels.device).unsqueeze(-1)).double()


def mean_weights(labels: Tensor, way: int, rows: int | None = None) -> Tensor:
    """The weights [B, way, rows] of each class's mean support row; zero beyond the support, where there are more."""
    of_support = members(labels, way)
    means = of_support / of_support.sum(2, keepdim=True).clamp_min(1)
    return means if rows is None else functional.pad(means, (0, rows - labels.shape[1]))


def one_hot(labels: Tensor, way: int) -> Tensor:
    """Labels [B, n] to float64 [B, n, way]."""
    return members(labels, way).mT
