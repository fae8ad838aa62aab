"""What scores on local maps share: an item as the descriptors at the locations of its map, which have no order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

MOST_HELD = 2**24  # numbers in the largest intermediate result: queries are taken in chunks that stay below


@dataclass(frozen=True)
class ClassDescriptors:
    """The descriptors of each class's support maps, padded with zeros to the largest class.

    rows: [B, way, p, d]
    present: [B, way, p], False where padded
    """

    rows: Tensor
    present: Tensor

    @classmethod
    def of(cls, descriptors: Tensor, labels: Tensor, way: int) -> ClassDescriptors:
        """From support descriptors [B, n, r, d] and labels [B, n]."""
        index, present = rows_of_classes(labels, way)
        task = torch.arange(len(labels), device=labels.device)[:, None, None]
        rows = descriptors[task, index] * present[..., None, None]
        return cls(rows.flatten(2, 3), present.repeat_interleave(descriptors.shape[2], -1))

    @property
    def count(self) -> Tensor:
        """How many descriptors each class has, in the type of `rows`: [B, way]."""
        return self.present.sum(-1).to(self.rows.dtype)


def descriptors(maps: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """Maps [B, r, d, h, w] to descriptors [B, r, h w, d]."""
    return maps.to(dtype).flatten(3).mT


def unit(values: Tensor) -> Tensor:
    """Descriptors [..., d] of length 1; zero stays zero."""
    return torch.nn.functional.normalize(values, dim=-1, eps=torch.finfo(values.dtype).tiny)


def rows_of_classes(labels: Tensor, way: int) -> tuple[Tensor, Tensor]:
    """The support rows of each class [B, way, k] for k the largest class, and which of them there are."""
    counts = torch.nn.functional.one_hot(labels, way).sum(1)
    rank = torch.arange(int(counts.max()), device=labels.device)
    first = (counts.cumsum(-1) - counts).unsqueeze(-1)
    present = rank < counts.unsqueeze(-1)
    position = torch.where(present, first + rank, 0)
    order = labels.sort(dim=-1, stable=True).indices
    return order.gather(-1, position.flatten(1)).view_as(position), present


def chunks(query: Tensor, held: int) -> Iterator[Tensor]:
    """Query descriptors [B, m, r, d] in chunks of m, where a query of one task holds so many numbers."""
    yield from torch.split(query, max(1, MOST_HELD // (held * len(query))), dim=1)
