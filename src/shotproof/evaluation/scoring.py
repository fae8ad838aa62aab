"""Scores of methods on batches of tasks: each batch's features or inner products are gathered once for all methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from shotproof.errors import InputError
from shotproof.evaluation.batches import Batch, IntArray, TaskArrays
from shotproof.methods.full_gram import FullGramMethod, transformed
from shotproof.methods.gram import GramMethod, gram_blocks
from shotproof.methods.method import Method, SeededMethod
from shotproof.methods.power import PowerTransform

MOST_GRAM_ITEMS = 12_000  # their Gram matrix takes 1.2 GB
STRIPE = 512  # rows of the Gram matrix computed at a time
TIE = 1e-9  # scores that differ by less than this share of the largest are equal: rounding never decides


class Items:
    """The features of all items of a task set on a device and, where that pays, their inner products."""

    def __init__(self, arrays: TaskArrays, device: torch.device) -> None:
        self.device = device
        self.values = torch.from_numpy(arrays.values).to(device)
        self.maps = None if arrays.maps is None else torch.from_numpy(arrays.maps).to(device)
        _, support, query = arrays.shapes().T
        self.gram_pays = self._gram_pays(int((support * (support + query)).sum()))
        self.full_gram_pays = self._gram_pays(int(((support + query) ** 2).sum()))
        self._exact: dict[PowerTransform | None, Tensor] = {}
        self._grams: dict[PowerTransform | None, Tensor] = {}

    def _gram_pays(self, pairs: int) -> bool:
        """A pair of items costs half in one large product, and its gather, of what the small products of tasks cost."""
        return len(self.values) <= MOST_GRAM_ITEMS and len(self.values) ** 2 <= 2 * pairs

    def prepare(self, methods: Sequence[Method]) -> None:
        """Compute what methods share of all items, before threads ask for it."""
        for method in methods:
            if isinstance(method, (GramMethod, FullGramMethod)) and len(self.values) <= MOST_GRAM_ITEMS:
                transform = method.transform() if isinstance(method, FullGramMethod) else None
                if transform not in self._exact:
                    self._exact[transform] = transformed(self.values, transform)
                pays = self.full_gram_pays if isinstance(method, FullGramMethod) else self.gram_pays
                if pays and transform not in self._grams:
                    self._grams[transform] = self._gram(self._exact[transform])

    @staticmethod
    def _gram(values: Tensor) -> Tensor:
        """All inner products, computed above the diagonal, copied below it."""
        gram = values.new_empty(len(values), len(values))
        for start in range(0, len(values), STRIPE):
            end = start + STRIPE
            torch.mm(values[start:end], values[start:].T, out=gram[start:end, start:])
            gram[end:, start:end] = gram[start:end, end:].T
        return gram

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

    def blocks(self, support: Tensor, query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What `scores_from_gram` takes, for rows [B, n] and [B, m] of the features."""
        both, count = torch.cat([support, query], 1), support.shape[1]
        if None not in self._grams:
            return gram_blocks(self._gather_exact(both, None), count)
        products = self._pairs(self._grams[None], both, support)
        return products[:, :count], products[:, count:], self._grams[None].diagonal()[query]

    def products(self, rows: Tensor, transform: PowerTransform | None) -> Tensor:
        """The inner products [B, r, r] of the transformed features of rows [B, r]."""
        if transform not in self._grams:
            # In parts, for a method's chunk is made for the products, and features are several times as large.
            budget = 2**23 if self.device.type == "cpu" else 2**30
            parts = torch.split(rows, max(1, budget // (8 * rows.shape[1] * self.values.shape[1])))
            gathered = (self._gather_exact(part, transform) for part in parts)
            return torch.cat([values @ values.mT for values in gathered])
        return self._pairs(self._grams[transform], rows, rows)

    def _gather_exact(self, rows: Tensor, transform: PowerTransform | None) -> Tensor:
        """The features [B, r, d] of rows [B, r], transformed, in float64."""
        if transform not in self._exact:
            return transformed(self.gather(rows), transform)
        return self._exact[transform].index_select(0, rows.flatten()).view(*rows.shape, -1)

    @staticmethod
    def _pairs(gram: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """The entries of rows [B, p] and columns [B, q]: [B, p, q]."""
        # A gather by 32-bit numbers is twice as fast, and MOST_GRAM_ITEMS squared is one.
        pairs = first.int().unsqueeze(-1) * len(gram) + second.int().unsqueeze(-2)
        return gram.flatten().index_select(0, pairs.flatten()).view(pairs.shape)


def tasks_at_a_time(shape: IntArray, items: Items, methods: list[Method]) -> int:
    """How many tasks of a shape to compute at once: memory stays bounded, on a CPU near what its caches hold."""
    way, support, query = (int(size) for size in shape)
    held = max(method.floats_a_task(way, support, query, items.dims(method)) for method in methods)
    if not items.gram_pays and any(isinstance(method, GramMethod) for method in methods):
        held += 2 * (support + query) * items.values[0].numel()
    budget = 2**25 if items.device.type == "cpu" else 2**31
    return max(1, budget // (8 * held))


class Gathered:
    """What methods may need of one batch, each thing gathered when first asked for."""

    def __init__(self, items: Items, arrays: TaskArrays, batch: Batch, seeds: IntArray) -> None:
        def on_device(values: npt.NDArray[Any]) -> Tensor:
            return torch.from_numpy(values).to(items.device)

        self.items = items
        self.of = partial(Gathered, items, arrays, seeds=seeds)  # the same of another batch
        self._support = on_device(arrays.support.items[batch.support])
        self._query = on_device(arrays.query.items[batch.query])
        self._labels = on_device(arrays.support.slot[batch.support])
        self._seeds = on_device(seeds[batch.tasks])
        self._way = batch.way
        self._gathered: dict[Any, Any] = {}

    def _once(self, key: Any, gather: Callable[[], Any]) -> Any:
        """What was gathered under a key, for all methods. A cached_property would make threads wait for each other."""
        if key not in self._gathered:
            self._gathered[key] = gather()
        return self._gathered[key]

    def _rows(self, method: Method) -> tuple[Tensor, Tensor, Tensor, int]:
        """Vectors or maps in float32, as `scores` takes them."""
        gather = self.items.gather_maps if method.needs == "maps" else self.items.gather
        support, query = self._once(method.needs, lambda: [gather(r).float() for r in (self._support, self._query)])
        return support, self._labels, query, self._way

    def _products(self, transform: PowerTransform | None) -> Tensor:
        rows = torch.cat([self._support, self._query], 1)
        products: Tensor = self._once(transform, lambda: self.items.products(rows, transform))
        return products

    def _blocks(self) -> tuple[Tensor, Tensor, Tensor]:
        blocks: tuple[Tensor, Tensor, Tensor] = self._once(
            "blocks", lambda: self.items.blocks(self._support, self._query)
        )
        return blocks

    def scores(self, method: Method) -> Tensor:
        """The method's scores [B, m, way], checked."""
        if isinstance(method, GramMethod):
            scores = method.scores_from_gram(*self._blocks(), self._labels, self._way)
        elif isinstance(method, FullGramMethod):
            products = self._products(method.transform())
            scores = method.scores_from_products(products, self._labels, self._way, self._seeds)
        elif isinstance(method, SeededMethod):
            scores = method.seeded_scores(*self._rows(method), self._seeds)
        else:
            scores = method.scores(*self._rows(method))
        expected = (*self._query.shape, self._way)
        if scores.shape != expected:
            raise InputError(
                f"method '{method.name}': expected scores of shape {expected}, found {tuple(scores.shape)}"
            )
        if scores.isnan().any():
            raise InputError(f"method '{method.name}': a score is not a number")
        return scores


def predict(scores: Tensor) -> Tensor:
    """Scores [B, m, way] to labels [B, m]: the best class, the lowest of those that tie."""
    scale = torch.where(scores.isfinite(), scores.abs(), 0.0).amax(-1, keepdim=True)
    return (scores >= scores.amax(-1, keepdim=True) - TIE * scale).int().argmax(-1)
