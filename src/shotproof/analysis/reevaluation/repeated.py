"""Classifiers on many task sets of the same items: what they share of the items is computed once per process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from shotproof.core.runtime.runtime import current_runtime
from shotproof.evaluation.grounds import PreparedFeatures, task_seeds
from shotproof.features.features import Features
from shotproof.learners.method import AnyMethod, Method, make_method
from shotproof.results.evaluated import Classifier
from shotproof.results.metrics import Counts
from shotproof.tasks.taskset import TaskSet

Classifiers = Sequence[tuple[str, Features, Sequence[AnyMethod]]]  # each encoder, its features, and its methods


@dataclass(frozen=True)
class RepeatedClassifiers:
    """Each encoder with its features and methods; `items` are all that tasks may have."""

    encoders: list[tuple[str, Features, list[Method]]]
    items: pa.Array
    seed: int

    @classmethod
    def of(cls, classifiers: Classifiers, items: pa.Array, seed: int) -> RepeatedClassifiers:
        """Make the methods."""
        made = [
            (name, features, [make_method(method) for method in methods]) for name, features, methods in classifiers
        ]
        return cls(made, items, seed)

    @property
    def names(self) -> list[Classifier]:
        """All classifiers, encoder by encoder."""
        return [Classifier(encoder, method.spelling) for encoder, _, methods in self.encoders for method in methods]

    @property
    def task_cost(self) -> int:
        """What a task costs all of them together, beside a single method that scores tasks in batches."""
        return sum(method.task_cost for _, _, methods in self.encoders for method in methods)

    @cached_property
    def _prepared(self) -> list[PreparedFeatures]:
        return [
            PreparedFeatures(features, methods, features.rows_of(self.items)) for _, features, methods in self.encoders
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Worker processes prepare the features anew: that is quicker than to send them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def counts(self, tables: Sequence[pa.Table]) -> list[Counts]:
        """The counts of each classifier on the drawn rows of several task sets, whose tasks are numbered through."""
        tasks = _joined(tables)
        seeds = task_seeds(tasks, self.seed)
        counts = []
        for prepared in self._prepared:
            query, predicted, _ = prepared.predict(tasks, seeds, None, current_runtime())
            until = np.pad(np.cumsum(predicted == query.slot, axis=1), ((0, 0), (1, 0)))
            ends = np.cumsum(query.count)
            correct = until[:, ends] - until[:, ends - query.count]
            counts += [Counts(tasks.task_of_row, query.count, of_method) for of_method in correct]
        return counts


def _joined(tables: Sequence[pa.Table]) -> TaskSet:
    """Join the drawn rows of several task sets to one."""
    joined, first = [], 0
    for table in tables:
        task = table.column("task").to_numpy()
        columns = {"task": pa.array(task - task[0] + first, pa.int32())}
        columns |= {name: table.column(name) for name in ("slot", "label", "attribute", "support", "query")}
        joined.append(pa.table(columns))
        first += int(task[-1] - task[0]) + 1
    return TaskSet(pa.concat_tables(joined).combine_chunks())
