"""The common start of Proto-LP and ECPE: the task's rows in their few main directions."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from shotproof.core.runtime.devices import one_thread_per_operation

DIRECTIONS = 40


def main_directions(cosines: Tensor) -> Tensor:
    """Rows of length 1, by their cosines, in the top 40 singular directions, joint mean off, length 1: [B, n + m, k].

    The coordinates in the singular directions are the eigenvectors of the cosines times the roots of the eigenvalues.
    """
    values, vectors = torch.linalg.eigh(cosines) if cosines.device.type == "cpu" else eigh_on_cores(cosines)
    rows = vectors[..., -DIRECTIONS:] * values[..., None, -DIRECTIONS:].clamp_min(0).sqrt()
    return unit(rows - rows.mean(1, keepdim=True))


def eigh_on_cores(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues [B, r] and vectors [B, r, r], by the CPU's cores: a GPU takes ten times as long for such sizes."""
    cores = min(len(symmetric), os.cpu_count() or 1)
    with one_thread_per_operation(), ThreadPoolExecutor(cores) as threads:
        parts = list(threads.map(torch.linalg.eigh, symmetric.cpu().tensor_split(cores)))
    values, vectors = (torch.cat(part).to(symmetric.device) for part in zip(*parts, strict=True))
    return values, vectors


def unit(rows: Tensor) -> Tensor:
    """Rows scaled to length 1; a row of rounding error becomes zero."""
    length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    return torch.where(length > 1e-6, rows / length.clamp_min(1e-6), 0.0)


def nearness(rows: Tensor, centroids: Tensor, sharpness: float) -> Tensor:
    """`sharpness` times (|row|^2 - squared distance) of rows [B, r, k] and centroids [B, way, k]: [B, way, r]."""
    squares = centroids.square().sum(2, keepdim=True)
    return torch.baddbmm(squares, centroids, rows.mT, beta=-sharpness, alpha=2 * sharpness)
