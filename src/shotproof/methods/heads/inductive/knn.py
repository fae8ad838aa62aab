"""The k nearest neighbors by cosine similarity."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.core.nouns import counted
from shotproof.core.options import option
from shotproof.methods.shared.gram import GramBlocks, GramMethod, unit_rows


@dataclass(frozen=True)
class NearestNeighbors(GramMethod):
    """Score: the class's votes among the k most similar support rows; equal votes are decided by summed similarity."""

    about = "k nearest neighbors, cosine"
    example = "knn(k=3)"

    k: int = option(1, "support rows that vote", least=1)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """Votes plus a share of the summed similarity that is too small to outweigh a vote."""
        if self.k > labels.shape[-1]:
            held = counted(labels.shape[-1], "support item")
            raise InputError(f"method 'knn': k is {self.k}, but a task has only {held}")
        _, similarity = unit_rows(gram)
        # Equally similar rows are taken by class, never by row; rounding makes copies of an item equally similar.
        labels, order = labels.sort(dim=-1, stable=True)
        similarity = similarity.gather(-1, order.unsqueeze(-2).expand_as(similarity)).round(decimals=12)
        nearest, position = similarity.sort(dim=-1, descending=True, stable=True)
        nearest, position = nearest[..., : self.k], position[..., : self.k]
        voters = labels.unsqueeze(-2).expand_as(similarity).gather(-1, position)
        scores = torch.zeros(*similarity.shape[:-1], way, dtype=similarity.dtype, device=similarity.device)
        return scores.scatter_add_(-1, voters, 1 + nearest / (4 * self.k))
