"""Classifiers evaluated on many task sets of the same items, with per-item work done once per process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.core.runtime.runtime import current_runtime
from shotproof.evaluation.backends import PreparedFeatures, task_seeds
from shotproof.features.features import Features
from shotproof.learners.method import AnyMethod, Method, make_method
from shotproof.results.evaluated import Classifier
from shotproof.results.metrics import Counts
from shotproof.tasks.taskset import SIDES, UNCHANGED_ITEM, TaskSet, change_column

Classifiers = Sequence[tuple[str, Features, Sequence[AnyMethod]]]  # encoder, features and methods


@dataclass(frozen=True)
class RepeatedClassifiers:
    """Encoders with their features and methods; `items` are all items that tasks may contain."""

    encoders: list[tuple[str, Features, list[Method]]]
    items: pa.Array
    seed: int

    @classmethod
    def of(cls, classifiers: Classifiers, items: pa.Array, seed: int) -> RepeatedClassifiers:
        """Build the methods of each encoder."""
        encoders = [
            (name, features, [make_method(method) for method in methods]) for name, features, methods in classifiers
        ]
        return cls(encoders, items, seed)

    @property
    def names(self) -> list[Classifier]:
        """Return all classifiers, encoder by encoder."""
        return [Classifier(encoder, method.spelling) for encoder, _, methods in self.encoders for method in methods]

    @property
    def task_cost(self) -> int:
        """Return the cost of a task over all classifiers, in units of a method that scores tasks in batches."""
        return sum(method.task_cost for _, _, methods in self.encoders for method in methods)

    @cached_property
    def _prepared(self) -> list[PreparedFeatures]:
        """Prepare the features of each encoder for its methods."""
        return [
            PreparedFeatures(features, methods, features.rows_of(self.items)) for _, features, methods in self.encoders
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Drop prepared features: worker processes prepare them again, which is faster than sending them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def counts(self, tables: Sequence[pa.Table]) -> list[Counts]:
        """Count each classifier's correct answers on the rows of several task sets, numbered consecutively."""
        tasks = _concatenate(tables)
        seeds = task_seeds(tasks, self.seed)
        counts = []
        for prepared in self._prepared:
            query, predicted, _ = prepared.predict(tasks, seeds, None, current_runtime())
            cumulative = np.pad(np.cumsum(predicted == query.slot, axis=1), ((0, 0), (1, 0)))
            ends = np.cumsum(query.count)
            correct = cumulative[:, ends] - cumulative[:, ends - query.count]
            counts += [Counts(tasks.task_of_row, query.count, method_correct) for method_correct in correct]
        return counts


def _changes(table: pa.Table, side: str) -> pa.ChunkedArray:
    """Return the changes of the items of a side; those of a table without changes stay as they are."""
    name = change_column(side)
    if name in table.column_names:
        return table.column(name)
    lists = table.column(side).combine_chunks()
    counts = np.concatenate([[0], np.cumsum(pc.list_value_length(lists).to_numpy())])
    unchanged = pa.repeat(UNCHANGED_ITEM, int(counts[-1]))
    return pa.chunked_array([pa.ListArray.from_arrays(pa.array(counts, pa.int32()), unchanged)])


def _concatenate(tables: Sequence[pa.Table]) -> TaskSet:
    """Concatenate the rows of several task sets into one."""
    parts, next_task = [], 0
    names = {side: change_column(side) for side in SIDES}
    changed = {side: name for side, name in names.items() if any(name in table.column_names for table in tables)}
    for table in tables:
        task = table.column("task").to_numpy()
        columns = {"task": pa.array(task - task[0] + next_task, pa.int32())}
        columns |= {name: table.column(name) for name in ("slot", "label", "attribute", "support", "query")}
        columns |= {name: _changes(table, side) for side, name in changed.items()}
        parts.append(pa.table(columns))
        next_task += int(task[-1] - task[0]) + 1
    return TaskSet(pa.concat_tables(parts).combine_chunks())
