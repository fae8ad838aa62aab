"""DN4's measure: from each location of a query to the nearest descriptors of a class."""

from __future__ import annotations

import torch
from torch import Tensor

from shotproof.models.scoring.local_maps import ClassDescriptors, chunks


def nearest_descriptor_scores(classes: ClassDescriptors, asked: Tensor, k: int) -> Tensor:
    """The sum over a query's locations of the k largest cosines to each class's descriptors, [B, m, way].

    Args:
        classes: descriptors of length 1
        asked: those of the queries, of length 1, [B, m, r, d]
        k: at most as many as the smallest class of a task has count
    """
    scores = []
    # One product of all descriptors for a chunk of queries. Gradients need the places of the largest, not the cosines.
    for part in chunks(asked, held=asked.shape[2] * classes.present[0].numel()):
        cosines = part.flatten(1, 2) @ classes.rows.flatten(1, 2).mT
        cosines = cosines.view(*part.shape[:3], *classes.present.shape[1:])
        scores.append(largest(cosines, classes.present[:, None, None], k).sum(2))
    return torch.cat(scores, 1)


def largest(values: Tensor, present: Tensor, k: int) -> Tensor:
    """The sum of the k largest of values [B, ..., way, p] that are present, k at most what the smallest class has."""
    values = values.masked_fill(~present, -torch.inf)
    fewest = present.sum(-1, keepdim=True).amin(-2).squeeze(-1)
    total = torch.zeros_like(values[..., 0])
    # A maximum at a time: for small k several times as fast as a partial sort.
    for taken in range(min(k, values.shape[-1])):
        best = values.max(-1, keepdim=True)
        total += torch.where(taken < fewest.unsqueeze(-1), best.values.squeeze(-1), 0.0)
        values.scatter_(-1, best.indices, -torch.inf)
    return total
