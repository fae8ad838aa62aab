"""Do tasks that are hard for one encoder stay hard for others? All encoders and methods on both sets of tasks.

table = transfer([hard], random, [features_a, features_b], ["ncc", "logistic"])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shotproof.core.errors import InputError, Mismatch
from shotproof.core.records import UNKNOWN
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.method import DEFAULT_METHODS, AnyMethod
from shotproof.results.evaluated import METRICS, Classifier, Metric, values_of
from shotproof.results.origin import design_of
from shotproof.results.results import Results
from shotproof.stats.intervals import Interval, check_level, gap_interval, sampler_interval
from shotproof.tasks.taskset import TaskSet


@dataclass(frozen=True)
class TransferRow:
    """One classifier on a set of hard tasks and on the reference, by metric, in percent.

    drop: the reference minus the hard tasks, in points
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

    sampler, reference: the spellings of the samplers of the hard tasks and of the reference
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
        """As plain values, in percent and points; an interval that cannot be given is null."""
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
    methods: Iterable[AnyMethod] = DEFAULT_METHODS,
    *,
    level: float = 0.95,
    seed: int = 0,
    runtime: Runtime | None = None,
) -> tuple[list[TransferTable], list[Results]]:
    """Evaluate every encoder and method on each set of hard tasks and on the reference.

    Args:
        tasks: sets of hard tasks
        against: the reference, best random tasks with the same queries
        features: one per encoder
        methods: all that `evaluate` takes
        level: of the intervals
        seed: for methods that draw
        runtime: how it is computed; None is the current one

    Returns:
        One table per set of hard tasks; and the results, first those on the reference, one per encoder, then those on
        each set.

    Raises:
        InputError: no tasks or no features, or two encoders of one name.
        Mismatch: sets of unequal designs, or sets with the same queries and unequal numbers of tasks.

    Example:
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=6, items=40).catalog()
        >>> features = sp.encode(catalog, "dial(share=0.5)")
        >>> random = sp.sample(catalog, "random", tasks=20)
        >>> hard = sp.sample(catalog, "hardest", features=features, like=random, tasks=20)
        >>> (table,), results = sp.analysis.transfer([hard], random, [features], ["ncc"])
        >>> table.paired, len(results)
        (True, 2)
    """
    check_level(level)
    if not tasks or not features:
        raise InputError(f"no {'features' if tasks else 'tasks'}: transfer needs at least one of each")
    names = [one.name for one in features]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two features are of an encoder named '{name}': results are told apart by that name")
    for one in tasks:
        _require_comparable(one, against)
    chosen = list(methods)
    evaluated = [
        [evaluate(given, one, chosen, seed=seed, runtime=runtime) for one in features] for given in (against, *tasks)
    ]
    tables = [
        _table(given, against, features, list(zip(evaluated[0], results, strict=True)), level)
        for given, results in zip(tasks, evaluated[1:], strict=True)
    ]
    return tables, [one for results in evaluated for one in results]


def _require_comparable(tasks: TaskSet, against: TaskSet) -> None:
    designs = [design_of(given.record, given.record.way, given.record.query) for given in (tasks, against)]
    if tasks.record.sampler and against.record.sampler and designs[0] != designs[1]:
        told = [
            f"{given.record.sampler} tasks ({design.shape})"
            for given, design in zip((tasks, against), designs, strict=True)
        ]
        raise Mismatch(f"{' and '.join(told)} cannot be compared: expected one catalog, split, way, shot and query")
    if tasks.match == against.match and len(tasks) != len(against):
        raise Mismatch(f"sets of {len(against)} and of {len(tasks)} tasks cannot be paired")


def _table(
    tasks: TaskSet,
    against: TaskSet,
    features: Sequence[Features],
    results: Sequence[tuple[Results, Results]],
    level: float,
) -> TransferTable:
    extracted = tasks.record.source("features")
    paired = tasks.match == against.match
    rows = []
    for one, on_both in zip(features, results, strict=True):
        for method in on_both[0].methods:
            reference, hard = (values_of(given, method) for given in on_both)
            rows.append(
                TransferRow(
                    Classifier(one.name, method),
                    one.digest == extracted,
                    {metric: sampler_interval(reference[metric], level) for metric in METRICS},
                    {metric: sampler_interval(hard[metric], level) for metric in METRICS},
                    {metric: gap_interval(reference[metric], hard[metric], level, paired=paired) for metric in METRICS},
                )
            )
    encoder = next((one.name for one in features if one.digest == extracted), None)
    sampler, usual = (str(given.record.sampler or UNKNOWN) for given in (tasks, against))
    return TransferTable(sampler, usual, len(tasks), encoder, paired, level, rows)


def _row_json(row: TransferRow) -> dict[str, Any]:
    sides = {"reference": row.reference, "hard": row.hard, "drop": row.drop}
    numbers: dict[str, Any] = {}
    for metric in METRICS:
        for side, intervals in sides.items():
            one = intervals[metric]
            numbers[f"{metric}_{side}"] = one.mean
            numbers[f"{metric}_{side}_low"], numbers[f"{metric}_{side}_high"] = one.bounds or (None, None)
    return {"encoder": row.classifier.encoder, "method": row.classifier.method, "own": row.own, **numbers}
