"""Scores of methods on batches of tasks; features and inner products of a batch are gathered once for all methods."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError
from shotproof.evaluation.batches import Batch, TaskArrays
from shotproof.evaluation.item_tensors import ItemTensors
from shotproof.functional.feature_rows import UnitRows, class_membership
from shotproof.functional.gram import GramBlocks
from shotproof.learners.bases import CentroidMethod
from shotproof.learners.custom.generators import shared_generators
from shotproof.learners.method import Method

_PACKAGE = f"{__name__.partition('.')[0]}."
TIE = 1e-9  # scores that differ by less than this share of the largest are equal: rounding never decides


def tasks_at_a_time(shape: IntArray, items: ItemTensors, methods: list[Method]) -> int:
    """Compute how many tasks of a shape to process at once within a memory budget, on a CPU about its caches."""
    way, support, query = (int(size) for size in shape)
    floats = max(method.peak_floats_per_task(way, support, query, items.dims(method)) for method in methods)
    budget = 2**25 if items.device.type == "cpu" else 2**31
    return max(1, budget // (8 * floats))


class Gathered:
    """Inputs of one batch that methods may need, each gathered on first use: a `TasksView`."""

    def __init__(self, items: ItemTensors, arrays: TaskArrays, batch: Batch, seeds: IntArray) -> None:
        def on_device(values: npt.NDArray[Any]) -> Tensor:
            return torch.from_numpy(values).to(items.device)

        self.items = items
        self._batch, self._all_seeds = batch, seeds
        self.of = partial(Gathered, items, arrays, seeds=seeds)  # the same for another batch
        self._support = on_device(arrays.support.items[batch.support])
        self._query = on_device(arrays.query.items[batch.query])
        self.support_labels = on_device(arrays.support.slot[batch.support])
        self.seeds = on_device(seeds[batch.tasks])
        self.way = batch.way
        self._gathered: dict[Any, Any] = {}

    def _once(self, key: Any, gather: Callable[[], Any]) -> Any:
        """Gather once per key, for all methods. A cached_property would make threads wait for each other."""
        if key not in self._gathered:
            self._gathered[key] = gather()
        return self._gathered[key]

    def rows(self, method: Method) -> tuple[Tensor, Tensor, Tensor, int]:
        """Return vectors or maps in float32, as `scores` takes them."""
        gather = self.items.gather_maps if method.needs == "maps" else self.items.gather
        support, query = self._once(
            method.needs == "maps", lambda: [gather(rows).float() for rows in (self._support, self._query)]
        )
        return support, self.support_labels, query, self.way

    def texts(self) -> Tensor:
        """Return the text of each class [B, way, d], which all of its support rows share."""
        first = class_membership(self.support_labels, self.way).argmax(2)
        texts: Tensor = self._once("texts", lambda: self.items.gather_texts(self._support.gather(1, first)).float())
        return texts

    def products(self) -> GramBlocks:
        """Return the inner products of the unscaled rows."""
        blocks: GramBlocks = self._once("products", lambda: self.items.blocks(self._support, self._query))
        return blocks

    def cosines(self, scaling: UnitRows) -> Tensor:
        """Return the inner products of all rows, scaled."""
        rows = torch.cat([self._support, self._query], 1)
        cosines: Tensor = self._once(scaling, lambda: self.items.cosines(rows, scaling))
        return cosines

    def labels(self, method: Method) -> Tensor:
        """Compute the method's labels [B, m]."""
        return self._with_own_seeds(method, Gathered._compute_labels)

    def scores(self, method: Method) -> Tensor:
        """Compute the method's scores [B, m, way], and check them."""
        return self._with_own_seeds(method, Gathered._compute_scores)

    def _with_own_seeds(self, method: Method, compute: Callable[[Gathered, Method], Tensor]) -> Tensor:
        """Compute a result of a method, task by task if it is a user's method that draws from shared generators.

        The other tasks of a batch must not change a result, so each task is computed alone, with the generators at the
        task's own seed.
        """
        if _is_builtin(method):
            return compute(self, method)
        seeds = self._all_seeds[self._batch.tasks].tolist()
        with shared_generators() as generators:
            generators.seed(seeds[0])
            result = compute(self, method)
            if len(seeds) == 1 or not generators.drawn_from():
                return result
            by_task = []
            for seed, part in zip(seeds, self._batch.single_tasks(), strict=True):
                generators.seed(seed)
                by_task.append(compute(self.of(part), method))
        return torch.cat(by_task)

    def _compute_labels(self, method: Method) -> Tensor:
        exact_float32 = torch.get_float32_matmul_precision() == "highest"  # the user may have traded it for speed
        by_gram = self.items.centroids_by_gram(self._support.shape[1])
        if not isinstance(method, CentroidMethod) or by_gram or not exact_float32:
            return predict(self._compute_scores(method))
        # Float32 is twice as fast; queries whose label its rounding could change are computed again in float64.
        scores, error = self._centroid_scores(method, self._support, self.support_labels, self._query, torch.float32)
        labels = predict(scores.mT)
        contenders = (scores >= scores.amax(1, keepdim=True) - 2 * error).sum(1)
        task, index = ((contenders != 1) | ~scores.sum(1).isfinite()).nonzero(as_tuple=True)
        if len(task):
            close = (self._support[task], self.support_labels[task], self._query[task, index].unsqueeze(1))
            exact, _ = self._centroid_scores(method, *close, torch.float64)
            labels[task, index] = predict(exact.mT).squeeze(1)
        return labels

    def _centroid_scores(
        self, method: CentroidMethod, support: Tensor, labels: Tensor, query: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Compute scores [B, way, m] from products in `dtype`, and a bound on their rounding errors, [B, 1, m]."""
        norm2 = self.items.norm2
        support_norm2, query_norm2 = norm2[support], norm2[query].unsqueeze(1)
        weights = method.weights(support_norm2, labels, self.way)
        products, squares = self.items.with_centroids(weights, support, query, dtype)
        scores = method.scores_from_centroids(products, squares, query_norm2, support_norm2)
        lengths = weights @ support_norm2.sqrt().unsqueeze(-1)
        # For sums of d products. Typical errors are below a tenth of it; larger ones would need to share one sign.
        relative_error = torch.finfo(dtype).eps * math.sqrt(self.items.values.shape[1])
        return scores, relative_error * method.rounding(lengths, squares, query_norm2).amax(1, keepdim=True)

    def _compute_scores(self, method: Method) -> Tensor:
        by_gram = self.items.centroids_by_gram(self._support.shape[1])
        if isinstance(method, CentroidMethod) and not by_gram:
            task = (self._support, self.support_labels, self._query)
            scores = self._centroid_scores(method, *task, torch.float64)[0].mT
        else:
            scores = method.scores_of(self)
        expected = (*self._query.shape, self.way)
        if scores.shape != expected:
            raise InputError(
                f"method '{method.spelling}': expected scores of shape {expected}, found {tuple(scores.shape)}"
            )
        if scores.isnan().any():
            raise InputError(f"method '{method.spelling}': a score is not a number")
        return scores


def _is_builtin(method: Method) -> bool:
    """Return whether a method belongs to this package; none of these draws from the shared generators."""
    return type(method).__module__.startswith(_PACKAGE)


def predict(scores: Tensor) -> Tensor:
    """Convert scores [B, m, way] to labels [B, m]: the best class, the lowest of those that tie."""
    scale = torch.where(scores.isfinite(), scores.abs(), 0.0).amax(-1, keepdim=True)
    wins = scores >= scores.amax(-1, keepdim=True) - TIE * scale
    # The maximum of numbers that decrease with the class: for few classes much faster than argmax.
    last = scores.shape[-1] - 1
    return last - (wins * torch.arange(last, -1, -1, dtype=torch.int32, device=scores.device)).amax(-1)
