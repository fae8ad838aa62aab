"""Tasks times methods to counts: batched over tasks of one shape, on features that were made once."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof import draws
from shotproof.errors import InputError
from shotproof.evaluation.batches import TaskArrays
from shotproof.evaluation.results import SCHEMA, Results
from shotproof.features.features import Features
from shotproof.methods.method import AnyMethod, make_method
from shotproof.tables import Meta
from shotproof.tasks.taskset import TaskSet

FILE_KEYS = ("format", "shotproof", "kind", "digest")  # of the file that the task set was read from


def evaluate(
    tasks: TaskSet,
    features: Features,
    methods: AnyMethod | Iterable[AnyMethod],
    *,
    device: str | None = None,
    seed: int = 0,
    chunk: int | None = None,
) -> Results:
    """Count each method's correct answers on each class of each task.

    A method is all that `make_method` takes: a name such as `ncc` or `ridge(penalty=1)`, a `Method`, anything with
    `fit` and `predict`, a function of support, labels and query. `device` is `cpu`, `cuda:0` or, for all GPUs, `cuda`
    (default: all GPUs where there are any). `seed` matters to methods that draw. `chunk` tasks are computed at a time
    (default: by memory); no result depends on it.
    """
    from shotproof.devices import choose_devices
    from shotproof.evaluation.engine import predict_tasks

    given = methods if isinstance(methods, Iterable) and not isinstance(methods, str) else [methods]
    made = [make_method(method) for method in given]
    _require_distinct([method.name for method in made])
    if chunk is not None and chunk < 1:
        raise InputError(f"chunk: expected a number of tasks above 0, found {chunk}")
    with ThreadPoolExecutor(1) as beside:
        beside.submit(lambda: (tasks.digest, features.digest))  # for the record; to hash leaves the others a core
        arrays = TaskArrays.of(tasks, features, made)
    _warn_of_zeros(arrays, features)
    seeds = (draws.bits(seed, tasks.task_of_row[tasks.starts[:-1]]) >> np.uint64(33)).astype(np.int64)
    predicted, warned = predict_tasks(arrays, made, seeds, choose_devices(device), chunk)
    for method, messages in zip(made, warned, strict=True):
        if messages:
            times = f"{len(messages)} times" if len(messages) > 1 else "once"
            warnings.warn(f"method '{method.name}' warned {times}: {messages[0]}", RuntimeWarning, stacklevel=2)
    records = [
        {"name": method.name, "parameters": _plain(method.parameters()), "warnings": len(messages)}
        for method, messages in zip(made, warned, strict=True)
    ]
    table = _count(tasks, [method.name for method in made], arrays.query.count, predicted != arrays.query.slot)
    return Results(table, _provenance(tasks, features, records, seed))


def _count(tasks: TaskSet, names: list[str], queries: npt.NDArray[np.int64], wrong: npt.NDArray[np.bool_]) -> pa.Table:
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


def _provenance(tasks: TaskSet, features: Features, methods: list[dict[str, Any]], seed: int) -> Meta:
    design = {key: value for key, value in tasks.meta.items() if key not in FILE_KEYS}
    return {
        "made_by": {"methods": methods, "seed": seed},
        "tasks": {**design, "digest": tasks.digest},
        "features": {"encoder": features.name, "digest": features.digest, **_steps(features)},
    }


def _steps(features: Features) -> Meta:
    """What was done to the features after they were encoded, if anything."""
    steps = features.meta.get("made_by", {}).get("transforms")
    return {"transforms": steps} if steps else {}


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


def _plain(value: Any) -> Any:
    """What JSON can hold of a value: an object in a parameter becomes its description."""
    return json.loads(json.dumps(value, default=lambda held: " ".join(repr(held).split())))
