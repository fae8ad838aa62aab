"""Do tasks that are hard for one encoder stay hard for others? All encoders and methods on both sets of tasks.

table = transfer([hard], random, [features_a, features_b], ["ncc", "logistic"])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shotproof.errors import InputError
from shotproof.evaluation.evaluate import evaluate
from shotproof.evaluation.evaluated import METRICS, Classifier, Metric
from shotproof.evaluation.results import Results
from shotproof.evaluation.sources import UNKNOWN, lookup
from shotproof.features.features import Features
from shotproof.methods.method import DEFAULT_METHODS, Estimator, Method
from shotproof.stats.compare import compare
from shotproof.stats.intervals import Interval
from shotproof.tasks.taskset import TaskSet


@dataclass(frozen=True)
class TransferRow:
    """One classifier on a set of hard tasks and on the reference, by metric; `drop` is the reference minus the other.

    own: whether the tasks were extracted with this classifier's encoder
    """

    classifier: Classifier
    own: bool
    reference: dict[Metric, Interval]
    hard: dict[Metric, Interval]
    drop: dict[Metric, Interval]


@dataclass(frozen=True)
class TransferTable:
    """All classifiers on one set of hard tasks.

    sampler, reference: of the hard tasks, and of those that they are held against
    extracted_with: the encoder whose features the sampler was given, where these are among the ones given here
    paired: whether drops are taken task by task, since both sets have the same queries
    """

    sampler: str
    reference: str
    tasks: int
    extracted_with: str | None
    paired: bool
    level: float
    rows: list[TransferRow]

    def to_json(self) -> dict[str, Any]:
        """As plain values, in percent points; an interval that cannot be given is null."""
        return {
            "unit": "percent points",
            "interval": "sampler",
            "level": self.level,
            "sampler": self.sampler,
            "reference": self.reference,
            "tasks": self.tasks,
            "extracted_with": self.extracted_with,
            "paired": self.paired,
            "rows": [_row_json(row) for row in self.rows],
        }


def transfer(
    tasks: Sequence[TaskSet],
    against: TaskSet,
    features: Sequence[Features],
    methods: Iterable[str | Method | Estimator] = DEFAULT_METHODS,
    *,
    level: float = 0.95,
    device: str | None = None,
    seed: int = 0,
) -> tuple[list[TransferTable], list[Results]]:
    """Evaluate every encoder and method on each set of hard tasks and on the reference: a table a set, and the counts.

    The results are those of the reference, an encoder each, and then those of each set.
    """
    if not tasks or not features:
        raise InputError(f"no {'features' if tasks else 'tasks'}: transfer needs at least one of each")
    names = [one.name for one in features]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two features are of an encoder named '{name}': results are told apart by that name")
    chosen = list(methods)
    evaluated = [
        [evaluate(given, one, chosen, device=device, seed=seed) for one in features] for given in (against, *tasks)
    ]
    tables = [
        _table(given, against, features, [*evaluated[0], *results], level)
        for given, results in zip(tasks, evaluated[1:], strict=True)
    ]
    return tables, [one for results in evaluated for one in results]


def _table(
    tasks: TaskSet, against: TaskSet, features: Sequence[Features], results: Sequence[Results], level: float
) -> TransferTable:
    compared = compare(results, level=level)
    (gap,) = compared.gaps
    groups = {group.digest: group for group in compared.groups}
    extracted = lookup(tasks.meta, "from", "features")
    classifiers = [
        (one, Classifier(one.name, method))
        for one, given in zip(features, results, strict=False)
        for method in given.methods
    ]
    sides = (groups[against.digest].methods, groups[tasks.digest].methods, gap.methods)
    rows = [
        TransferRow(
            classifier,
            one.digest == extracted,
            *({metric: row.intervals[metric]["sampler"] for metric in METRICS} for row in of_sides),
        )
        for (one, classifier), *of_sides in zip(classifiers, *sides, strict=True)
    ]
    encoder = next((one.name for one in features if one.digest == extracted), None)
    sampler, reference = (str(lookup(given.meta, "made_by", "sampler") or UNKNOWN) for given in (tasks, against))
    return TransferTable(sampler, reference, len(tasks), encoder, tasks.match == against.match, level, rows)


def _row_json(row: TransferRow) -> dict[str, Any]:
    sides = {"reference": row.reference, "hard": row.hard, "drop": row.drop}
    numbers: dict[str, Any] = {}
    for metric in METRICS:
        for side, intervals in sides.items():
            one = intervals[metric]
            numbers[f"{metric}_{side}"] = 100 * one.mean
            numbers[f"{metric}_{side}_low"], numbers[f"{metric}_{side}_high"] = (
                (None, None) if one.refused else (100 * one.low, 100 * one.high)
            )
    return {"encoder": row.classifier.encoder, "method": row.classifier.method, "own": row.own, **numbers}
