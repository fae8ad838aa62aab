"""Rows of features, as functions on tensors of B tasks with gradients: scaled, averaged by class, compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shotproof.core.errors import InputError
from shotproof.core.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

# A squared length below this share of what it was computed from is rounding error, and taken as zero.
NEGLIGIBLE = 1e-12
Negatives = Literal["signed", "relu", "refuse"]
SHIFT = 1e-6  # before a power is taken


def inverse_root(squares: Tensor, scale: Tensor | float = 0.0) -> Tensor:
    """1 / sqrt, and 0 where a square is negligible beside `scale`."""
    usable = squares > NEGLIGIBLE * torch.as_tensor(scale, dtype=squares.dtype, device=squares.device)
    return torch.where(usable, squares, torch.ones_like(squares)).rsqrt() * usable


def almost_unit(rows: Tensor) -> Tensor:
    """Rows [..., d] over their length plus 1e-5, as Baseline++'s published code scales features."""
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    return rows / (lengths + 1e-5)


def unit(values: Tensor) -> Tensor:
    """Descriptors [..., d] of length 1; zero stays zero."""
    return torch.nn.functional.normalize(values, dim=-1, eps=torch.finfo(values.dtype).tiny)


@dataclass(frozen=True)
class PowerTransform:
    """(x + 1e-6)^power, which is defined for x >= 0. What is below 0 (the paper's features never are):

    `signed`: mirrored, -(|x| + 1e-6)^power; `relu`: taken as 0; `refuse`: an error.
    """

    power: float
    negatives: Negatives = "signed"

    def __call__(self, values: Tensor) -> Tensor:
        """The transformed values, in a new tensor."""
        if self.negatives == "refuse" and bool((values < 0).any()):
            raise InputError("power transform: a feature is negative; choose negatives='signed' or negatives='relu'")
        if self.negatives == "relu":
            return values.clamp_min(0).add_(SHIFT).pow_(self.power)
        size = values.abs().add_(SHIFT).pow_(self.power)
        return torch.where(values < 0, -size, size)


def power_transform(power: float, negatives: Negatives) -> PowerTransform | None:
    """The transform of these options; a power of 1 is none."""
    return None if power == 1 else PowerTransform(power, negatives)


@dataclass(frozen=True)
class UnitRows:
    """Rows scaled to length 1, after a power transform where there is one; a zero row stays zero."""

    power: PowerTransform | None = None

    def __call__(self, rows: Tensor) -> Tensor:
        """Rows [..., d], transformed, in float64."""
        rows = self.power(rows.double()) if self.power else rows.double()
        return rows * inverse_root(rows.square().sum(-1, keepdim=True))


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
    means = torch.nn.functional.normalize(class_means(support, labels, way), dim=2)
    return torch.nn.functional.normalize(query, dim=2) @ means.mT


def members(labels: Tensor, way: int) -> Tensor:
    """Labels [B, n] to float64 [B, way, n]: 1 where the row is of the class."""
    return (labels.unsqueeze(1) == torch.arange(way, device=labels.device).unsqueeze(-1)).double()


def mean_weights(labels: Tensor, way: int, rows: int | None = None) -> Tensor:
    """The weights [B, way, rows] of each class's mean support row; zero beyond the support, where there are more."""
    of_support = members(labels, way)
    means = of_support / of_support.sum(2, keepdim=True).clamp_min(1)
    return means if rows is None else torch.nn.functional.pad(means, (0, rows - labels.shape[1]))


def one_hot(labels: Tensor, way: int) -> Tensor:
    """Labels [B, n] to float64 [B, n, way]."""
    return members(labels, way).mT
