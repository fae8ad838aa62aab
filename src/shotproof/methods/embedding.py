"""The common start of Proto-LP and ECPE: the task's rows in their few main directions."""

from __future__ import annotations

import torch
from torch import Tensor

from shotproof.methods.full_gram import unit_products

DIRECTIONS = 40


def main_directions(products: Tensor) -> Tensor:
    """Rows [B, n + m, k] from products: length 1, the top 40 singular directions, joint mean taken away, length 1.

    The coordinates in the singular directions are the eigenvectors of the products times the roots of the eigenvalues.
    """
    values, vectors = torch.linalg.eigh(unit_products(products))
    rows = vectors[..., -DIRECTIONS:] * values[..., None, -DIRECTIONS:].clamp_min(0).sqrt()
    return unit(rows - rows.mean(1, keepdim=True))


def unit(rows: Tensor) -> Tensor:
    """Rows scaled to length 1; a row of rounding error becomes zero."""
    length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    return torch.where(length > 1e-6, rows / length.clamp_min(1e-6), 0.0)


def nearness(rows: Tensor, centroids: Tensor) -> Tensor:
    """Minus the squared distances of rows [B, r, k] to centroids [B, way, k], plus |row|^2: [B, way, r]."""
    return 2 * centroids @ rows.mT - centroids.square().sum(2, keepdim=True)
