"""Backends that evaluate methods on features or on the items of a catalog; that for networks is in `on_networks`."""

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
from shotproof.catalog.item_files import item_files
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

ON_ITEMS = "items"  # shown in tables as the encoder of methods that have none
Predictions = tuple[Part, npt.NDArray[Any], list[list[str]]]
"""All queries, the labels that each method predicts for them [methods, queries], and the warnings of each method."""


class Backend(ABC):
    """Data that methods are evaluated on, and the way they are evaluated on it.

    record: record of the features for the results; a stand-in for methods without features
    trained: name of what was trained on the classes in the record, for messages
    """

    record: FeaturesRecord
    trained: str = ""

    @property
    @abstractmethod
    def sources(self) -> dict[str, Source]:
        """Return the sources that results name, besides the tasks."""

    def prepare_methods(self, methods: list[Method], tasks: TaskSet, seed: int, runtime: Runtime) -> list[Method]:
        """Return the methods to evaluate; raise Mismatch or InputError if one cannot be evaluated."""
        return methods

    @abstractmethod
    def predict(
        self, tasks: TaskSet, methods: list[Method], seeds: IntArray, chunk: int | None, runtime: Runtime
    ) -> Predictions:
        """Predict the labels of all queries with all methods.

        Args:
            tasks: task set
            methods: methods, as `prepare_methods` returns them
            seeds: seed of each task, for methods that draw, [tasks]
            chunk: number of tasks computed at a time; None: by memory
            runtime: devices and progress
        """


class OnFeatures(Backend):
    """Evaluation on stored features."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.record = replace(features.record, stated_digest=None)
        self.trained = f"the model of features '{features.name}'"

    @property
    def sources(self) -> dict[str, Source]:
        """Return the features."""
        return {"features": Source(self.features.digest, self.features.name)}

    def prepare_methods(self, methods: list[Method], tasks: TaskSet, seed: int, runtime: Runtime) -> list[Method]:
        """Check that each method can use such features."""
        for method in methods:
            method.require_features(self.features.record)
        return methods

    def predict(
        self, tasks: TaskSet, methods: list[Method], seeds: IntArray, chunk: int | None, runtime: Runtime
    ) -> Predictions:
        """Predict the labels, sharing the tasks among the machines of the runtime."""
        from shotproof.evaluation.batch_engine import Evaluation

        with ThreadPoolExecutor(1) as executor:
            # Compute the digests for the record in a thread of their own: hashing takes one core.
            executor.submit(lambda: (tasks.digest, self.features.digest))
            arrays = TaskArrays.of(tasks, self.features, methods)
        zeros = int((~arrays.values.any(axis=1)).sum())
        if zeros:  # their cosine similarity to every class is the same
            problem = f"{zeros:,} of {len(arrays.values):,} items are zero in all dimensions, so no method can use them"
            warnings.warn(f"features of '{self.features.name}': {problem}", RuntimeWarning, stacklevel=3)
        in_order = any(method.in_order for method in methods)
        evaluation = Evaluation(arrays, methods, seeds, chunk)
        shards = list(runtime.map_ranges(evaluation, len(tasks), title="evaluating", undivided=in_order))
        predicted = np.concatenate([labels for labels, _ in shards], axis=1)
        warned = [[text for _, texts in shards for text in texts[index]] for index in range(len(methods))]
        return arrays.query, predicted, warned


class PreparedFeatures:
    """Evaluation of several task sets on features; what methods share is computed once, for the first task set.

    `rows` are the rows of all items that tasks may have; if None, those of the first task set.
    """

    def __init__(self, features: Features, methods: Sequence[Method], rows: IntArray | None = None) -> None:
        self.features, self.methods, self.rows = features, methods, rows
        self._items: Any = None

    def predict(self, tasks: TaskSet, seeds: IntArray, chunk: int | None, runtime: Runtime) -> Predictions:
        """Predict the labels of these tasks with all methods."""
        from shotproof.core.runtime.devices import choose_devices
        from shotproof.evaluation.batch_engine import items_on, predict_tasks

        arrays = TaskArrays.of(tasks, self.features, self.methods, self.rows)
        if self._items is None:
            self._items = items_on(choose_devices(runtime.device), arrays, self.methods)
        predicted, warned = predict_tasks(arrays, self.methods, seeds, self._items, runtime, chunk)
        return arrays.query, predicted, warned


class OnItems(Backend):
    """Evaluation on the items of a catalog, for methods that read items themselves."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.record = FeaturesRecord(name=ON_ITEMS)

    @property
    def sources(self) -> dict[str, Source]:
        """Return the catalog."""
        return {"catalog": Source(self.catalog.digest, self.catalog.record.name)}

    def predict(
        self, tasks: TaskSet, methods: list[Method], seeds: IntArray, chunk: int | None, runtime: Runtime
    ) -> Predictions:
        """Predict the labels; each method gets all tasks at once."""
        items_tasks, query = tasks_on_items(tasks, self.catalog, seeds)
        answers = [predict_items(cast("ItemsMethod", method), items_tasks, runtime) for method in methods]
        return query, np.stack(answers), [[] for _ in methods]


def tasks_on_items(tasks: TaskSet, catalog: Catalog, seeds: IntArray) -> tuple[list[ItemsTask], Part]:
    """Convert each task to items, and concatenate all queries; raise Mismatch if the catalog lacks items of the tasks.

    Args:
        tasks: task set
        catalog: catalog with all its items
        seeds: seed of each task, [tasks]
    """
    support, query = parts_of(tasks, catalog.rows_of(items_of(tasks), "tasks"))
    clips = item_files(catalog)
    labels, numbers = tasks.table.column("label").to_pylist(), tasks.task_of_row[tasks.starts[:-1]]
    items_tasks = []
    for index, (number, seed) in enumerate(zip(numbers.tolist(), seeds.tolist(), strict=True)):
        support_slice, query_slice = (slice(*part.first[index : index + 2]) for part in (support, query))
        items_tasks.append(
            ItemsTask(
                number,
                seed,
                tuple(labels[slice(*tasks.starts[index : index + 2])]),
                tuple(clips[row] for row in support.items[support_slice]),
                tuple(support.slot[support_slice].tolist()),
                tuple(clips[row] for row in query.items[query_slice]),
            )
        )
    return items_tasks, query


def predict_items(method: ItemsMethod, tasks: Sequence[ItemsTask], runtime: Runtime) -> IntArray:
    """Predict all queries with a method, concatenated; raise InputError for labels that are not in their task."""
    answers = method.predict(tasks, runtime)
    if len(answers) != len(tasks):
        raise InputError(f"method '{method}': expected answers for {len(tasks)} tasks, found {len(answers)}")
    for task, answer in zip(tasks, answers, strict=True):
        way, labels = len(task.classes), np.asarray(answer)
        if labels.shape != (len(task.query),) or labels.dtype.kind not in "iu":
            raise InputError(
                f"method '{method}': task {task.number}: expected {len(task.query)} labels, found {labels.dtype} of "
                f"shape {labels.shape}"
            )
        if labels.min() < NO_CLASS or labels.max() >= way:
            raise InputError(
                f"method '{method}': task {task.number}: expected labels from 0 to {way - 1}, or {NO_CLASS} for none, "
                f"found {labels.min()} to {labels.max()}"
            )
    return np.concatenate(answers).astype(np.int64)


def task_seeds(tasks: TaskSet, seed: int) -> IntArray:
    """Derive a seed for each task, for methods that draw."""
    return (draws.bits(seed, tasks.task_of_row[tasks.starts[:-1]]) >> np.uint64(33)).astype(np.int64)


def labels_of(tasks: TaskSet) -> list[str]:
    """List the classes that occur in the tasks."""
    labels: list[str] = pc.unique(tasks.table.column("label")).to_pylist()
    return labels


def require_unseen(labels: Iterable[str], trained_on: Sequence[str], trained: str) -> None:
    """Reject tasks with classes that were seen in training.

    Args:
        labels: classes of the tasks
        trained_on: classes seen in training
        trained: name of what was trained on them, for the message

    Raises:
        InputError: the tasks have classes that were seen in training.
    """
    shared = sorted(set(trained_on) & set(labels))
    if shared:
        examples = ", ".join(f"'{label}'" for label in shared[:3])
        raise InputError(
            f"{trained} was trained on {len(shared)} classes of these tasks, e.g. {examples}: "
            "draw tasks of other classes, or allow classes seen in training (allow_seen=True, --allow-seen)"
        )
