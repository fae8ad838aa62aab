"""Methods that need the items: a task set and a catalog to the answers of each method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.clips import clips_of
from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.batches import Part, items_of, parts_of
from shotproof.learners.items import NO_CLASS, ItemsMethod, ItemsTask
from shotproof.tasks.taskset import TaskSet


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
