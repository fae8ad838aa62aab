"""Tasks times methods to counts: batched over tasks of one shape, on features that were made once, or on the items."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core import draws, limits
from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError
from shotproof.core.plain_values import plain
from shotproof.core.records import FeaturesRecord, MethodRecord, ResultsRecord, Source
from shotproof.core.runtime.runtime import Runtime, current_runtime, resolve
from shotproof.evaluation.batches import Part, TaskArrays
from shotproof.evaluation.collapse import TOLD, collapsed_tasks
from shotproof.evaluation.tuning import tuned_methods
from shotproof.features.features import Features
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.items import NO_CLASS, ItemsMethod
from shotproof.learners.method import DEFAULT_METHODS, AnyMethod, Method, make_method
from shotproof.results.results import SCHEMA, Results
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model  # it needs PyTorch

ON_ITEMS = "items"  # what tables show as the encoder of methods that have none


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
        tasks: the task set
        features: of all items of the tasks; None for methods that need the items themselves
        methods: one or several; each is all that `make_method` takes: a spelling such as `ncc` or `ridge(penalty=1)`, a
            `Method`, anything with `fit` and `predict`, a function of support, labels and query
        catalog: of all items of the tasks, for methods that need the items themselves
        model: what methods that adapt a network adapt, its file, or a pretrained backbone's name: `lite0`, `hf:NAME`
        tune_on: validation tasks, none of whose items are in the tasks: the learning rate of each adaptation is the
            best on these, and the results name it
        rates: the learning rates to choose from (default: each method's own)
        seed: for methods that draw
        allow_seen: whether tasks may have classes that the model, or the features' encoder, was trained on
        chunk: how many tasks are computed at a time (default: by memory); no result depends on it
        runtime: devices and progress; the current one where none is given

    Returns:
        One row per method and class of a task.

    Raises:
        Mismatch: the features, or the catalog, lack items of the tasks.
        InputError: a method is unknown, given twice, or needs what was not given: maps, the items, a model; or the
            model or encoder has seen classes of the tasks.

    Example:
        >>> import shotproof as sp
        >>> catalog, features, _ = sp.GaussianWorld().draw(classes=6, items=40)
        >>> tasks = sp.sample(catalog, "random", tasks=20)
        >>> sp.evaluate(tasks, features, ["ncc", "ridge(penalty=1)"]).methods
        ['ncc', 'ridge(penalty=1)']
    """
    several = isinstance(methods, Iterable) and not isinstance(methods, str | Mapping)
    made = [make_method(method) for method in cast("Iterable[AnyMethod]", methods if several else [methods])]
    _require_distinct([method.spelling for method in made])
    limits.SEED.check("seed", seed)
    if chunk is not None:
        limits.COUNT.check("chunk", chunk)
    network = _read_model(model)
    _require_given(made, features, catalog, network)
    if tune_on is None and rates:
        raise InputError("rates: a learning rate is chosen on validation tasks: give them (tune_on, --tune-on)")
    if features is not None:
        if not allow_seen:
            require_unseen(labels_of(tasks), features.record.trained_on, f"the model of features '{features.name}'")
        for method in made:
            method.require_features(features.record)
    runtime = resolve(runtime)
    seeds = task_seeds(tasks, seed)
    if features is not None:
        query, predicted, warned = _on_features(tasks, features, made, seeds, chunk, runtime)
        sources = {"features": Source(features.digest, features.name)}
        of_features = replace(features.record, stated_digest=None)
    elif network is not None:
        assert catalog is not None
        if not allow_seen:
            for each in (tasks, *([] if tune_on is None else [tune_on])):
                require_unseen(labels_of(each), network.record.seen, f"model '{network.name}'")
        adaptations = cast("list[Adaptation]", made)
        for adaptation in adaptations:
            adaptation.require_model(network)
        sources = {
            "catalog": Source(catalog.digest, catalog.record.name),
            "model": Source(network.digest, network.name),
        }
        if tune_on is not None:
            sources["tune_on"] = Source(tune_on.digest, tune_on.record.name)
            adaptations = tuned_methods(adaptations, tune_on, tasks, catalog, network, rates, seed, runtime)
            made = [*adaptations]
        query, predicted, warned = _on_network(tasks, catalog, network, adaptations, seeds, chunk, runtime)
        of_features = FeaturesRecord(
            name=network.name,
            fingerprint=f"model {network.digest}",
            trained_on=network.record.seen,
            pretrained_on=network.backbone.pretrained_on,
        )
    else:
        assert catalog is not None
        query, predicted, warned = _on_items(tasks, catalog, made, seeds, runtime)
        sources = {"catalog": Source(catalog.digest, catalog.record.name)}
        of_features = FeaturesRecord(name=ON_ITEMS)
    names = [method.spelling for method in made]
    for name, messages in zip(names, warned, strict=True):
        if messages:
            times = f"{len(messages)} times" if len(messages) > 1 else "once"
            warnings.warn(f"method '{name}' warned {times}: {messages[0]}", RuntimeWarning, stacklevel=2)
    unanswered = (predicted == NO_CLASS).sum(1).tolist()
    for name, count in zip(names, unanswered, strict=True):
        if count:
            what = f"{count:,} of {predicted.shape[1]:,} answers name none of the classes, and count as wrong"
            warnings.warn(f"method '{name}': {what}", RuntimeWarning, stacklevel=2)
    collapsed, counted = collapsed_tasks(query, predicted)
    for method, count in zip(made, collapsed.tolist(), strict=True):
        if method.collapse_help and count >= max(TOLD * counted, 1):
            what = f"in {count:,} of {counted:,} tasks it answered with at most half of the classes"
            warnings.warn(f"method '{method.spelling}': {what}; {method.collapse_help}", RuntimeWarning, stacklevel=2)
    record = ResultsRecord(
        sources={"tasks": Source(tasks.digest, tasks.record.name), **sources},
        tasks=replace(tasks.record, stated_digest=None),
        features=of_features,
        methods=tuple(
            MethodRecord(method.spelling, plain(method.parameters()), len(messages), count, few)
            for method, messages, count, few in zip(made, warned, unanswered, collapsed.tolist(), strict=True)
        ),
        seed=seed,
    )
    return Results(_count(tasks, names, query, predicted), record)


def predict_queries(tasks: TaskSet, features: Features, method: AnyMethod, *, seed: int = 0) -> list[list[int]]:
    """The slot of the class that a method names for each query of each row, as `evaluate` counts it.

    Args:
        tasks: what to predict
        features: of all of their items
        method: one method
        seed: as `evaluate` takes it

    Returns:
        One list per row of the task set, in the order of its queries.

    Example:
        >>> import shotproof as sp
        >>> catalog = sp.ShapesWorld(classes=6, items=8).catalog()
        >>> tasks = sp.sample(catalog, "random", way=2, shot=1, query=2, tasks=1)
        >>> predict_queries(tasks, sp.encode(catalog, "dial(share=0, noise=0)"), "ncc")
        [[0, 0], [1, 1]]
    """
    query, predicted, _ = _on_features(
        tasks, features, [make_method(method)], task_seeds(tasks, seed), None, current_runtime()
    )
    return [part.tolist() for part in np.split(predicted[0], np.cumsum(query.count)[:-1])]


def task_seeds(tasks: TaskSet, seed: int) -> IntArray:
    """One per task, for methods that draw."""
    return (draws.bits(seed, tasks.task_of_row[tasks.starts[:-1]]) >> np.uint64(33)).astype(np.int64)


Predictions = tuple[Part, npt.NDArray[Any], list[list[str]]]
"""All queries, the label that each method gives to each of them [methods, queries], and what each method warned of."""


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


def _on_features(
    tasks: TaskSet, features: Features, methods: list[Method], seeds: IntArray, chunk: int | None, runtime: Runtime
) -> Predictions:
    from shotproof.evaluation.batch_engine import Evaluation

    with ThreadPoolExecutor(1) as beside:
        beside.submit(lambda: (tasks.digest, features.digest))  # for the record; to hash leaves the others a core
        arrays = TaskArrays.of(tasks, features, methods)
    _warn_of_zeros(arrays, features)
    whole = any(method.in_order for method in methods)
    evaluation = Evaluation(arrays, methods, seeds, chunk)
    shards = list(runtime.map_ranges(evaluation, len(tasks), what="evaluating", whole=whole))
    predicted = np.concatenate([labels for labels, _ in shards], axis=1)
    warned = [[one for _, of_methods in shards for one in of_methods[index]] for index in range(len(methods))]
    return arrays.query, predicted, warned


def _on_items(
    tasks: TaskSet, catalog: Catalog, methods: list[Method], seeds: IntArray, runtime: Runtime
) -> Predictions:
    from shotproof.evaluation.on_items import predict_items, tasks_on_items

    made, query = tasks_on_items(tasks, catalog, seeds)
    answers = [predict_items(cast("ItemsMethod", method), made, runtime) for method in methods]
    return query, np.stack(answers), [[] for _ in methods]


def _on_network(
    tasks: TaskSet,
    catalog: Catalog,
    model: Model,
    methods: list[Adaptation],
    seeds: IntArray,
    chunk: int | None,
    runtime: Runtime,
) -> Predictions:
    from shotproof.evaluation.on_networks import NetworkEvaluation

    evaluation = NetworkEvaluation(tasks, catalog, model, seeds, runtime)
    return evaluation.query, evaluation.labels(methods, chunk), [[] for _ in methods]


def _read_model(given: Model | str | Path | None) -> Model | None:
    if not isinstance(given, str | Path):
        return given
    from shotproof.models.model import Model

    return Model.given(given)


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
        named = ", ".join(f"'{one}'" for one in seen[:3])
        raise InputError(
            f"{whose} was trained on {len(seen)} classes of these tasks, e.g. {named}: "
            "draw tasks of other classes, or allow seen ones (allow_seen=True, --allow-seen)"
        )


def _count(tasks: TaskSet, names: list[str], query: Part, predicted: npt.NDArray[Any]) -> pa.Table:
    """Counts, missed positions and what was answered there, from the labels `predicted` [methods, all queries]."""
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


def _warn_of_zeros(arrays: TaskArrays, features: Features) -> None:
    """Tell how many items have no direction: by cosine they are as near to one class as to another."""
    zeros = int((~arrays.values.any(axis=1)).sum())
    if zeros:
        what = f"{zeros:,} of {len(arrays.values):,} items are zero in all dimensions, and cannot be told apart"
        warnings.warn(f"features of '{features.name}': {what}", RuntimeWarning, stacklevel=4)


def _require_given(
    methods: list[Method], features: Features | None, catalog: Catalog | None, model: Model | None
) -> None:
    """Refuse methods that need what is not there; those on features, on items and on a model make results apart."""
    kinds: dict[str, list[str]] = {"features": [], "the items": [], "a model": []}
    for method in methods:
        need = "a model" if isinstance(method, Adaptation) else "the items" if method.needs == "items" else "features"
        kinds[need].append(method.spelling)
    different = [(need, names[0]) for need, names in kinds.items() if names]
    if len(different) > 1:
        (last, first), (need, name) = different[0], different[1]
        raise InputError(
            f"method '{name}' needs {need} and '{first}' needs {last}: evaluate them apart, and compare both results"
        )
    need, name = different[0]
    if need == "a model" and model is None:
        raise InputError(f"method '{name}' adapts a network: give a model (model, --model) and the catalog")
    if need != "a model" and model is not None:
        raise InputError(
            f"method '{name}' adapts no network: take the model as an encoder, model:FILE, and evaluate on its features"
        )
    if need == "features" and features is None:
        raise InputError(f"method '{name}' needs features: encode the catalog first")
    if need != "features" and (catalog is None or features is not None):
        raise InputError(f"method '{name}' needs the items themselves: give the catalog in place of features")


def _require_distinct(names: list[str]) -> None:
    if not names:
        raise InputError("no method to evaluate: name at least one, e.g. ncc")
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InputError(f"method '{name}' is given twice: results are told apart by the method's name")
