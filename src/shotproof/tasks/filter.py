"""Of many random tasks the worst: filtered tasks (Hard-Meta-Dataset++, appendix Q).

Task t is the hardest of its own candidates, tasks number t * candidates to (t + 1) * candidates - 1 of the base
sampler, for nearest centroids on the given features. With one candidate a task it is the base sampler's set.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor

from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, UnknownName
from shotproof.evaluation.batches import TaskArrays
from shotproof.evaluation.scoring import predict
from shotproof.features.features import Features
from shotproof.methods.gram import gram_blocks
from shotproof.methods.method import require_positive
from shotproof.methods.ncc import NearestCentroid
from shotproof.tables import Meta
from shotproof.tasks.pool import Design, Pool
from shotproof.tasks.sampler import Sampler, samplers
from shotproof.tasks.taskset import TaskSet

BASES = ("random", "meta_dataset")
BY = ("accuracy", "loss")
KEEP = ("worst", "best")

_MOST_GRAM_ITEMS = 6_000  # their inner products take 288 MB
_CANDIDATES_AT_A_TIME = 1_000
_AT_A_TIME = 2**23  # numbers that are gathered at a time
_DIGITS = 9  # losses that differ by less are equal: no platform's last bit decides

FloatArray = npt.NDArray[np.float64]


class Difficulty(NamedTuple):
    """Of each candidate: the share of its queries that nearest centroids label rightly, and their mean loss."""

    accuracy: FloatArray
    loss: FloatArray


class FilterSampler(Sampler):
    """The worst (or best) of `candidates` tasks of a base sampler, by accuracy (ties by loss) or by loss."""

    about: ClassVar[str] = "the worst of many random tasks, for nearest centroids on given features"

    def __init__(
        self,
        catalog: Catalog,
        design: Design,
        seed: int,
        *,
        features: Features | None = None,
        candidates: int = 100,
        by: str = "accuracy",
        keep: str = "worst",
        base: str = "random",
        skip_small_classes: bool = False,
    ) -> None:
        if features is None:
            raise InputError("sampler 'filter' needs features (--features features.parquet)")
        for what, value, known in (("by", by, BY), ("keep", keep, KEEP), ("base", base, BASES)):
            if value not in known:
                raise UnknownName(what, value, known)
        require_positive("candidates", candidates, int)
        takes = samplers.inputs(base)
        options = {"skip_small_classes": skip_small_classes} if "skip_small_classes" in takes else {}
        self.base = samplers.make(base, catalog, design, seed, **options)
        self.candidates, self.by, self.keep, self.base_name = candidates, by, keep, base
        self.skip_small_classes = skip_small_classes
        self.items = Pool.of(catalog).items
        self.values = features.array[features.rows_of(self.items)]

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks, with their difficulty and that of their candidates in the mean."""
        step = max(1, _CANDIDATES_AT_A_TIME // self.candidates)
        parts = (tasks[start : start + step] for start in range(0, len(tasks), step))
        return pa.concat_tables([table for part in parts for table in self._worst(part)])

    def parameters(self) -> Meta:
        """How many candidates, and how one is chosen."""
        chosen = {"candidates": self.candidates, "by": self.by, "keep": self.keep, "base": self.base_name}
        small = {"skip_small_classes": True} if self.skip_small_classes else {}
        varies: Meta = {name: None for name, value in self.base.parameters().items() if value is None}
        return {**chosen, **small, **varies}

    def summary(self, tasks: TaskSet) -> Meta:
        """The accuracy and loss of the tasks, beside those of all candidates."""
        first = tasks.table.take(pa.array(tasks.starts[:-1]))
        columns = ("accuracy", "candidates_accuracy", "loss", "candidates_loss")
        means = {f"{name}_mean": float(first.column(name).to_numpy().mean()) for name in columns}
        return {"classes_left_out": self.base.summary(tasks).get("classes_left_out", []), **means}

    def _worst(self, tasks: range) -> Iterator[pa.Table]:
        """The rows of each of these tasks."""
        candidates = TaskSet(self.base.draw(range(tasks.start * self.candidates, tasks.stop * self.candidates)))
        accuracy, loss = (values.reshape(len(tasks), -1) for values in self.difficulty(candidates))
        orders = [accuracy, -np.round(loss, _DIGITS)] if self.by == "accuracy" else [-np.round(loss, _DIGITS), accuracy]
        sign = 1 if self.keep == "worst" else -1
        for place, task in enumerate(tasks):
            first, second = (sign * order[place] for order in orders)
            chosen = int(np.lexsort((second, first))[0])  # stable: of equal ones the first
            start, stop = candidates.starts[place * self.candidates + chosen :][:2]
            rows = candidates.table.slice(start, stop - start)
            rows = rows.set_column(0, "task", pa.array(np.full(rows.num_rows, task), pa.int32()))
            for name, values in (("accuracy", accuracy[place]), ("loss", loss[place])):
                for column, value in ((name, values[chosen]), (f"candidates_{name}", values.mean())):
                    rows = rows.append_column(column, pa.array(np.full(rows.num_rows, value)))
            yield rows

    def difficulty(self, candidates: TaskSet) -> Difficulty:
        """Nearest centroids on each of these tasks."""
        arrays = TaskArrays.of(candidates, self._places)
        row = arrays.values[:, 0].astype(np.int64)
        found = Difficulty(*np.empty((2, len(candidates))))
        for (way, support, query), members in arrays.by_shape():
            held = support + query if self._gram is not None else self.values.shape[1]
            for batch in arrays.batches(members, max(1, _AT_A_TIME // int((support + query) * held))):
                labels, targets = (
                    torch.from_numpy(part.slot[places])
                    for part, places in ((arrays.support, batch.support), (arrays.query, batch.query))
                )
                blocks = self._blocks(row[arrays.support.items[batch.support]], row[arrays.query.items[batch.query]])
                scores = NearestCentroid().scores_from_gram(*blocks, labels, int(way))
                wrong = torch.nn.functional.cross_entropy(scores.mT, targets, reduction="none")
                found.accuracy[batch.tasks] = (predict(scores) == targets).double().mean(1).numpy()
                found.loss[batch.tasks] = wrong.mean(1).numpy()
        return found

    @cached_property
    def _places(self) -> Features:
        """Each item's row in `values`, in place of its feature (float32 counts exactly to 16 million)."""
        return Features.from_array(self.items, np.arange(len(self.items), dtype=np.float32)[:, None])

    @cached_property
    def _gram(self) -> Tensor | None:
        """The inner products of all items, where they are few enough."""
        if len(self.values) > _MOST_GRAM_ITEMS:
            return None
        values = torch.from_numpy(self.values).double()
        return values @ values.T

    def _blocks(self, support: npt.NDArray[np.int64], query: npt.NDArray[np.int64]) -> tuple[Tensor, Tensor, Tensor]:
        """What `scores_from_gram` takes, of rows [B, n] and [B, m]."""
        both = np.concatenate([support, query], axis=1)
        if self._gram is None:
            return gram_blocks(torch.from_numpy(self.values[both]).double(), support.shape[1])
        pairs = torch.from_numpy(both[:, :, None] * len(self.values) + support[:, None, :])
        products = self._gram.flatten().index_select(0, pairs.flatten()).view(pairs.shape)
        lengths = self._gram.diagonal()[torch.from_numpy(query)]
        return products[:, : support.shape[1]], products[:, support.shape[1] :], lengths

    def __getstate__(self) -> dict[str, Any]:
        """Worker processes make the inner products anew: that is quicker than to send them."""
        return {name: value for name, value in self.__dict__.items() if name != "_gram"}
