"""DN4: from each location of the query to the nearest descriptors of the class."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.gram import GramBlocks, GramMethod, unit_rows
from shotproof.methods.shared.local_maps import ClassDescriptors, MapMethod, chunks, descriptors, rows_of_classes, unit

PAPER = "Li et al., Revisiting Local Descriptor based Image-to-Class Measure for Few-shot Learning, 2019"


@dataclass(frozen=True)
class Dn4(MapMethod):
    """Score: the sum over the query's locations of the k largest cosines to the class's descriptors.

    Where the smallest class of a task has fewer than k descriptors, k is their number.
    """

    about = "DN4: nearest local descriptors, image to class"
    paper = PAPER
    example = "dn4(k=1)"

    k: int = option(3, "nearest descriptors of each class that count", least=1)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """One product of all descriptors for a chunk of queries."""
        classes = ClassDescriptors.of(unit(descriptors(support)), labels, way)
        asked = unit(descriptors(query))
        scores = []
        for part in chunks(asked, held=asked.shape[2] * classes.present[0].numel()):
            cosines = part.flatten(1, 2) @ classes.rows.flatten(1, 2).mT
            cosines = cosines.view(*part.shape[:3], *classes.present.shape[1:])
            scores.append(largest(cosines, classes.present[:, None, None], self.k).sum(2))
        return torch.cat(scores, 1)


@dataclass(frozen=True)
class GlobalDn4(GramMethod):
    """Score: the sum of the k largest cosines to the class's support rows, k at most the shots of the smallest class.

    DN4's rule on one vector per item, as in SpurAudio's comparison of heads; with one shot, the nearest neighbor.
    """

    about = "DN4's rule on whole items: the k largest cosines of each class"
    paper = PAPER
    example = "dn4-global(k=1)"

    k: int = option(3, "nearest support rows of each class that count", least=1)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """The cosines by class, then the largest."""
        _, cosines = unit_rows(gram)
        index, present = rows_of_classes(labels, way)
        columns = index.flatten(1).unsqueeze(1).expand(-1, cosines.shape[1], -1)
        by_class = cosines.gather(-1, columns).view(*cosines.shape[:2], *index.shape[1:])
        return largest(by_class, present.unsqueeze(1), self.k)


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
