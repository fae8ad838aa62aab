"""Results file by file to task sets: all classifiers on the same tasks, with Acc and wAcc of each task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.errors import InputError, Mismatch
from shotproof.evaluation.metrics import FloatArray
from shotproof.evaluation.results import Results
from shotproof.evaluation.sources import UNKNOWN, Design, Source, lookup, sources_of

Metric = Literal["acc", "wacc"]
METRICS: tuple[Metric, ...] = ("acc", "wacc")


class Classifier(NamedTuple):
    """An encoder and a method."""

    encoder: str
    method: str


@dataclass(frozen=True)
class Evaluated:
    """One task set and all classifiers that were evaluated on it, in the order of the results.

    values: Acc and wAcc by task, [tasks] each
    features: the digest of each encoder's features, None where the results do not say
    rows: the task set's rows (task, slot, label, n_query), the same for all classifiers
    """

    source: Source
    values: dict[Classifier, dict[Metric, FloatArray]] = field(default_factory=dict)
    features: dict[str, str | None] = field(default_factory=dict)
    rows: list[pa.Table] = field(default_factory=list)

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return len(next(iter(self.values.values()))["acc"])


def evaluated_sets(results: Sequence[Results]) -> list[Evaluated]:
    """A set for each design and sampler; Mismatch where their results are not on the same tasks."""
    if not results:
        raise InputError("no results to compare: give at least one results file")
    sets: dict[tuple[Design, str], Evaluated] = {}
    for given, source in zip(results, sources_of(results), strict=True):
        one = sets.setdefault((source.design, source.sampler), Evaluated(source))
        _require_same_tasks(source, one.source)
        one.features.setdefault(source.encoder, lookup(given.meta, "features", "digest"))
        for method in given.methods:
            _add(one, Classifier(source.encoder, method), given)
    return list(sets.values())


def values_of(results: Results, method: str) -> dict[Metric, FloatArray]:
    """Acc and wAcc of a method by task, [tasks] each."""
    counts = results.counts(method)
    return {"acc": counts.accuracy_by_task(), "wacc": counts.worst_by_task()}


def _add(to: Evaluated, classifier: Classifier, results: Results) -> None:
    table = results.table.filter(pc.equal(results.table.column("method"), classifier.method))
    rows = table.sort_by([("task", "ascending"), ("slot", "ascending")])
    rows = rows.select(["task", "slot", "label", "n_query"]).combine_chunks()
    if not to.rows:
        _require_whole(rows, to.source, classifier, lookup(results.meta, "tasks", "made_by", "tasks"))
        to.rows.append(rows)
    elif not rows.equals(to.rows[0]):
        raise Mismatch(_other_rows(rows, to, classifier))
    values = values_of(results, classifier.method)
    first = to.values.setdefault(classifier, values)
    # The same results may be given twice; other counts for the same classifier and tasks may not.
    if not all(np.array_equal(first[metric], values[metric]) for metric in METRICS):
        raise Mismatch(
            f"method '{classifier.method}' on encoder '{classifier.encoder}' was given twice, with different counts, "
            f"on the '{to.source.sampler}' task set {to.source.tasks_digest or UNKNOWN}"
        )


def _require_same_tasks(new: Source, first: Source) -> None:
    if new.tasks_digest != first.tasks_digest:
        raise Mismatch(
            f"results on different '{new.sampler}' task sets of one design cannot be compared: task set "
            f"{first.tasks_digest or UNKNOWN} (encoder '{first.encoder}') and {new.tasks_digest or UNKNOWN} "
            f"(encoder '{new.encoder}'); evaluate both on the same task file"
        )


def _require_whole(rows: pa.Table, source: Source, classifier: Classifier, tasks: object) -> None:
    """Refuse results that lack classes or tasks of the set that they name."""
    task, way = np.unique(rows.column("task").to_numpy(), return_counts=True)
    if way.max() == source.design.way and way.min() < way.max():
        short = int(np.argmin(way))
        raise Mismatch(
            f"method '{classifier.method}': task {task[short]} has results for {way[short]} of its {way.max()} classes"
        )
    if isinstance(tasks, int) and len(task) < tasks:
        raise Mismatch(
            f"method '{classifier.method}' has results for {len(task)} of the {tasks} tasks of the task set "
            f"{source.tasks_digest or UNKNOWN}"
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
