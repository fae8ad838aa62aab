"""Results file by file to task sets: all classifiers on the same tasks, with Acc and wAcc of each task."""

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
    """The metric of this name; UnknownName where there is none."""
    for known in METRICS:
        if known == name:
            return known
    raise UnknownName("metric", name, METRICS)


class Classifier(NamedTuple):
    """An encoder and a method."""

    encoder: str
    method: str

    def __str__(self) -> str:
        return self.method if self.encoder == UNKNOWN else f"{self.method} on {self.encoder}"


@dataclass(frozen=True)
class Evaluated:
    """One task set and all classifiers that were evaluated on it, in the order of the results.

    label: what tables call the set
    values: Acc and wAcc by task, in percent, [tasks] each; of a method that was evaluated with several seeds, the means
    features: the digest of each encoder's features, None where the results do not say
    rows: the task set's rows (task, slot, label, n_query), the same for all classifiers
    by_row: the accuracy on each of them, in percent, NaN without queries; of several evaluations that of the last
    """

    label: str
    origin: Origin
    values: dict[Classifier, dict[Metric, FloatArray]] = field(default_factory=dict)
    features: dict[str, str | None] = field(default_factory=dict)
    rows: list[pa.Table] = field(default_factory=list)
    by_row: dict[Classifier, FloatArray] = field(default_factory=dict)

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return len(next(iter(self.values.values()))["acc"])

    @cached_property
    def chance(self) -> dict[Metric, float]:
        """What guessing gives on average, in percent."""
        rows = self.rows[0]
        task, n_query = (rows.column(name).to_numpy().astype(np.int64) for name in ("task", "n_query"))
        counts = Counts(task, n_query, np.zeros_like(n_query))
        return {
            "acc": float(counts.guessed_accuracy_by_task().mean()),
            "wacc": float(counts.guessed_worst_by_task().mean()),
        }


def evaluated_sets(results: Sequence[Results]) -> list[Evaluated]:
    """One for each design, sampler, attributes and seed; Mismatch where their results are not on the same tasks."""
    if not results:
        raise InputError("no results to compare: give at least one results file")
    origins = [Origin.of(given) for given in results]
    sets: dict[tuple[Design, str, int | None], Evaluated] = {}
    seeds: dict[tuple[int, Classifier], dict[int | None, dict[Metric, FloatArray]]] = {}
    for given, origin, label in zip(results, origins, labels_of(origins), strict=True):
        one = sets.setdefault((origin.design, label, origin.seed), Evaluated(label, origin))
        _require_same_tasks(origin, one)
        one.features.setdefault(origin.encoder, origin.features)
        for method in given.methods:
            classifier = Classifier(origin.encoder, method)
            _require_same_rows(one, classifier, given)
            by_seed = seeds.setdefault((id(one), classifier), {})
            _add(by_seed, given, classifier, one)
            one.by_row[classifier] = given.counts(method).accuracy()
            one.values[classifier] = {
                metric: np.mean([values[metric] for values in by_seed.values()], axis=0) for metric in METRICS
            }
    return list(sets.values())


def values_of(results: Results, method: str) -> dict[Metric, FloatArray]:
    """Acc and wAcc of a method by task, in percent: [tasks] each."""
    counts = results.counts(method)
    return {"acc": counts.accuracy_by_task(), "wacc": counts.worst_by_task()}


def _add(
    by_seed: dict[int | None, dict[Metric, FloatArray]], results: Results, classifier: Classifier, to: Evaluated
) -> None:
    """The values of one evaluation. The same may be given twice; other counts under the same seed may not."""
    values = values_of(results, classifier.method)
    first = by_seed.setdefault(results.record.seed, values)
    if not all(np.array_equal(first[metric], values[metric]) for metric in METRICS):
        raise Mismatch(
            f"method '{classifier.method}' on encoder '{classifier.encoder}' was given twice, with different counts, "
            f"on the '{to.label}' task set {to.origin.tasks_digest or UNKNOWN}"
        )


def _require_same_rows(to: Evaluated, classifier: Classifier, results: Results) -> None:
    rows = results.rows_of(classifier.method).select(["task", "slot", "label", "n_query"]).combine_chunks()
    if not to.rows:
        _require_whole(rows, to.origin, classifier, results.record.tasks.tasks)
        to.rows.append(rows)
    elif not rows.equals(to.rows[0]):
        raise Mismatch(_other_rows(rows, to, classifier))


def _require_same_tasks(new: Origin, first: Evaluated) -> None:
    before = first.origin
    if new.tasks_digest != before.tasks_digest:
        raise Mismatch(
            f"results on different '{first.label}' task sets of one design and seed cannot be compared: task set "
            f"{before.tasks_digest or UNKNOWN} (encoder '{before.encoder}') and {new.tasks_digest or UNKNOWN} "
            f"(encoder '{new.encoder}'); evaluate both on the same task file"
        )


def _require_whole(rows: pa.Table, origin: Origin, classifier: Classifier, tasks: int | None) -> None:
    """Refuse results that lack classes or tasks of the set that they name."""
    task, way = np.unique(rows.column("task").to_numpy(), return_counts=True)
    if way.max() == origin.design.way and way.min() < way.max():
        short = int(np.argmin(way))
        raise Mismatch(
            f"method '{classifier.method}': task {task[short]} has results for {way[short]} of its {way.max()} classes"
        )
    if tasks is not None and len(task) < tasks:
        raise Mismatch(
            f"method '{classifier.method}' has results for {len(task)} of the {tasks} tasks of the task set "
            f"{origin.tasks_digest or UNKNOWN}"
        )


def _other_rows(rows: pa.Table, to: Evaluated, classifier: Classifier) -> str:
    """How the rows of a classifier differ from those of the first one."""
    first = next(iter(to.values))
    start = f"methods '{first.method}' and '{classifier.method}' were not evaluated on the same tasks"
    names = ["task", "slot", "label", "n_query"]
    expected, found = (
        {tuple(row[name] for name in names) for row in table.to_pylist()} for table in (to.rows[0], rows)
    )
    for name, lacking in ((classifier.method, expected - found), (first.method, found - expected)):
        if lacking:
            task, _, label, queries = min(lacking)
            return (
                f"{start}: '{name}' lacks {len(lacking)} classes of tasks, e.g. task {task}, class '{label}' with "
                f"{queries} queries; evaluate both on the same task file"
            )
    return start
