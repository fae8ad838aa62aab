"""Filtered tasks: the hardest of many random tasks (Hard-Meta-Dataset++, appendix Q).

Task t is the hardest of its own candidates, tasks number t * candidates to (t + 1) * candidates - 1 of the base
sampler, for nearest centroids on the given features. With one candidate per task, the tasks are those of the base
sampler. With `of`, task t is the t-th hardest of the first `of` tasks of the base sampler, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from shotproof.catalog.catalog import Catalog
from shotproof.core.arrays import FloatArray, IntArray
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.evaluation.batches import TaskArrays
from shotproof.evaluation.scoring import predict
from shotproof.features.features import Features
from shotproof.functional.gram import GramBlocks, gram_blocks
from shotproof.learners.heads.inductive.centroids import NearestCentroid
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import SKIP_SMALL_CLASSES, BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.taskset import TaskSet, TaskShape
from shotproof.tasks.uniform.meta_dataset import MetaDataset
from shotproof.tasks.uniform.random import Random

_MOST_GRAM_ITEMS = 6_000  # their inner products take 288 MB
_CANDIDATES_AT_A_TIME = 1_000
_NUMBERS_AT_A_TIME = 2**23  # numbers gathered at a time
_DIGITS = 9  # losses that differ by less are equal, so that rounding on a platform never decides


class Difficulty(NamedTuple):
    """Accuracy of nearest centroids on each candidate, and their mean loss."""

    accuracy: FloatArray
    loss: FloatArray


@dataclass(frozen=True)
class Filter(Sampler):
    """Worst (or best) of `candidates` tasks of a base sampler, or of all, by accuracy (ties by loss) or by loss."""

    about = "the hardest of many random tasks, for nearest centroids on given features"
    paper = "Basu et al., Hard-Meta-Dataset++, ICLR 2023"
    example = "filter(candidates=20)"
    takes = ("features",)
    needs = ("features",)

    candidates: int = option(100, "candidates per task", least=1)
    of: int | None = option(None, "instead: keep the worst of this many tasks in total", least=1)
    by: Literal["accuracy", "loss"] = option("accuracy", "measure that candidates are compared by")
    keep: Literal["worst", "best"] = option("worst", "which candidate to keep")
    base: Literal["random", "meta-dataset"] = option("random", "sampler that draws the candidates")
    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)

    def _check_exclusive(self) -> None:
        if self.of is not None and self.candidates != type(self).candidates:
            raise InputError(
                f"sampler '{self.name}': candidates ({self.candidates} per task) and of ({self.of} in total) exclude "
                "each other: give only one of them"
            )

    def check_sizes(self, catalog: Catalog, shape: TaskShape) -> None:
        """Check that the base sampler can draw tasks of this shape."""
        self._check_exclusive()
        self._base().bind(catalog, shape, seed=0)

    def _base(self) -> Random | MetaDataset:
        return Random(skip_small_classes=self.skip_small_classes) if self.base == "random" else MetaDataset()

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Filter]:
        """Bind the sampler to the features of these inputs."""
        self._check_exclusive()
        return BoundFilter(self, inputs)


class BoundFilter(BoundSampler[Filter]):
    """Filter with its data: draws candidates and keeps one per task."""

    on_device = True

    def __init__(self, sampler: Filter, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        assert inputs.features is not None
        self.base = sampler._base().bound(inputs)
        self.items = ItemPool.of(inputs.catalog).items
        self.values = inputs.features.array[inputs.features.rows_of(self.items)]

    def draw(self, tasks: range) -> pa.Table:
        """Draw the rows of these tasks, with their difficulty and the mean difficulty of their candidates."""
        if self.sampler.of is not None:
            return pa.concat_tables([self._row_of_ranking(task) for task in tasks])
        step = max(1, _CANDIDATES_AT_A_TIME // self.sampler.candidates)
        parts = (tasks[start : start + step] for start in range(0, len(tasks), step))
        return pa.concat_tables([table for part in parts for table in self._worst(part)])

    def available(self) -> int | None:
        """Return the number of available tasks: `of`, if it is set."""
        return self.sampler.of

    def common_sizes(self) -> tuple[int | None, int | None, int | None]:
        """Return the common sizes of the candidates."""
        return self.base.common_sizes()

    def summary(self, tasks: TaskSet) -> Meta:
        """Summarize the accuracy and loss of the tasks, and those of all candidates."""
        first = tasks.table.take(pa.array(tasks.starts[:-1]))
        columns = ("accuracy", "candidates_accuracy", "loss", "candidates_loss")
        means = {f"{name}_mean": float(first.column(name).to_numpy().mean()) for name in columns}
        return {"classes_left_out": self.base.summary(tasks).get("classes_left_out", []), **means}

    def _worst(self, tasks: range) -> Iterator[pa.Table]:
        """Yield the rows of the candidate to keep for each of these tasks."""
        count = self.sampler.candidates
        candidates = TaskSet(self.base.draw(range(tasks.start * count, tasks.stop * count)))
        accuracy, loss = (values.reshape(len(tasks), -1) for values in self.difficulty(candidates))
        for index, task in enumerate(tasks):
            difficulty = Difficulty(accuracy[index], loss[index])
            chosen = int(self._order(difficulty)[0])
            start, stop = candidates.starts[index * count + chosen :][:2]
            yield _with_difficulty(candidates.table.slice(start, stop - start), task, difficulty, chosen)

    def _row_of_ranking(self, task: int) -> pa.Table:
        """Return the rows of the task with this rank among all candidates."""
        chosen = int(self._ranking[task])
        return _with_difficulty(self.base.draw(range(chosen, chosen + 1)), task, self._all_difficulties, chosen)

    @cached_property
    def _all_difficulties(self) -> Difficulty:
        """Compute the difficulty of all `of` candidates."""
        assert self.sampler.of is not None
        starts = range(0, self.sampler.of, _CANDIDATES_AT_A_TIME)
        parts = [range(start, min(start + _CANDIDATES_AT_A_TIME, self.sampler.of)) for start in starts]
        difficulties = [self.difficulty(TaskSet(self.base.draw(part))) for part in parts]
        return Difficulty(*(np.concatenate(values) for values in zip(*difficulties, strict=True)))

    @cached_property
    def _ranking(self) -> IntArray:
        return self._order(self._all_difficulties)

    def _order(self, candidates: Difficulty) -> IntArray:
        """Sort the candidates so that those to keep come first; ties keep their order."""
        keys = [candidates.accuracy, -np.round(candidates.loss, _DIGITS)]
        first, second = keys if self.sampler.by == "accuracy" else keys[::-1]
        sign = 1 if self.sampler.keep == "worst" else -1
        return np.lexsort((sign * second, sign * first))

    def difficulty(self, candidates: TaskSet) -> Difficulty:
        """Evaluate nearest centroids on each of these tasks."""
        arrays = TaskArrays.of(candidates, self._row_features)
        row = arrays.values[:, 0].astype(np.int64)
        difficulty = Difficulty(*np.empty((2, len(candidates))))
        for (way, support, query), members in arrays.by_shape():
            width = support + query if self._gram is not None else self.values.shape[1]
            for batch in arrays.batches(members, max(1, _NUMBERS_AT_A_TIME // int((support + query) * width))):
                labels = torch.from_numpy(arrays.support.slot[batch.support])
                targets = torch.from_numpy(arrays.query.slot[batch.query])
                blocks = self._blocks(row[arrays.support.items[batch.support]], row[arrays.query.items[batch.query]])
                scores = NearestCentroid().scores_from_gram(blocks, labels, int(way))
                losses = torch.nn.functional.cross_entropy(scores.mT, targets, reduction="none")
                difficulty.accuracy[batch.tasks] = (predict(scores) == targets).double().mean(1).numpy()
                difficulty.loss[batch.tasks] = losses.mean(1).numpy()
        return difficulty

    @cached_property
    def _row_features(self) -> Features:
        """Build features that hold each item's row in `values` (float32 is exact for whole numbers to 16 million)."""
        return Features.from_array(self.items, np.arange(len(self.items), dtype=np.float32)[:, None])

    @cached_property
    def _gram(self) -> Tensor | None:
        """Compute the inner products of all items, if there are few enough."""
        if len(self.values) > _MOST_GRAM_ITEMS:
            return None
        values = torch.from_numpy(self.values).double()
        return values @ values.T

    def _blocks(self, support: IntArray, query: IntArray) -> GramBlocks:
        """Compute the inner products of support rows [B, n] and query rows [B, m]."""
        both = np.concatenate([support, query], axis=1)
        if self._gram is None:
            return gram_blocks(torch.from_numpy(self.values[both]).double(), support.shape[1])
        pairs = torch.from_numpy(both[:, :, None] * len(self.values) + support[:, None, :])
        products = self._gram.flatten().index_select(0, pairs.flatten()).view(pairs.shape)
        lengths = self._gram.diagonal()[torch.from_numpy(query)]
        return GramBlocks(products[:, : support.shape[1]], products[:, support.shape[1] :], lengths)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the inner products: worker processes compute them again, which is faster than sending them."""
        return {name: value for name, value in self.__dict__.items() if name != "_gram"}


def _with_difficulty(rows: pa.Table, task: int, candidates: Difficulty, chosen: int) -> pa.Table:
    """Assign the rows of a candidate to a task, and add its difficulty and the mean difficulty of all candidates."""
    rows = rows.set_column(0, "task", pa.array(np.full(rows.num_rows, task), pa.int32()))
    for name, values in candidates._asdict().items():
        for column, value in ((name, values[chosen]), (f"candidates_{name}", values.mean())):
            rows = rows.append_column(column, pa.array(np.full(rows.num_rows, value)))
    return rows
