"""The items of a task set on a device: their features and inner products, gathered for tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from shotproof.evaluation.batches import TaskArrays
from shotproof.functional.feature_rows import UnitRows
from shotproof.functional.gram import GramBlocks
from shotproof.learners.bases import CentroidMethod, GramMethod, PairwiseMethod
from shotproof.learners.method import Method

MOST_GRAM_ITEMS = 12_000  # their Gram matrix takes 1.2 GB
STRIPE = 512  # rows of the Gram matrix computed at a time
PIECE = 2**23  # bytes of features gathered at a time: few for the caches, many for threads that meet between operations


class ItemTensors:
    """The features of all items of a task set and, where that pays, their inner products."""

    def __init__(self, arrays: TaskArrays, device: torch.device) -> None:
        self.device = device
        self.values = torch.from_numpy(arrays.values).to(device)
        self.maps = None if arrays.maps is None else torch.from_numpy(arrays.maps).to(device)
        self.texts = None if arrays.texts is None else torch.from_numpy(arrays.texts).to(device)
        self.norm2 = torch.cat([_norm2(part) for part in torch.split(self.values, STRIPE)])
        _, self._support, self._query = arrays.shapes().T
        self.shares_blocks = False  # whether methods need the inner products of each task's rows anyway
        self._exact: dict[UnitRows | None, Tensor] = {}
        self._grams: dict[UnitRows | None, Tensor] = {}

    @property
    def has_gram(self) -> bool:
        """Whether the inner products of all items are there, of the features as they are."""
        return None in self._grams

    def centroids_by_gram(self, support: int) -> bool:
        """Whether products with centroids are sums of inner products: not of more of them than features have numbers.

        As many support rows as classes would make their cost grow with the cube of the ways.
        """
        return (self.has_gram or self.shares_blocks) and support <= self.values.shape[1]

    def prepare(self, methods: Sequence[Method]) -> None:
        """Compute what methods share of all items, before threads ask for it."""
        of_blocks = [method for method in methods if isinstance(method, GramMethod)]
        self.shares_blocks = not all(isinstance(method, CentroidMethod) for method in of_blocks)
        for method in methods:
            if isinstance(method, (GramMethod, PairwiseMethod)) and len(self.values) <= MOST_GRAM_ITEMS:
                scaled = method.scaling if isinstance(method, PairwiseMethod) else None
                pays = self.gram_pays(method)
                if scaled not in self._exact and (pays or not isinstance(method, CentroidMethod)):
                    self._exact[scaled] = self._in_float64(scaled)
                if pays and scaled not in self._grams:
                    self._grams[scaled] = _gram(self._exact[scaled])

    def gram_pays(self, method: Method) -> bool:
        """Whether one large product of all items is worth it.

        A pair of items costs half in it, and its gather, of what it costs in the small products of tasks; and products
        with centroids, in float32, cost a task about as much as to gather its rows.
        """
        support, query = self._support, self._query
        if isinstance(method, CentroidMethod):
            saved = 16 * (support + query) * (support <= self.values.shape[1])
        else:
            saved = 2 * (support + query) * (support + query if isinstance(method, PairwiseMethod) else support)
        return len(self.values) <= MOST_GRAM_ITEMS and len(self.values) ** 2 <= int(saved.sum())

    def _in_float64(self, scaled: UnitRows | None) -> Tensor:
        """All features, scaled."""
        exact = _large(len(self.values), self.values.shape[1], self.device)
        for part, values in zip(torch.split(exact, STRIPE), torch.split(self.values, STRIPE), strict=True):
            part.copy_(scaled(values) if scaled else values)
        return exact

    def gather(self, rows: Tensor) -> Tensor:
        """The features [B, r, d] of rows [B, r], as they are stored."""
        return self.values.index_select(0, rows.flatten()).view(*rows.shape, -1)

    def dims(self, method: Method) -> int:
        """How many numbers the method sees of an item."""
        values = self.maps if method.needs == "maps" and self.maps is not None else self.values
        return values[0].numel()

    def gather_maps(self, rows: Tensor) -> Tensor:
        """The local maps [B, r, d, h, w] of rows [B, r], as they are stored."""
        assert self.maps is not None
        return self.maps.index_select(0, rows.flatten()).view(*rows.shape, *self.maps.shape[1:])

    def gather_texts(self, rows: Tensor) -> Tensor:
        """The texts [B, r, d] of the classes of rows [B, r]."""
        assert self.texts is not None
        return self.texts.index_select(0, rows.flatten()).view(*rows.shape, -1)

    def blocks(self, support: Tensor, query: Tensor) -> GramBlocks:
        """The inner products of support rows [B, n] and query rows [B, m] of the features."""
        both, count = torch.cat([support, query], 1), support.shape[1]
        if self.has_gram:
            products = _pairs(self._grams[None], both, support)
        else:
            products = self.norm2.new_empty(*both.shape, count)
            for few, rows in self._few(both, torch.float64):
                torch.bmm(rows, rows[:, :count].mT, out=products[few])
        return GramBlocks(products[:, :count], products[:, count:], self.norm2[query])

    def with_centroids(
        self, weights: Tensor, support: Tensor, query: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Sums of rows [B, n] with weights [B, way, n]: times rows [B, m], [B, way, m], and their squares [B, way, 1].

        They are computed in `dtype`, and given in float64.
        """
        both, count = torch.cat([support, query], 1), support.shape[1]
        products, squares = weights.new_empty(*weights.shape[:2], query.shape[1]), torch.empty_like(weights[..., :1])
        for few, rows in self._few(both, dtype):
            centroids = weights[few].to(dtype) @ rows[:, :count]
            products[few] = centroids @ rows[:, count:].mT
            squares[few] = centroids.square_().sum(2, keepdim=True)
        return products, squares

    def cosines(self, rows: Tensor, scaled: UnitRows) -> Tensor:
        """The inner products [B, r, r] of the scaled features of rows [B, r]."""
        if scaled in self._grams:
            return _pairs(self._grams[scaled], rows, rows)
        cosines = self.norm2.new_empty(*rows.shape, rows.shape[1])
        for few, values in self._few(rows, torch.float64, scaled):
            torch.bmm(values, values.mT, out=cosines[few])
        return cosines

    def _few(self, rows: Tensor, dtype: torch.dtype, scaled: UnitRows | None = None) -> Iterator[tuple[slice, Tensor]]:
        """The features [b, r, d] of rows [B, r] of few tasks at a time, in memory that the next ones overwrite."""
        tasks, count, dims = *rows.shape, self.values.shape[1]
        budget = PIECE if self.device.type == "cpu" else 2**30
        size = min(tasks, max(1, budget // (dtype.itemsize * count * dims)))
        source = self._exact.get(scaled, self.values)
        held = torch.empty(size * count, dims, dtype=source.dtype, device=self.device)
        for start in range(0, tasks, size):
            places = rows[start : start + size].flatten()
            values = torch.index_select(source, 0, places, out=held[: len(places)]).to(dtype)
            if scaled and source is self.values:
                values = scaled(values)
            yield slice(start, start + size), values.view(-1, count, dims)


def _gram(values: Tensor) -> Tensor:
    """All inner products, computed above the diagonal, copied below it."""
    gram = _large(len(values), len(values), values.device)
    for start in range(0, len(values), STRIPE):
        end = start + STRIPE
        torch.mm(values[start:end], values[start:].T, out=gram[start:end, start:])
        gram[end:, start:end] = gram[start:end, end:].T
    return gram


def _pairs(gram: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """The entries of rows [B, p] and columns [B, q]: [B, p, q]."""
    # A gather by 32-bit numbers is twice as fast, and MOST_GRAM_ITEMS squared is one.
    pairs = first.int().unsqueeze(-1) * len(gram) + second.int().unsqueeze(-2)
    return gram.flatten().index_select(0, pairs.flatten()).view(pairs.shape)


def _large(rows: int, columns: int, device: torch.device) -> Tensor:
    """An empty float64 matrix; on a CPU made by NumPy, for it asks for huge pages: gathers are twice as fast there."""
    if device.type == "cpu":
        return torch.from_numpy(np.empty((rows, columns)))
    return torch.empty(rows, columns, dtype=torch.float64, device=device)


def _norm2(rows: Tensor) -> Tensor:
    """|row|^2 in float64, [rows]."""
    length: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    return length.square_()
