"""Transfer of hard tasks: whether tasks that are hard for one encoder stay hard for other encoders and methods.

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

    drop: reference minus hard tasks, in points
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

    sampler, reference: spellings of the samplers of the hard tasks and of the reference
    extracted_with: encoder whose features the sampler used, if it is among those compared
    paired: whether drops are computed task by task, since both sets have the same queries
    """

    sampler: str
    reference: str
    tasks: int
    extracted_with: str | None
    paired: bool
    level: float
    rows: list[TransferRow]

    def to_json(self) -> dict[str, Any]:
        """Convert to plain values, in percent and points; an unavailable interval is null."""
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
        against: reference set, ideally random tasks with the same queries
        features: features, one per encoder
        methods: methods, as accepted by `evaluate`
        level: confidence level of the intervals
        seed: seed of methods that use random numbers
        runtime: runtime for the evaluation; None means the current one

    Returns:
        One table per set of hard tasks; and the results, first those on the reference, one per encoder, then those on
        each set.

    Raises:
        InputError: no tasks or no features, or two encoders with the same name.
        Mismatch: sets of different designs, or sets with the same queries and different numbers of tasks.

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
    names = [encoder_features.name for encoder_features in features]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"two features have an encoder named '{name}': names must differ to distinguish the results"
            )
    for task_set in tasks:
        _require_comparable(task_set, against)
    method_list = list(methods)
    evaluated = [
        [evaluate(task_set, encoder_features, method_list, seed=seed, runtime=runtime) for encoder_features in features]
        for task_set in (against, *tasks)
    ]
    tables = [
        _table(task_set, against, features, list(zip(evaluated[0], results, strict=True)), level)
        for task_set, results in zip(tasks, evaluated[1:], strict=True)
    ]
    return tables, [set_results for results in evaluated for set_results in results]


def _require_comparable(tasks: TaskSet, against: TaskSet) -> None:
    """Raise Mismatch if two task sets cannot be compared."""
    designs = [design_of(task_set.record, task_set.record.way, task_set.record.query) for task_set in (tasks, against)]
    if tasks.record.sampler and against.record.sampler and designs[0] != designs[1]:
        descriptions = [
            f"{task_set.record.sampler} tasks ({design.shape})"
            for task_set, design in zip((tasks, against), designs, strict=True)
        ]
        raise Mismatch(
            f"{' and '.join(descriptions)} cannot be compared: expected the same catalog, split, way, shot and query"
        )
    if tasks.match == against.match and len(tasks) != len(against):
        raise Mismatch(f"sets of {len(against)} and {len(tasks)} tasks with the same queries cannot be paired")


def _table(
    tasks: TaskSet,
    against: TaskSet,
    features: Sequence[Features],
    results: Sequence[tuple[Results, Results]],
    level: float,
) -> TransferTable:
    """Build the table of one set of hard tasks."""
    extracted_digest = tasks.record.source("features")
    paired = tasks.match == against.match
    rows = []
    for encoder_features, results_pair in zip(features, results, strict=True):
        for method in results_pair[0].methods:
            reference, hard = (values_of(set_results, method) for set_results in results_pair)
            rows.append(
                TransferRow(
                    Classifier(encoder_features.name, method),
                    encoder_features.digest == extracted_digest,
                    {metric: sampler_interval(reference[metric], level) for metric in METRICS},
                    {metric: sampler_interval(hard[metric], level) for metric in METRICS},
                    {metric: gap_interval(reference[metric], hard[metric], level, paired=paired) for metric in METRICS},
                )
            )
    encoder = next(
        (encoder_features.name for encoder_features in features if encoder_features.digest == extracted_digest), None
    )
    sampler, reference_sampler = (str(task_set.record.sampler or UNKNOWN) for task_set in (tasks, against))
    return TransferTable(sampler, reference_sampler, len(tasks), encoder, paired, level, rows)


def _row_json(row: TransferRow) -> dict[str, Any]:
    """Convert a row to plain values."""
    sides = {"reference": row.reference, "hard": row.hard, "drop": row.drop}
    numbers: dict[str, Any] = {}
    for metric in METRICS:
        for side, intervals in sides.items():
            interval = intervals[metric]
            numbers[f"{metric}_{side}"] = interval.mean
            numbers[f"{metric}_{side}_low"], numbers[f"{metric}_{side}_high"] = interval.bounds or (None, None)
    return {"encoder": row.classifier.encoder, "method": row.classifier.method, "own": row.own, **numbers}
