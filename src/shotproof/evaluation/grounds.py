"""What methods are evaluated on: features, or the items of a catalog; a network on these is in `on_networks`."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.clips import clips_of
from shotproof.core import draws
from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError
from shotproof.core.records import FeaturesRecord, Source
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.batches import Part, TaskArrays, items_of, parts_of
from shotproof.features.features import Features
from shotproof.learners.items import NO_CLASS, ItemsMethod, ItemsTask
from shotproof.learners.method import Method
from shotproof.tasks.taskset import TaskSet

ON_ITEMS = "items"  # what tables show as the encoder of methods that have none
Predictions = tuple[Part, npt.NDArray[Any], list[list[str]]]
"""All queries, the label that each method gives to each of them [methods, queries], and what each method warned of."""


class Ground(ABC):
    """What methods are evaluated on.

    record: what results say of the features; of methods without any, what stands in their place
    learned: what was trained on the classes that the record names, in words
    """

    record: FeaturesRecord
    learned: str = ""

    @property
    @abstractmethod
    def sources(self) -> dict[str, Source]:
        """What results say that they were made from, beside the tasks."""

    def admitted(self, methods: list[Method], tasks: TaskSet, seed: int, runtime: Runtime) -> list[Method]:
        """Return the methods as they are evaluated; Mismatch or InputError if one cannot be."""
        return methods

    @abstractmethod
    def predict(
        self, tasks: TaskSet, methods: list[Method], seeds: IntArray, chunk: int | None, runtime: Runtime
    ) -> Predictions:
        """Ask all methods for the labels of all queries.

        Args:
            tasks: the task set
            methods: as `admitted` returns them
            seeds: of each task, for methods that draw, [tasks]
            chunk: how many tasks are computed at a time; None: by memory
            runtime: devices and progress
        """


class OnFeatures(Ground):
    """Features that an encoder has made once."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.record = replace(features.record, stated_digest=None)
        self.learned = f"the model of features '{features.name}'"

    @property
    def sources(self) -> dict[str, Source]:
        """The features."""
        return {"features": Source(self.features.digest, self.features.name)}

    def admitted(self, methods: list[Method], tasks: TaskSet, seed: int, runtime: Runtime) -> list[Method]:
        """Check that each method can use such features."""
        for method in methods:
            method.require_features(self.features.record)
        return methods

    def predict(
        self, tasks: TaskSet, methods: list[Method], seeds: IntArray, chunk: int | None, runtime: Runtime
    ) -> Predictions:
        """Share the tasks out among the machines of the runtime."""
        from shotproof.evaluation.batch_engine import Evaluation

        with ThreadPoolExecutor(1) as beside:
            # For the record; to hash leaves the others a core.
            beside.submit(lambda: (tasks.digest, self.features.digest))
            arrays = TaskArrays.of(tasks, self.features, methods)
        zeros = int((~arrays.values.any(axis=1)).sum())
        if zeros:  # by cosine they are as near to one class as to another
            what = f"{zeros:,} of {len(arrays.values):,} items are zero in all dimensions, and cannot be told apart"
            warnings.warn(f"features of '{self.features.name}': {what}", RuntimeWarning, stacklevel=3)
        whole = any(method.in_order for method in methods)
        evaluation = Evaluation(arrays, methods, seeds, chunk)
        shards = list(runtime.map_ranges(evaluation, len(tasks), what="evaluating", whole=whole))
        predicted = np.concatenate([labels for labels, _ in shards], axis=1)
        warned = [[text for _, of_methods in shards for text in of_methods[index]] for index in range(len(methods))]
        return arrays.query, predicted, warned


class PreparedFeatures:
    """Methods on features; what methods share of the items is computed for the first task set, and kept for others.

    `rows` are the rows of all items that tasks may have; if None, they are the items of the first task set.
    """

    def __init__(self, features: Features, methods: Sequence[Method], rows: IntArray | None = None) -> None:
        self.features, self.methods, self.rows = features, methods, rows
        self._items: Any = None

    def predict(self, tasks: TaskSet, seeds: IntArray, chunk: int | None, runtime: Runtime) -> Predictions:
        """The answers of all methods on these tasks."""
        from shotproof.core.runtime.devices import choose_devices
        from shotproof.evaluation.batch_engine import items_on, predict_tasks

        arrays = TaskArrays.of(tasks, self.features, self.methods, self.rows)
        if self._items is None:
            self._items = items_on(choose_devices(runtime.device), arrays, self.methods)
        predicted, warned = predict_tasks(arrays, self.methods, seeds, self._items, runtime, chunk)
        return arrays.query, predicted, warned


class OnItems(Ground):
    """The items of a catalog, for methods that look at these themselves."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.record = FeaturesRecord(name=ON_ITEMS)

    @property
    def sources(self) -> dict[str, Source]:
        """The catalog."""
        return {"catalog": Source(self.catalog.digest, self.catalog.record.name)}

    def predict(
        self, tasks: TaskSet, methods: list[Method], seeds: IntArray, chunk: int | None, runtime: Runtime
    ) -> Predictions:
        """Give each method all tasks at once."""
        made, query = tasks_on_items(tasks, self.catalog, seeds)
        answers = [predict_items(cast("ItemsMethod", method), made, runtime) for method in methods]
        return query, np.stack(answers), [[] for _ in methods]


def tasks_on_items(tasks: TaskSet, catalog: Catalog, seeds: IntArray) -> tuple[list[ItemsTask], Part]:
    """Each task as items, and all queries end to end; Mismatch where the catalog lacks items of the tasks.

    Args:
        tasks: the task set
        catalog: all of its items
        seeds: of each task, [tasks]
    """
    support, query = parts_of(tasks, catalog.rows_of(items_of(tasks), "tasks"))
    clips = clips_of(catalog)
    labels, numbers = tasks.table.column("label").to_pylist(), tasks.task_of_row[tasks.starts[:-1]]
    made = []
    for index, (number, seed) in enumerate(zip(numbers.tolist(), seeds.tolist(), strict=True)):
        known, asked = (slice(*part.first[index : index + 2]) for part in (support, query))
        made.append(
            ItemsTask(
                number,
                seed,
                tuple(labels[slice(*tasks.starts[index : index + 2])]),
                tuple(clips[row] for row in support.items[known]),
                tuple(support.slot[known].tolist()),
                tuple(clips[row] for row in query.items[asked]),
            )
        )
    return made, query


def predict_items(method: ItemsMethod, tasks: Sequence[ItemsTask], runtime: Runtime) -> IntArray:
    """The answers of a method to all queries, end to end; InputError where they are no classes of their tasks."""
    answers = method.predict(tasks, runtime)
    if len(answers) != len(tasks):
        raise InputError(f"method '{method}': expected answers for {len(tasks)} tasks, found {len(answers)}")
    for task, answer in zip(tasks, answers, strict=True):
        way, given = len(task.classes), np.asarray(answer)
        if given.shape != (len(task.query),) or given.dtype.kind not in "iu":
            found = f"{given.dtype} of shape {given.shape}"
            raise InputError(f"method '{method}': task {task.number}: expected {len(task.query)} labels, found {found}")
        if given.min() < NO_CLASS or given.max() >= way:
            raise InputError(
                f"method '{method}': task {task.number}: expected labels from 0 to {way - 1}, or {NO_CLASS}"
            )
    return np.concatenate(answers).astype(np.int64)


def task_seeds(tasks: TaskSet, seed: int) -> IntArray:
    """One per task, for methods that draw."""
    return (draws.bits(seed, tasks.task_of_row[tasks.starts[:-1]]) >> np.uint64(33)).astype(np.int64)


def labels_of(tasks: TaskSet) -> list[str]:
    """The classes that occur in tasks."""
    labels: list[str] = pc.unique(tasks.table.column("label")).to_pylist()
    return labels


def require_unseen(labels: Iterable[str], trained_on: Sequence[str], whose: str) -> None:
    """Refuse tasks of these classes where some were seen in training.

    Args:
        labels: the classes of the tasks
        trained_on: the classes that were seen
        whose: what has seen them, for the message

    Raises:
        InputError: some are the same.
    """
    seen = sorted(set(trained_on) & set(labels))
    if seen:
        named = ", ".join(f"'{label}'" for label in seen[:3])
        raise InputError(
            f"{whose} was trained on {len(seen)} classes of these tasks, e.g. {named}: "
            "draw tasks of other classes, or allow seen ones (allow_seen=True, --allow-seen)"
        )
