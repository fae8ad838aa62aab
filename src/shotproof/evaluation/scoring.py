"""Scores of methods on batches of tasks: each batch's features or inner products are gathered once for all methods."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from shotproof.errors import InputError
from shotproof.evaluation.batches import Batch, IntArray, TaskArrays
from shotproof.methods.gram import GramMethod, gram_blocks
from shotproof.methods.method import Method, SeededMethod

MOST_GRAM_ITEMS = 12_000  # their Gram matrix takes 1.2 GB
STRIPE = 512  # rows of the Gram matrix computed at a time
TIE = 1e-9  # scores that differ by less than this share of the largest are equal: rounding never decides


class Items:
    """The features of all items of a task set on a device and, where that pays, their inner products."""

    def __init__(self, arrays: TaskArrays, device: torch.device) -> None:
        self.device = device
        self.values = torch.from_numpy(arrays.values).to(device)
        _, support, query = arrays.shapes().T
        pairs = int((support * (support + query)).sum())
        # A pair of items costs a quarter in one large product of what it costs in the small products of tasks.
        self.gram_pays = len(self.values) <= MOST_GRAM_ITEMS and len(self.values) ** 2 <= 4 * pairs

    @cached_property
    def gram(self) -> Tensor:
        """The inner products of all items, float64: computed above the diagonal, copied below it."""
        values = self.values.double()
        gram = values.new_empty(len(values), len(values))
        for start in range(0, len(values), STRIPE):
            end = start + STRIPE
            torch.mm(values[start:end], values[start:].T, out=gram[start:end, start:])
            gram[end:, start:end] = gram[start:end, end:].T
        return gram

    def gather(self, rows: Tensor) -> Tensor:
        """The features [B, r, d] of rows [B, r], as they are stored."""
        return self.values.index_select(0, rows.flatten()).view(*rows.shape, -1)

    def blocks(self, support: Tensor, query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What `scores_from_gram` takes, for rows [B, n] and [B, m] of the features."""
        both, count = torch.cat([support, query], 1), support.shape[1]
        if not self.gram_pays:
            return gram_blocks(self.gather(both).double(), count)
        pairs = both.unsqueeze(-1) * len(self.values) + support.unsqueeze(-2)
        products = self.gram.flatten().index_select(0, pairs.flatten()).view(pairs.shape)
        return products[:, :count], products[:, count:], self.gram.diagonal()[query]


def tasks_at_a_time(shape: IntArray, items: Items, methods: list[Method]) -> int:
    """How many tasks of a shape to compute at once: memory stays bounded, and large copies near the processor."""
    way, support, query = (int(size) for size in shape)
    held = support * (4 * (support + query) + 6 * way * support)  # logistic regression holds way blocks of n x n
    if not items.gram_pays or not all(isinstance(method, GramMethod) for method in methods):
        held += 4 * (support + query) * items.values.shape[1]
    budget = 2**26 if items.device.type == "cpu" else 2**31
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

    @cached_property
    def _features(self) -> tuple[Tensor, Tensor, Tensor, int]:
        support, query = (self.items.gather(rows).float() for rows in (self._support, self._query))
        return support, self._labels, query, self._way

    @cached_property
    def _blocks(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.items.blocks(self._support, self._query)

    def scores(self, method: Method) -> Tensor:
        """The method's scores [B, m, way], checked."""
        if isinstance(method, GramMethod):
            scores = method.scores_from_gram(*self._blocks, self._labels, self._way)
        elif isinstance(method, SeededMethod):
            scores = method.seeded_scores(*self._features, self._seeds)
        else:
            scores = method.scores(*self._features)
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
