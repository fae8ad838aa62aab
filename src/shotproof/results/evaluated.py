"""Results of several files, grouped by task set: all classifiers on the same tasks, with Acc and wAcc of each task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from shotproof.core.arrays import FloatArray
from shotproof.core.errors import InputError, Mismatch, UnknownName
from shotproof.core.records import UNKNOWN
from shotproof.results.metrics import Counts
from shotproof.results.origin import Design, Origin, labels_of
from shotproof.results.results import Results

Metric = Literal["acc", "wacc"]
METRICS: tuple[Metric, ...] = ("acc", "wacc")


def check_metric(name: str) -> Metric:
    """Return the metric with this name; raise UnknownName if there is none."""
    for metric in METRICS:
        if metric == name:
            return metric
    raise UnknownName("metric", name, METRICS)


class Classifier(NamedTuple):
    """Encoder with a method."""

    encoder: str
    method: str

    def __str__(self) -> str:
        return self.method if self.encoder == UNKNOWN else f"{self.method} on {self.encoder}"


@dataclass(frozen=True)
class Evaluated:
    """One task set and all classifiers that were evaluated on it, in the order of the results.

    label: name of the set in tables
    values: Acc and wAcc by task, in percent, [tasks] each; means if a method was evaluated with several seeds
    features: digest of each encoder's features; None if the results do not state it
    rows: rows of the task set (task, slot, label, n_query), the same for all classifiers
    by_row: accuracy on each row, in percent, NaN without queries; that of the last of several evaluations
    """

    label: str
    origin: Origin
    values: dict[Classifier, dict[Metric, FloatArray]] = field(default_factory=dict)
    features: dict[str, str | None] = field(default_factory=dict)
    rows: list[pa.Table] = field(default_factory=list)
    by_row: dict[Classifier, FloatArray] = field(default_factory=dict)

    @property
    def tasks(self) -> int:
        """Return the number of tasks."""
        return len(next(iter(self.values.values()))["acc"])

    @cached_property
    def chance(self) -> dict[Metric, float]:
        """Compute the expected accuracies of guessing, in percent."""
        rows = self.rows[0]
        task, n_query = (rows.column(name).to_numpy().astype(np.int64) for name in ("task", "n_query"))
        counts = Counts(task, n_query, np.zeros_like(n_query))
        return {
            "acc": float(counts.guessed_accuracy_by_task().mean()),
            "wacc": float(counts.guessed_worst_by_task().mean()),
        }


def evaluated_sets(results: Sequence[Results]) -> list[Evaluated]:
    """Group results by design, sampler, attributes and seed; raise Mismatch if a group is on different tasks."""
    if not results:
        raise InputError("no results to compare: give at least one results file")
    origins = [Origin.of(result) for result in results]
    sets: dict[tuple[Design, str, int | None], Evaluated] = {}
    values_by_seed: dict[tuple[int, Classifier], dict[int | None, dict[Metric, FloatArray]]] = {}
    for result, origin, label in zip(results, origins, labels_of(origins), strict=True):
        evaluated = sets.setdefault((origin.design, label, origin.seed), Evaluated(label, origin))
        _require_same_tasks(origin, evaluated)
        evaluated.features.setdefault(origin.encoder, origin.features)
        for method in result.methods:
            classifier = Classifier(origin.encoder, method)
            _require_same_rows(evaluated, classifier, result)
            by_seed = values_by_seed.setdefault((id(evaluated), classifier), {})
            _add_values(by_seed, result, classifier, evaluated)
            evaluated.by_row[classifier] = result.counts(method).accuracy()
            evaluated.values[classifier] = {
                metric: np.mean([values[metric] for values in by_seed.values()], axis=0) for metric in METRICS
            }
    return list(sets.values())


def values_of(results: Results, method: str) -> dict[Metric, FloatArray]:
    """Compute Acc and wAcc of a method by task, in percent: [tasks] each."""
    counts = results.counts(method)
    return {"acc": counts.accuracy_by_task(), "wacc": counts.worst_by_task()}


def _add_values(
    by_seed: dict[int | None, dict[Metric, FloatArray]], results: Results, classifier: Classifier, evaluated: Evaluated
) -> None:
    """Add the values of one evaluation. The same results may be given twice, different ones of one seed may not."""
    values = values_of(results, classifier.method)
    first = by_seed.setdefault(results.record.seed, values)
    if not all(np.array_equal(first[metric], values[metric]) for metric in METRICS):
        raise Mismatch(
            f"there are two different results of method '{classifier.method}' on encoder '{classifier.encoder}' with "
            f"the same seed, on the '{evaluated.label}' task set {evaluated.origin.tasks_digest or UNKNOWN}"
        )


def _require_same_rows(evaluated: Evaluated, classifier: Classifier, results: Results) -> None:
    rows = results.rows_of(classifier.method).select(["task", "slot", "label", "n_query"]).combine_chunks()
    if not evaluated.rows:
        _require_complete(rows, evaluated.origin, classifier, results.record.tasks.tasks)
        evaluated.rows.append(rows)
    elif not rows.equals(evaluated.rows[0]):
        raise Mismatch(_describe_difference(rows, evaluated, classifier))


def _require_same_tasks(origin: Origin, evaluated: Evaluated) -> None:
    first = evaluated.origin
    if origin.tasks_digest != first.tasks_digest:
        raise Mismatch(
            f"results on different '{evaluated.label}' task sets of one design and seed cannot be compared: task set "
            f"{first.tasks_digest or UNKNOWN} (encoder '{first.encoder}') and {origin.tasks_digest or UNKNOWN} "
            f"(encoder '{origin.encoder}'); evaluate both on the same task file"
        )


def _require_complete(rows: pa.Table, origin: Origin, classifier: Classifier, tasks: int | None) -> None:
    """Reject results that lack classes or tasks of the task set that they name."""
    task, way = np.unique(rows.column("task").to_numpy(), return_counts=True)
    if way.max() == origin.design.way and way.min() < way.max():
        row = int(np.argmin(way))
        raise Mismatch(
            f"method '{classifier.method}': task {task[row]} has results for {way[row]} of its {way.max()} classes"
        )
    if tasks is not None and len(task) < tasks:
        raise Mismatch(
            f"method '{classifier.method}' has results for {len(task)} of the {tasks} tasks of the task set "
            f"{origin.tasks_digest or UNKNOWN}"
        )


def _describe_difference(rows: pa.Table, evaluated: Evaluated, classifier: Classifier) -> str:
    """Describe how the rows of a classifier differ from those of the first one."""
    first = next(iter(evaluated.values))
    start = f"methods '{first.method}' and '{classifier.method}' were not evaluated on the same tasks"
    names = ["task", "slot", "label", "n_query"]
    expected, actual = (
        {tuple(row[name] for name in names) for row in table.to_pylist()} for table in (evaluated.rows[0], rows)
    )
    for name, missing in ((classifier.method, expected - actual), (first.method, actual - expected)):
        if missing:
            task, _, label, queries = min(missing)
            return (
                f"{start}: '{name}' lacks {len(missing)} classes of tasks, e.g. task {task}, class '{label}' with "
                f"{queries} queries; evaluate both on the same task file"
            )
    return start
