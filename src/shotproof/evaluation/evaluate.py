"""Tasks times methods to counts: batched over tasks of one shape, on features that were made once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

import numpy as np
import pyarrow as pa

from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray
from shotproof.core.errors import InputError
from shotproof.core.records import MethodRecord, ResultsRecord, Source, plain
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.evaluation.batches import TaskArrays
from shotproof.evaluation.results import SCHEMA, Results
from shotproof.features.features import Features
from shotproof.methods.method import AnyMethod, make_method
from shotproof.tasks.taskset import TaskSet


def evaluate(
    tasks: TaskSet,
    features: Features,
    methods: AnyMethod | Iterable[AnyMethod],
    *,
    seed: int = 0,
    chunk: int | None = None,
    runtime: Runtime | None = None,
) -> Results:
    """Count each method's correct answers on each class of each task.

    Args:
        tasks: the task set
        features: of all items of the tasks
        methods: one or several; each is all that `make_method` takes: a spelling such as `ncc` or `ridge(penalty=1)`, a
            `Method`, anything with `fit` and `predict`, a function of support, labels and query
        seed: for methods that draw
        chunk: how many tasks are computed at a time (default: by memory); no result depends on it
        runtime: devices and progress; the current one where none is given

    Returns:
        One row per method and class of a task.

    Raises:
        Mismatch: the features lack items of the tasks.
        InputError: a method is unknown, given twice, or needs maps that the features are not.

    Example:
        >>> import shotproof as sp
        >>> catalog, features, _ = sp.GaussianWorld().draw(classes=6, items=40)
        >>> tasks = sp.sample(catalog, "random", tasks=20)
        >>> sp.evaluate(tasks, features, ["ncc", "ridge(penalty=1)"]).methods
        ['ncc', 'ridge(penalty=1)']
    """
    from shotproof.evaluation.engine import Evaluation

    several = isinstance(methods, Iterable) and not isinstance(methods, str | Mapping)
    made = [make_method(method) for method in cast("Iterable[AnyMethod]", methods if several else [methods])]
    names = [method.spelling for method in made]
    _require_distinct(names)
    if seed < 0:
        raise InputError(f"seed: expected a whole number of at least 0, found {seed}")
    if chunk is not None and chunk < 1:
        raise InputError(f"chunk: expected a number of tasks above 0, found {chunk}")
    runtime = resolve(runtime)
    with ThreadPoolExecutor(1) as beside:
        beside.submit(lambda: (tasks.digest, features.digest))  # for the record; to hash leaves the others a core
        arrays = TaskArrays.of(tasks, features, made)
    _warn_of_zeros(arrays, features)
    seeds = (draws.bits(seed, tasks.task_of_row[tasks.starts[:-1]]) >> np.uint64(33)).astype(np.int64)
    shards = list(runtime.map(Evaluation(arrays, made, seeds, chunk), runtime.shards(len(tasks)), what=None))
    predicted = np.concatenate([labels for labels, _ in shards], axis=1)
    warned = [[one for _, of_methods in shards for one in of_methods[index]] for index in range(len(made))]
    for name, messages in zip(names, warned, strict=True):
        if messages:
            times = f"{len(messages)} times" if len(messages) > 1 else "once"
            warnings.warn(f"method '{name}' warned {times}: {messages[0]}", RuntimeWarning, stacklevel=2)
    record = ResultsRecord(
        sources={"tasks": Source(tasks.digest, tasks.record.name), "features": Source(features.digest, features.name)},
        tasks=replace(tasks.record, stated_digest=None),
        features=replace(features.record, stated_digest=None),
        methods=tuple(
            MethodRecord(method.spelling, plain(method.parameters()), len(messages))
            for method, messages in zip(made, warned, strict=True)
        ),
        seed=seed,
    )
    return Results(_count(tasks, names, arrays.query.count, predicted != arrays.query.slot), record)


def _count(tasks: TaskSet, names: list[str], queries: IntArray, wrong: BoolArray) -> pa.Table:
    """Counts and missed positions from `wrong` [methods, all queries] and the number of queries of each row."""
    rows, methods = len(queries), len(names)
    first = np.cumsum(queries) - queries
    until = np.concatenate([np.zeros((methods, 1), np.int64), np.cumsum(wrong, axis=1)], axis=1)
    n_wrong = (until[:, first + queries] - until[:, first]).ravel()  # a class may have no query
    position = np.arange(wrong.shape[1]) - np.repeat(first, queries)
    offsets = np.concatenate([[0], np.cumsum(n_wrong)])
    missed = np.broadcast_to(position, wrong.shape)[wrong]
    columns = {
        "method": np.repeat(np.asarray(names, dtype=object), rows),
        "task": np.tile(tasks.task_of_row, methods),
        "slot": np.tile(tasks.slot_of_row, methods),
        "label": pa.chunked_array(tasks.table.column("label").chunks * methods),
        "n_query": np.tile(queries, methods),
        "n_correct": np.tile(queries, methods) - n_wrong,
        "missed": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(missed, pa.int32())),
    }
    return pa.table(columns).cast(SCHEMA)


def _warn_of_zeros(arrays: TaskArrays, features: Features) -> None:
    """Tell how many items have no direction: by cosine they are as near to one class as to another."""
    zeros = int((~arrays.values.any(axis=1)).sum())
    if zeros:
        what = f"{zeros:,} of {len(arrays.values):,} items are zero in all dimensions, and cannot be told apart"
        warnings.warn(f"features of '{features.name}': {what}", RuntimeWarning, stacklevel=3)


def _require_distinct(names: list[str]) -> None:
    if not names:
        raise InputError("no method to evaluate: name at least one, e.g. ncc")
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InputError(f"method '{name}' is given twice: results are told apart by the method's name")
