"""Preparation of a task's rows for transductive heads: centering, shifting, projection onto principal directions."""

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
VARIANT = "as published, or with rows centered and distances scaled in each task, which works on any features"
COLLAPSE = (
    "this happens on features that are not centered or not on the paper's scale: try variant='anywhere', the transform "
    "center"
)
DIRECTIONS = 40


def centered_rows(rows: Tensor) -> Tensor:
    """Scale rows [B, n, d] to length 1, subtract the task's mean, and scale to length 1 again, in float64."""
    unit = torch.nn.functional.normalize(rows.double(), dim=-1)
    return torch.nn.functional.normalize(unit - unit.mean(1, keepdim=True), dim=-1)


def centered_cosines(cosines: Tensor) -> Tensor:
    """Compute the cosines of centered rows from the cosines of the rows: [B, n, n]."""
    row_means = cosines.mean(2, keepdim=True)
    products = cosines - row_means - row_means.mT + row_means.mean(1, keepdim=True)
    scale = inverse_root(products.diagonal(dim1=-2, dim2=-1).unsqueeze(1))
    return products * scale * scale.mT


def distance_scale(distances: Tensor, target_spread: float) -> Tensor:
    """Return the factor that gives distances [B, way, m] a mean spread of `target_spread` over classes: [B, 1, 1]."""
    spread = distances.std(1).mean(1)[:, None, None]
    return target_spread / spread.clamp_min(torch.finfo(distances.dtype).tiny ** 0.5)


def distances_to_means(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Compute half the squared distances of queries to the class means of the support: [B, way, m]."""
    means = mean_weights(labels, way, support.shape[1]).to(support.dtype) @ support
    return torch.cdist(means, query).square() / 2


class ShiftedRows:
    """Rows x of length 1 and rows z, whose queries are shifted so that their mean equals that of the support.

    z is x in the support, and x + (mean of the support - mean of the queries) in the queries.
    """

    def __init__(self, cosines: Tensor, labels: Tensor, way: int) -> None:
        rows, support = cosines.shape[-1], labels.shape[1]
        self._cosines = cosines
        self.is_query = (torch.arange(rows, device=cosines.device) >= support).double()
        means = mean_weights(labels, way, rows)
        self._shift = ((1 - self.is_query) / support - self.is_query / (rows - support)).expand_as(means[:, :1])
        products = torch.cat([means, self._shift], 1) @ cosines
        self._along = products[:, way:]  # inner products of the shift with each row
        lengths2 = cosines.diagonal(dim1=-2, dim2=-1).unsqueeze(1)
        self.squares = lengths2 + self.is_query * (2 * self._along + (self._shift * self._along).sum(2, keepdim=True))
        products_with_z = products[:, :way] + self.is_query * (means * self._along).sum(2, keepdim=True)
        mean_norm2 = (means * products[:, :way]).sum(2, keepdim=True)
        # `squares` is |z|^2 [B, 1, rows]; `cosines` are those of z with the class means of the support [B, way, rows].
        self.cosines = products_with_z * inverse_root(mean_norm2, 1.0) * inverse_root(self.squares, 1.0)

    def products_with_sums(self, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute products of weighted sums of the rows z with each x and each z [B, k, rows], and their squares."""
        weights_of_x = weights + (weights * self.is_query).sum(2, keepdim=True) * self._shift
        with_x = weights_of_x @ self._cosines
        with_z = with_x + self.is_query * (weights_of_x * self._along).sum(2, keepdim=True)
        return with_x, with_z, (weights_of_x * with_x).sum(2, keepdim=True)


def main_directions(cosines: Tensor) -> Tensor:
    """Project rows of length 1 onto their top 40 singular directions, center, scale to length 1: [B, n + m, k].

    The coordinates in the singular directions are the eigenvectors of the cosines times the roots of the eigenvalues.
    """
    values, vectors = torch.linalg.eigh(cosines) if cosines.device.type == "cpu" else eigh_on_cores(cosines)
    rows = vectors[..., -DIRECTIONS:] * values[..., None, -DIRECTIONS:].clamp_min(0).sqrt()
    return unit_or_zero(rows - rows.mean(1, keepdim=True))


def eigh_on_cores(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Compute eigenvalues [B, r] and vectors [B, r, r] on CPU cores: a GPU takes ten times as long at this size."""
    cores = min(len(symmetric), os.cpu_count() or 1)
    with one_thread_per_operation(), ThreadPoolExecutor(cores) as threads:
        parts = list(threads.map(torch.linalg.eigh, symmetric.cpu().tensor_split(cores)))
    values, vectors = (torch.cat(part).to(symmetric.device) for part in zip(*parts, strict=True))
    return values, vectors


def unit_or_zero(rows: Tensor) -> Tensor:
    """Scale rows to length 1; a row of mere rounding error becomes zero."""
    length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    return torch.where(length > 1e-6, rows / length.clamp_min(1e-6), 0.0)


def nearness(rows: Tensor, centroids: Tensor, sharpness: float) -> Tensor:
    """Compute `sharpness` (|row|^2 - squared distance) for rows [B, r, k] and centroids [B, way, k]: [B, way, r]."""
    squares = centroids.square().sum(2, keepdim=True)
    return torch.baddbmm(squares, centroids, rows.mT, beta=-sharpness, alpha=2 * sharpness)


def normalized(weights: Tensor) -> Tensor:
    """Normalize weights [B, way, rows] to sum to 1 in each class; zeros stay zero."""
    return weights / weights.sum(2, keepdim=True).clamp_min_(torch.finfo(weights.dtype).tiny)
