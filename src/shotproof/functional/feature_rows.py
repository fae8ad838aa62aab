"""Scaling, class means and comparison of feature rows, on tensors of B tasks, with gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shotproof.core.errors import InputError
from shotproof.core.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

# A squared length below this fraction of its inputs is rounding error and treated as zero.
NEGLIGIBLE = 1e-12
Negatives = Literal["signed", "relu", "refuse"]
SHIFT = 1e-6  # added before the power transform


def inverse_root(squares: Tensor, scale: Tensor | float = 0.0) -> Tensor:
    """Compute 1 / sqrt of squares, or 0 for squares negligible relative to `scale`."""
    usable = squares > NEGLIGIBLE * torch.as_tensor(scale, dtype=squares.dtype, device=squares.device)
    return torch.where(usable, squares, torch.ones_like(squares)).rsqrt() * usable


def almost_unit(rows: Tensor) -> Tensor:
    """Divide rows [..., d] by their length plus 1e-5, as Baseline++'s published code does."""
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    return rows / (lengths + 1e-5)


def unit(values: Tensor) -> Tensor:
    """Scale descriptors [..., d] to length 1; zero stays zero."""
    return torch.nn.functional.normalize(values, dim=-1, eps=torch.finfo(values.dtype).tiny)


@dataclass(frozen=True)
class PowerTransform:
    """Power transform (x + 1e-6)^power, which is defined for x >= 0; the paper's features are never negative.

    Negative values are mirrored (`signed`), -(|x| + 1e-6)^power, set to 0 (`relu`), or an error (`refuse`).
    """

    power: float
    negatives: Negatives = "signed"

    def __call__(self, values: Tensor) -> Tensor:
        """Return the transformed values in a new tensor."""
        if self.negatives == "refuse" and bool((values < 0).any()):
            raise InputError("power transform: a feature is negative; choose negatives='signed' or negatives='relu'")
        if self.negatives == "relu":
            return values.clamp_min(0).add_(SHIFT).pow_(self.power)
        magnitudes = values.abs().add_(SHIFT).pow_(self.power)
        return torch.where(values < 0, -magnitudes, magnitudes)


def power_transform(power: float, negatives: Negatives) -> PowerTransform | None:
    """Return the transform with these options, None for a power of 1."""
    return None if power == 1 else PowerTransform(power, negatives)


@dataclass(frozen=True)
class UnitRows:
    """Scaling of rows to length 1, after a power transform if given; a zero row stays zero."""

    power: PowerTransform | None = None

    def __call__(self, rows: Tensor) -> Tensor:
        """Transform rows [..., d], in float64."""
        rows = self.power(rows.double()) if self.power else rows.double()
        return rows * inverse_root(rows.square().sum(-1, keepdim=True))


def class_means(rows: Tensor, labels: Tensor, way: int) -> Tensor:
    """Average the rows [B, n, ...] of each class, by labels [B, n]: [B, way, ...]."""
    means = mean_weights(labels, way).to(rows.dtype) @ rows.flatten(2)
    return means.view(*means.shape[:2], *rows.shape[2:])


def squared_distances(rows: Tensor, points: Tensor) -> Tensor:
    """Compute squared Euclidean distances [B, m, k] of rows [B, m, d] to points [B, k, d], clamped at zero."""
    lengths = rows.square().sum(2, keepdim=True) + points.square().sum(2).unsqueeze(1)
    return torch.baddbmm(lengths, rows, points.mT, alpha=-2).clamp(min=0)


def cosine_scores(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Compute the cosines of queries [B, m, d] with the class means of the support: [B, m, way]."""
    means = torch.nn.functional.normalize(class_means(support, labels, way), dim=2)
    return torch.nn.functional.normalize(query, dim=2) @ means.mT


def class_membership(labels: Tensor, way: int) -> Tensor:
    """Convert labels [B, n] to float64 class membership [B, way, n]: 1 if the row belongs to the class, else 0."""
    return (labels.unsqueeze(1) == torch.arange(way, device=labels.device).unsqueeze(-1)).double()


def mean_weights(labels: Tensor, way: int, rows: int | None = None) -> Tensor:
    """Return weights [B, way, rows] that average the support rows of each class, zero beyond the support."""
    membership = class_membership(labels, way)
    means = membership / membership.sum(2, keepdim=True).clamp_min(1)
    return means if rows is None else torch.nn.functional.pad(means, (0, rows - labels.shape[1]))


def one_hot(labels: Tensor, way: int) -> Tensor:
    """Convert labels [B, n] to one-hot float64 [B, n, way]."""
    return class_membership(labels, way).mT
