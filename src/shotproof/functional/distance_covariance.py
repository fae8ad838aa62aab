"""Brownian distance covariance between the channels of a map, as in DeepBDC."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shotproof.core.lazy import torch
from shotproof.functional.gram import GramBlocks
from shotproof.functional.local_maps import CHUNK_SIZE

if TYPE_CHECKING:
    from torch import Tensor

EPSILON = 1e-5  # inside the root, as in the published code


def bdc_products(maps: Tensor, support: int, scale: float) -> GramBlocks:
    """Compute inner products of the BDC vectors of maps [B, n + m, d, r], of which the first n = `support` are support.

    For matrices E and F before centering, <A, B> = <E, F> - 2 d r_E.r_F + d^2 mean_E mean_F, with row means r. So E is
    computed a few rows at a time and never stored.
    """
    d = maps.shape[2]
    products: Tensor | float = 0.0
    query_norm2: Tensor | float = 0.0
    means = []
    size = max(1, CHUNK_SIZE // (3 * maps[..., 0].numel()))
    for start in range(0, d, size):
        roots = _channel_distances(maps, slice(start, start + size), scale)
        means.append(roots.mean(-1))
        flat = roots.flatten(2)
        products = products + flat @ flat[:, :support].mT
        query_norm2 = query_norm2 + flat[:, support:].square().sum(-1)
    mean = torch.cat(means, -1)  # [B, n + m, d]
    grand = mean.mean(-1, keepdim=True)
    diagonal = math.sqrt(EPSILON) - 2 * mean + grand
    # Products over the upper triangle with the diagonal: half of the whole plus half of the diagonal.
    products = products - 2 * d * mean @ mean[:, :support].mT + d**2 * grand @ grand[:, :support].mT
    products = (products + diagonal @ diagonal[:, :support].mT) / 2
    query_mean, query_grand, query_diagonal = mean[:, support:], grand[:, support:, 0], diagonal[:, support:]
    query_norm2 = (
        query_norm2
        - 2 * d * query_mean.square().sum(-1)
        + d**2 * query_grand.square()
        + query_diagonal.square().sum(-1)
    )
    return GramBlocks(products[:, :support], products[:, support:], query_norm2 / 2)


def bdc_vectors(maps: Tensor, log_scale: Tensor) -> Tensor:
    """Compute the BDC vectors of maps [b, d, locations]: upper triangles with the diagonal, [b, d (d + 1) / 2].

    The BDC matrix is sqrt(e^log_scale |F_i - F_j|^2 + 1e-5) over all pairs of channels, with row and column means
    removed.
    """
    roots = _channel_distances(maps, slice(None), log_scale.exp())
    centered = roots - roots.mean(1, keepdim=True) - roots.mean(2, keepdim=True) + roots.mean((1, 2), keepdim=True)
    rows, columns = torch.triu_indices(maps.shape[1], maps.shape[1], device=maps.device)
    return centered[:, rows, columns]


def _channel_distances(maps: Tensor, rows: slice, scale: float | Tensor) -> Tensor:
    """Compute sqrt(scale |F_i - F_j|^2 + 1e-5) for channels i in `rows` and all channels j, of maps [..., d, r]."""
    norm2 = maps.square().sum(-1)
    distance2 = norm2[..., rows, None] + norm2[..., None, :] - 2 * maps[..., rows, :] @ maps.mT
    return (scale * distance2.clamp(min=0) + EPSILON).sqrt()
