"""The rows of a task brought to where a transductive head works: centered, shifted, in their main directions."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal

from shotproof.core.lazy import torch
from shotproof.core.runtime.devices import one_thread_per_operation
from shotproof.functional.feature_rows import inverse_root, mean_weights

if TYPE_CHECKING:
    from torch import Tensor

Variant = Literal["published", "anywhere"]
VARIANT = "as published, or rows centered and distances scaled in each task, which works on any features"
COLLAPSE = (
    "features that are not centered, or of another scale than the paper's, do that: try variant='anywhere' or the "
    "transform center"
)
DIRECTIONS = 40


def centered_rows(rows: Tensor) -> Tensor:
    """Rows [B, n, d] of length 1, minus their mean over the task, of length 1 again, in float64."""
    unit = torch.nn.functional.normalize(rows.double(), dim=-1)
    return torch.nn.functional.normalize(unit - unit.mean(1, keepdim=True), dim=-1)


def centered_cosines(cosines: Tensor) -> Tensor:
    """The cosines of centered rows, from those of the rows: [B, n, n]."""
    of_rows = cosines.mean(2, keepdim=True)
    products = cosines - of_rows - of_rows.mT + of_rows.mean(1, keepdim=True)
    scale = inverse_root(products.diagonal(dim1=-2, dim2=-1).unsqueeze(1))
    return products * scale * scale.mT


def scale_of(distances: Tensor, wanted: float) -> Tensor:
    """What distances [B, way, m] are multiplied by, to differ by `wanted` between classes on average: [B, 1, 1]."""
    differ = distances.std(1).mean(1)[:, None, None]
    return wanted / differ.clamp_min(torch.finfo(distances.dtype).tiny ** 0.5)


def distances_to_means(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Half the squared distances of queries to the classes' mean support rows: [B, way, m]."""
    means = mean_weights(labels, way, support.shape[1]).to(support.dtype) @ support
    return torch.cdist(means, query).square() / 2


class ShiftedRows:
    """Rows x of length 1, and z: x in the support, x + (mean of the support - mean of the queries) in the queries."""

    def __init__(self, cosines: Tensor, labels: Tensor, way: int) -> None:
        rows, support = cosines.shape[-1], labels.shape[1]
        self._cosines = cosines
        self.is_query = (torch.arange(rows, device=cosines.device) >= support).double()
        means = mean_weights(labels, way, rows)
        self._shift = ((1 - self.is_query) / support - self.is_query / (rows - support)).expand_as(means[:, :1])
        both = torch.cat([means, self._shift], 1) @ cosines
        self._along = both[:, way:]  # the shift times each row
        lengths2 = cosines.diagonal(dim1=-2, dim2=-1).unsqueeze(1)
        self.squares = lengths2 + self.is_query * (2 * self._along + (self._shift * self._along).sum(2, keepdim=True))
        products_with_z = both[:, :way] + self.is_query * (means * self._along).sum(2, keepdim=True)
        of_means = (means * both[:, :way]).sum(2, keepdim=True)
        # |z|^2 [B, 1, rows], and the cosine of z with each class's mean support row [B, way, rows].
        self.cosines = products_with_z * inverse_root(of_means, 1.0) * inverse_root(self.squares, 1.0)

    def products_with_sums(self, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """For weighted sums of the rows z: their products with each x and each z [B, k, rows], and their squares."""
        of_x = weights + (weights * self.is_query).sum(2, keepdim=True) * self._shift
        with_x = of_x @ self._cosines
        with_z = with_x + self.is_query * (of_x * self._along).sum(2, keepdim=True)
        return with_x, with_z, (of_x * with_x).sum(2, keepdim=True)


def main_directions(cosines: Tensor) -> Tensor:
    """Rows of length 1, by their cosines, in the top 40 singular directions, joint mean off, length 1: [B, n + m, k].

    The coordinates in the singular directions are the eigenvectors of the cosines times the roots of the eigenvalues.
    """
    values, vectors = torch.linalg.eigh(cosines) if cosines.device.type == "cpu" else eigh_on_cores(cosines)
    rows = vectors[..., -DIRECTIONS:] * values[..., None, -DIRECTIONS:].clamp_min(0).sqrt()
    return unit_or_zero(rows - rows.mean(1, keepdim=True))


def eigh_on_cores(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues [B, r] and vectors [B, r, r], by the CPU's cores: a GPU takes ten times as long for such sizes."""
    cores = min(len(symmetric), os.cpu_count() or 1)
    with one_thread_per_operation(), ThreadPoolExecutor(cores) as threads:
        parts = list(threads.map(torch.linalg.eigh, symmetric.cpu().tensor_split(cores)))
    values, vectors = (torch.cat(part).to(symmetric.device) for part in zip(*parts, strict=True))
    return values, vectors


def unit_or_zero(rows: Tensor) -> Tensor:
    """Rows scaled to length 1; a row of rounding error becomes zero."""
    length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    return torch.where(length > 1e-6, rows / length.clamp_min(1e-6), 0.0)


def nearness(rows: Tensor, centroids: Tensor, sharpness: float) -> Tensor:
    """`sharpness` times (|row|^2 - squared distance) of rows [B, r, k] and centroids [B, way, k]: [B, way, r]."""
    squares = centroids.square().sum(2, keepdim=True)
    return torch.baddbmm(squares, centroids, rows.mT, beta=-sharpness, alpha=2 * sharpness)


def normalized(weights: Tensor) -> Tensor:
    """Weights [B, way, rows] that sum to 1 in each class; zeros where all are zero."""
    return weights / weights.sum(2, keepdim=True).clamp_min_(torch.finfo(weights.dtype).tiny)
