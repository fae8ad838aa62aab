"""Evaluation of methods on tasks: counts of correct answers, on stored features, on items, or on an adapted network."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.core import limits
from shotproof.core.errors import InputError
from shotproof.core.plain_values import plain
from shotproof.core.records import MethodRecord, ResultsRecord, Source
from shotproof.core.runtime.runtime import Runtime, current_runtime, resolve
from shotproof.evaluation.backends import Backend, OnFeatures, OnItems, labels_of, require_unseen, task_seeds
from shotproof.evaluation.batches import Part
from shotproof.evaluation.remarks import remarks_on
from shotproof.features.features import Features
from shotproof.learners.method import DEFAULT_METHODS, AnyMethod, Method, make_method
from shotproof.results.results import SCHEMA, Results
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model  # imports PyTorch


def evaluate(
    tasks: TaskSet,
    features: Features | None = None,
    methods: AnyMethod | Iterable[AnyMethod] = DEFAULT_METHODS,
    *,
    catalog: Catalog | None = None,
    model: Model | str | Path | None = None,
    tune_on: TaskSet | None = None,
    rates: Sequence[float] = (),
    seed: int = 0,
    allow_seen: bool = False,
    chunk: int | None = None,
    runtime: Runtime | None = None,
) -> Results:
    """Count each method's correct answers on each class of each task.

    Args:
        tasks: task set
        features: features of all items of the tasks; None for methods that need the items themselves
        methods: one or several methods, each in any form that `make_method` takes: a spelling such as `ncc` or
            `ridge(penalty=1)`, a `Method`, an object with `fit` and `predict`, a function of support, labels and query
        catalog: catalog with all items of the tasks, for methods that need the items themselves
        model: model whose network is adapted, its file, or the name of a pretrained backbone: `lite0`, `hf:NAME`
        tune_on: validation tasks, which share no items with the tasks: each adaptation uses the learning rate that is
            best on them, and the results name it
        rates: learning rates to choose from (default: each method's own)
        seed: seed for methods that draw
        allow_seen: whether tasks may have classes that the model, or the features' encoder, was trained on
        chunk: number of tasks computed at a time (default: by memory); no result depends on it
        runtime: devices and progress; the current runtime by default

    Returns:
        One row per method and class of a task.

    Raises:
        Mismatch: the features, or the catalog, lack items of the tasks.
        InputError: a method is unknown, is given twice, or needs something that is missing (maps, items, a model); or
            the model or encoder was trained on classes of the tasks.

    Example:
        >>> import shotproof as sp
        >>> catalog, features, _ = sp.worlds.GaussianWorld().draw(classes=6, items=40)
        >>> tasks = sp.sample(catalog, "random", tasks=20)
        >>> sp.evaluate(tasks, features, ["ncc", "ridge(penalty=1)"]).methods
        ['ncc', 'ridge(penalty=1)']
    """
    several = isinstance(methods, Iterable) and not isinstance(methods, str | Mapping)
    method_list = [make_method(method) for method in cast("Iterable[AnyMethod]", methods if several else [methods])]
    _require_distinct([method.spelling for method in method_list])
    limits.SEED.check("seed", seed)
    if chunk is not None:
        limits.COUNT.check("chunk", chunk)
    if isinstance(model, str | Path):
        from shotproof.models.model import Model

        model = Model.load(model)
    _check_inputs(method_list, features, catalog, model)
    if tune_on is None and rates:
        raise InputError("rates: a learning rate is chosen on validation tasks: give them (tune_on, --tune-on)")
    backend = _choose_backend(features, catalog, model, tune_on, rates)
    for task_set in () if allow_seen else (tasks, tune_on):
        if task_set is not None:
            require_unseen(labels_of(task_set), backend.record.trained_on, backend.trained)
    runtime = resolve(runtime)
    method_list = backend.prepare_methods(method_list, tasks, seed, runtime)
    query, predicted, warned = backend.predict(tasks, method_list, task_seeds(tasks, seed), chunk, runtime)
    remarks = remarks_on(method_list, query, predicted, warned)
    for remark in remarks:
        for message in remark.messages:
            warnings.warn(message, RuntimeWarning, stacklevel=2)
    record = ResultsRecord(
        sources={"tasks": Source(tasks.digest, tasks.record.name), **backend.sources},
        tasks=replace(tasks.record, stated_digest=None),
        features=backend.record,
        methods=tuple(
            MethodRecord(method.spelling, plain(method.parameters()), *remark.counts)
            for method, remark in zip(method_list, remarks, strict=True)
        ),
        seed=seed,
    )
    return Results(_count(tasks, [method.spelling for method in method_list], query, predicted), record)


def predict_queries(tasks: TaskSet, features: Features, method: AnyMethod, *, seed: int = 0) -> list[list[int]]:
    """Predict the slot of each query of each row with one method, as `evaluate` does.

    Args:
        tasks: task set
        features: features of all its items
        method: method, in any form that `make_method` takes
        seed: seed for methods that draw

    Returns:
        One list per row of the task set, in the order of its queries.

    Example:
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=6, items=8).catalog()
        >>> tasks = sp.sample(catalog, "random", way=2, shot=1, query=2, tasks=1)
        >>> predict_queries(tasks, sp.encode(catalog, "dial(share=0, noise=0)"), "ncc")
        [[0, 0], [1, 1]]
    """
    seeds = task_seeds(tasks, seed)
    query, predicted, _ = OnFeatures(features).predict(tasks, [make_method(method)], seeds, None, current_runtime())
    return [part.tolist() for part in np.split(predicted[0], np.cumsum(query.count)[:-1])]


def _choose_backend(
    features: Features | None,
    catalog: Catalog | None,
    model: Model | None,
    tune_on: TaskSet | None,
    rates: Sequence[float],
) -> Backend:
    """Choose the backend; `_check_inputs` has made sure that its inputs are given."""
    if features is not None:
        return OnFeatures(features)
    assert catalog is not None
    if model is None:
        return OnItems(catalog)
    from shotproof.evaluation.on_networks import OnNetwork

    return OnNetwork(catalog, model, tune_on, rates)


def _count(tasks: TaskSet, names: list[str], query: Part, predicted: npt.NDArray[Any]) -> pa.Table:
    """Count correct answers, and list missed positions with their answers, from the labels [methods, all queries]."""
    queries, wrong = query.count, predicted != query.slot
    rows, methods = len(queries), len(names)
    first = np.cumsum(queries) - queries
    until = np.concatenate([np.zeros((methods, 1), np.int64), np.cumsum(wrong, axis=1)], axis=1)
    n_wrong = (until[:, first + queries] - until[:, first]).ravel()  # a class may have no query
    position = np.arange(wrong.shape[1]) - np.repeat(first, queries)
    offsets = pa.array(np.concatenate([[0], np.cumsum(n_wrong)]), pa.int32())
    missed = np.broadcast_to(position, wrong.shape)[wrong]
    columns = {
        "method": np.repeat(np.asarray(names, dtype=object), rows),
        "task": np.tile(tasks.task_of_row, methods),
        "slot": np.tile(tasks.slot_of_row, methods),
        "label": pa.chunked_array(tasks.table.column("label").chunks * methods),
        "n_query": np.tile(queries, methods),
        "n_correct": np.tile(queries, methods) - n_wrong,
        "missed": pa.ListArray.from_arrays(offsets, pa.array(missed, pa.int32())),
        "answered": pa.ListArray.from_arrays(offsets, pa.array(predicted[wrong], pa.int16())),
    }
    return pa.table(columns).cast(SCHEMA)


def _check_inputs(
    methods: list[Method], features: Features | None, catalog: Catalog | None, model: Model | None
) -> None:
    """Reject methods whose inputs are missing, or that need different inputs: features, items or a model."""
    inputs = {"features": "features", "items": "the items", "network": "a model"}
    first_methods = {method.evaluated_on: method.spelling for method in reversed(methods)}
    (need, name), *others = [(need, first_methods[need]) for need in inputs if need in first_methods]
    if others:
        other_need, other_name = others[0]
        raise InputError(
            f"method '{other_name}' needs {inputs[other_need]} and '{name}' needs {inputs[need]}: evaluate them "
            "separately, and compare both results"
        )
    if need == "network" and model is None:
        raise InputError(f"method '{name}' adapts a network: give a model (model, --model) and the catalog")
    if need != "network" and model is not None:
        raise InputError(
            f"method '{name}' does not adapt a network: use the model as an encoder, model:FILE, and evaluate the "
            "method on its features"
        )
    if need == "features" and features is None:
        raise InputError(f"method '{name}' needs features: encode the catalog first")
    if need != "features" and (catalog is None or features is not None):
        raise InputError(f"method '{name}' needs the items themselves: give the catalog instead of features")


def _require_distinct(names: list[str]) -> None:
    if not names:
        raise InputError("no method to evaluate: name at least one, e.g. ncc")
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InputError(f"method '{name}' is given twice: results identify methods by name, so give it once")
