"""Items of a task set on a device: their features and inner products, gathered for tasks."""

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
PIECE = 2**23  # bytes of features gathered at a time: they fit into caches, but keep threads busy between operations


class ItemTensors:
    """Features of all items of a task set and, if it saves time, their inner products."""

    def __init__(self, arrays: TaskArrays, device: torch.device) -> None:
        self.device = device
        self.values = torch.from_numpy(arrays.values).to(device)
        self.maps = None if arrays.maps is None else torch.from_numpy(arrays.maps).to(device)
        self.texts = None if arrays.texts is None else torch.from_numpy(arrays.texts).to(device)
        self.norm2 = torch.cat([_norm2(part) for part in torch.split(self.values, STRIPE)])
        _, self._support, self._query = arrays.shapes().T
        self.shares_blocks = False  # whether methods need the inner products of each task's rows in any case
        self._exact: dict[UnitRows | None, Tensor] = {}
        self._grams: dict[UnitRows | None, Tensor] = {}

    @property
    def has_gram(self) -> bool:
        """Return whether the inner products of all items are available, for unscaled features."""
        return None in self._grams

    def centroids_by_gram(self, support: int) -> bool:
        """Return whether products with centroids are computed as sums of inner products.

        They are not if there are more support rows than dimensions, since their cost would grow with the cube of the
        way.
        """
        return (self.has_gram or self.shares_blocks) and support <= self.values.shape[1]

    def prepare(self, methods: Sequence[Method]) -> None:
        """Compute what the methods share for all items, before threads need it."""
        gram_methods = [method for method in methods if isinstance(method, GramMethod)]
        self.shares_blocks = not all(isinstance(method, CentroidMethod) for method in gram_methods)
        for method in methods:
            if isinstance(method, (GramMethod, PairwiseMethod)) and len(self.values) <= MOST_GRAM_ITEMS:
                scaling = method.scaling if isinstance(method, PairwiseMethod) else None
                pays = self.gram_pays(method)
                if scaling not in self._exact and (pays or not isinstance(method, CentroidMethod)):
                    self._exact[scaling] = self._to_float64(scaling)
                if pays and scaling not in self._grams:
                    self._grams[scaling] = _gram(self._exact[scaling])

    def gram_pays(self, method: Method) -> bool:
        """Return whether one large product of all items saves time.

        In the large product, including the gather, a pair of items costs half of what it costs in the small products of
        tasks. Products with centroids, in float32, cost about as much per task as gathering its rows.
        """
        support, query = self._support, self._query
        if isinstance(method, CentroidMethod):
            saved = 16 * (support + query) * (support <= self.values.shape[1])
        else:
            saved = 2 * (support + query) * (support + query if isinstance(method, PairwiseMethod) else support)
        return len(self.values) <= MOST_GRAM_ITEMS and len(self.values) ** 2 <= int(saved.sum())

    def _to_float64(self, scaling: UnitRows | None) -> Tensor:
        """Convert all features to float64, scaled."""
        exact = _allocate(len(self.values), self.values.shape[1], self.device)
        for part, values in zip(torch.split(exact, STRIPE), torch.split(self.values, STRIPE), strict=True):
            part.copy_(scaling(values) if scaling else values)
        return exact

    def gather(self, rows: Tensor) -> Tensor:
        """Gather the features [B, r, d] of rows [B, r], in their stored type."""
        return self.values.index_select(0, rows.flatten()).view(*rows.shape, -1)

    def dims(self, method: Method) -> int:
        """Return the number of values per item that the method uses."""
        values = self.maps if method.needs == "maps" and self.maps is not None else self.values
        return values[0].numel()

    def gather_maps(self, rows: Tensor) -> Tensor:
        """Gather the local maps [B, r, d, h, w] of rows [B, r], in their stored type."""
        assert self.maps is not None
        return self.maps.index_select(0, rows.flatten()).view(*rows.shape, *self.maps.shape[1:])

    def gather_texts(self, rows: Tensor) -> Tensor:
        """Gather the texts [B, r, d] of the classes of rows [B, r]."""
        assert self.texts is not None
        return self.texts.index_select(0, rows.flatten()).view(*rows.shape, -1)

    def blocks(self, support: Tensor, query: Tensor) -> GramBlocks:
        """Compute the inner products of support rows [B, n] and query rows [B, m] of the features."""
        both, count = torch.cat([support, query], 1), support.shape[1]
        if self.has_gram:
            products = _gather_pairs(self._grams[None], both, support)
        else:
            products = self.norm2.new_empty(*both.shape, count)
            for part, rows in self._in_parts(both, torch.float64):
                torch.bmm(rows, rows[:, :count].mT, out=products[part])
        return GramBlocks(products[:, :count], products[:, count:], self.norm2[query])

    def with_centroids(
        self, weights: Tensor, support: Tensor, query: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Compute centroids of support rows [B, n], and their products with query rows [B, m].

        The centroids are sums with weights [B, way, n]. Returns the products [B, way, m] and the squared lengths of the
        centroids [B, way, 1], computed in `dtype` and returned in float64.
        """
        both, count = torch.cat([support, query], 1), support.shape[1]
        products, squares = weights.new_empty(*weights.shape[:2], query.shape[1]), torch.empty_like(weights[..., :1])
        for part, rows in self._in_parts(both, dtype):
            centroids = weights[part].to(dtype) @ rows[:, :count]
            products[part] = centroids @ rows[:, count:].mT
            squares[part] = centroids.square_().sum(2, keepdim=True)
        return products, squares

    def cosines(self, rows: Tensor, scaling: UnitRows) -> Tensor:
        """Compute the inner products [B, r, r] of the scaled features of rows [B, r]."""
        if scaling in self._grams:
            return _gather_pairs(self._grams[scaling], rows, rows)
        cosines = self.norm2.new_empty(*rows.shape, rows.shape[1])
        for part, values in self._in_parts(rows, torch.float64, scaling):
            torch.bmm(values, values.mT, out=cosines[part])
        return cosines

    def _in_parts(
        self, rows: Tensor, dtype: torch.dtype, scaling: UnitRows | None = None
    ) -> Iterator[tuple[slice, Tensor]]:
        """Yield the features [b, r, d] of rows [B, r] for a few tasks at a time, in a buffer that is reused."""
        tasks, count, dims = *rows.shape, self.values.shape[1]
        budget = PIECE if self.device.type == "cpu" else 2**30
        size = min(tasks, max(1, budget // (dtype.itemsize * count * dims)))
        source = self._exact.get(scaling, self.values)
        buffer = torch.empty(size * count, dims, dtype=source.dtype, device=self.device)
        for start in range(0, tasks, size):
            indices = rows[start : start + size].flatten()
            values = torch.index_select(source, 0, indices, out=buffer[: len(indices)]).to(dtype)
            if scaling and source is self.values:
                values = scaling(values)
            yield slice(start, start + size), values.view(-1, count, dims)


def _gram(values: Tensor) -> Tensor:
    """Compute all inner products above the diagonal, and copy them below it."""
    gram = _allocate(len(values), len(values), values.device)
    for start in range(0, len(values), STRIPE):
        end = start + STRIPE
        torch.mm(values[start:end], values[start:].T, out=gram[start:end, start:])
        gram[end:, start:end] = gram[start:end, end:].T
    return gram


def _gather_pairs(gram: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Gather the entries of rows [B, p] and columns [B, q]: [B, p, q]."""
    # Gathering with 32-bit indices is twice as fast, and MOST_GRAM_ITEMS squared fits into 32 bits.
    pairs = first.int().unsqueeze(-1) * len(gram) + second.int().unsqueeze(-2)
    return gram.flatten().index_select(0, pairs.flatten()).view(pairs.shape)


def _allocate(rows: int, columns: int, device: torch.device) -> Tensor:
    """Allocate a float64 matrix; on a CPU with NumPy, whose huge pages make gathers twice as fast."""
    if device.type == "cpu":
        return torch.from_numpy(np.empty((rows, columns)))
    return torch.empty(rows, columns, dtype=torch.float64, device=device)


def _norm2(rows: Tensor) -> Tensor:
    """Compute |row|^2 in float64, [rows]."""
    length: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    return length.square_()
