"""Measurements of one classifier on one axis, from one file: a robustness card or results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.comparison.card import AxisTasks, Card, CardAxis, CardRemedy, CardTasks, axis_tasks, without_folders
from shotproof.comparison.card_remedies import feature_remedies, support_remedies
from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.dominance import OWN_TASKS, Comparable
from shotproof.core import tables
from shotproof.core.errors import InputError, Mismatch, error_prefix
from shotproof.core.records import UNKNOWN, Source
from shotproof.results.applied_change import AppliedChange
from shotproof.results.evaluated import METRICS, Classifier, Metric, evaluated_sets
from shotproof.results.origin import Origin, labels_of
from shotproof.results.results import Results
from shotproof.stats.block import Group, Loss
from shotproof.stats.intervals import Estimate, IntervalName, Spread
from shotproof.tasks.taskset import TaskSet

Quantity = Literal["accuracy", "skill_lost"]
QUANTITIES: tuple[Quantity, ...] = ("accuracy", "skill_lost")
NumberKey = tuple[Quantity, Metric]
SAMPLER: IntervalName = "sampler"
SEEDS_SEPARATOR = "+"  # between the digests of several seeds
MOST_TASKS = 10**9
COLUMNS = ["task", "slot", "label", "n_query"]  # columns that identify a task set
TOLERANCE = 0.05  # points by which two files may differ in the same mean
# Limits of the numbers of a card; no measurement goes beyond them.
_POSSIBLE = {
    "mean": (-1e9, 1e9),
    "variance": (1e-20, 1e20),
    "uncertainty": (1e-40, 1e40),
    "skew": (-1e40, 1e40),
    "task_variance": (1e-20, 1e20),
}


@dataclass(frozen=True)
class AxisKey:
    """Identity of an axis: all classifiers on an axis must be measured on the same task sets.

    way, shot, query: size of the tasks; 0 if tasks differ in it
    dial: loudness of the backgrounds of mixed sounds; None for other data and for cards, which do not record it
    """

    data_set: str
    split: str | None
    name: str
    way: int
    shot: int
    query: int
    dial: float | None = None


@dataclass(frozen=True)
class Measurement:
    """Numbers of one classifier on one axis.

    file: the file that they come from
    numbers: accuracies and skill lost in percent, by quantity and metric, then by interval
    statements: verdict and advice of a card; None for results
    remedies: remedies that it was measured with on this axis
    """

    classifier: Classifier
    file: str
    axis: AxisKey
    sets: AxisTasks
    numbers: Mapping[NumberKey, Mapping[str, Comparable]]
    medium: str | None = None
    statements: tuple[str, str] | None = None
    remedies: tuple[CardRemedy, ...] = ()


@dataclass(frozen=True)
class ResultsFile:
    """Results with the name of their file."""

    file: str
    results: Results


def measure_card(card: Card, file: str) -> Iterator[Measurement]:
    """Yield the measurement on each axis of a card.

    Raises:
        InputError: if one of its numbers is impossible.
    """
    for axis in card.axes:
        if not 1 <= axis.tasks.tasks <= MOST_TASKS:
            raise InputError(f"{file}: {axis.name}, tasks: expected a number from 1 to {MOST_TASKS:,}")
        numbers: dict[NumberKey, Mapping[str, Comparable]] = {}
        for quantity, metric in product(QUANTITIES, METRICS):
            if axis.number(quantity, metric):
                with error_prefix(f"{file}: {axis.name}, {quantity}, {metric}: "):
                    numbers[quantity, metric] = _card_number(axis, quantity, metric)
        yield Measurement(
            Classifier(card.encoder or UNKNOWN, card.method),
            file,
            _axis_key(card.name, card.split, axis),
            axis,
            numbers,
            card.medium,
            (axis.verdict, axis.advice),
            tuple(remedy for remedy in card.remedies if not remedy.axes or axis.name in remedy.axes),
        )


def measure_results(files: Sequence[ResultsFile], encoder_names: Mapping[str, str]) -> Iterator[Measurement]:
    """Yield the measurement of each classifier on each of its task sets.

    Classifiers are compared with others on exactly the same task sets, so that none changes the numbers of another.

    Args:
        files: all results of all classifiers
        encoder_names: display name of each encoder

    Raises:
        Mismatch: if results are on other tasks than they claim.
    """
    origins = [Origin.of(file.results) for file in files]
    labels: dict[str | None, str] = {}
    for origin, label in zip(origins, labels_of(origins), strict=True):
        labels.setdefault(origin.tasks_digest, label)  # among names of the same tasks, the first
    data_sets = {origin.design.catalog: origin.design.data_set for origin in origins}
    parts = [part for file, origin in zip(files, origins, strict=True) for part in _split_by_classifier(file, origin)]
    digests: dict[Classifier, set[str | None]] = {}
    for classifier, digest, _ in parts:
        digests.setdefault(classifier, set()).add(digest)
    tasks = {file.results.record.tasks_digest: file.results.record.tasks for file in files}
    fitted = {origin.encoder: file.results.record.features for file, origin in zip(files, origins, strict=True)}
    by_digests: dict[frozenset[str | None], list[ResultsFile]] = {}
    for classifier, _, part in parts:
        by_digests.setdefault(frozenset(digests[classifier]), []).append(part)
    for group_files in by_digests.values():
        file_names = {  # among files of the same tasks, the first
            (classifier, digest or UNKNOWN): file.file
            for file in reversed(group_files)
            for classifier, digest, _ in _split_by_classifier(file, Origin.of(file.results))
        }
        try:
            sets = evaluated_sets([file.results for file in group_files])
        except InputError as error:
            raise error.with_prefix(f"{', '.join(dict.fromkeys(file_names.values()))}: ") from error
        searched = {task_set.origin.tasks_digest: task_set.origin.searched for task_set in sets}
        comparison = compare_sets(sets, (SAMPLER,), pairs=False)
        for block in comparison.blocks:
            design, losses = block.design, {loss.label: loss for loss in block.losses}
            changes = {label: change for (of, label), change in comparison.changes.items() if of == design}
            for group in block.measured:
                loss, digest = losses.get(group.label), group.digests[0]
                axis = axis_tasks(block, group, loss, partial(_card_tasks, searched, changes), labels.get(digest))
                key = _axis_key(data_sets[design.catalog], design.split, axis, design.dial)
                for row in group.rows:
                    encoder, method = row.classifier
                    classifier = Classifier(encoder_names.get(encoder, encoder), without_folders(method))
                    numbers = _result_numbers(group, loss, row.classifier)
                    file_name = file_names[row.classifier, digest or UNKNOWN]
                    remedies = (*feature_remedies(fitted[encoder]), *support_remedies(digest, tasks))
                    yield Measurement(classifier, file_name, key, axis, numbers, comparison.medium, None, remedies)


def _split_by_classifier(file: ResultsFile, origin: Origin) -> Iterator[tuple[Classifier, str | None, ResultsFile]]:
    for results in file.results.by_method():
        classifier = Classifier(origin.encoder, results.methods[0])
        yield classifier, origin.tasks_digest, ResultsFile(file.file, results)


def _axis_key(data_set: str, split: str | None, axis: AxisTasks, dial: float | None = None) -> AxisKey:
    return AxisKey(data_set, split, axis.name, axis.way, axis.shot, axis.query, dial)


def _card_tasks(
    searched: Mapping[str | None, Source | None], changes: Mapping[str, AppliedChange], group: Group
) -> CardTasks:
    """Describe a task set; its digest joins those of all seeds."""
    digest = SEEDS_SEPARATOR.join(seed_digest or UNKNOWN for seed_digest in group.digests)
    seed = group.seeds[0] if len(group.seeds) == 1 else None
    features = searched.get(group.digests[0])
    searched_in = features.digest if features else None
    return CardTasks(group.label, digest, group.tasks, seed, searched_in, changes.get(group.label))


def _result_numbers(group: Group, loss: Loss | None, classifier: Classifier) -> dict[NumberKey, dict[str, Comparable]]:
    groups: dict[Quantity, Group] = {"accuracy": group}
    if loss is not None and loss.skill.row(classifier):
        groups["skill_lost"] = loss.skill
    return {
        (quantity, metric): {
            SAMPLER: Comparable(
                numbers.rows_by_classifier[classifier].intervals[metric][SAMPLER].estimate,
                # All accuracies of an axis are on the same tasks, those of cards too.
                {OWN_TASKS: numbers.values[classifier][metric]}
                if quantity == "accuracy"
                else numbers.by_task[metric][classifier],
            )
        }
        for quantity, numbers in groups.items()
        for metric in METRICS
    }


def _card_number(axis: CardAxis, quantity: Quantity, metric: Metric) -> dict[str, Comparable]:
    """Return a number of a card under the card's interval, and under the sampler interval, which every card allows."""
    number, tasks = axis.estimates[quantity][metric], axis.tasks.tasks
    for name, (least, most) in (_POSSIBLE | ({"mean": (0, 100)} if quantity == "accuracy" else {})).items():
        value = getattr(number, name)
        if value is not None and not math.isnan(value) and not least <= value <= most:
            raise InputError(f"{name}: expected a number from {least:g} to {most:g}, found {value:g}")
    by_task = axis.by_task.get(metric, ()) if quantity == "accuracy" else ()
    comparable = Comparable.of_axis(number, tasks, by_task)
    if number.covers == SAMPLER:
        return {SAMPLER: comparable}
    variance = number.task_variance
    spread = None if variance is None or tasks < 2 else Spread(variance, 2 * variance**2 / (tasks - 1))
    refused = None if spread else number.refused or "the card has no variance over tasks"
    over_tasks = Estimate(number.mean, spread, refused).interval(SAMPLER)
    return {number.covers: comparable, SAMPLER: Comparable.of_axis(over_tasks, tasks, by_task)}


def require_same_rows(results: Sequence[ResultsFile], tasks: Sequence[TaskSet]) -> None:
    """Raise Mismatch if results are not on the tasks that they claim.

    Args:
        results: results on any task sets
        tasks: the task sets that are known; for any other, the first results determine the tasks

    Raises:
        Mismatch: if the tasks differ; the message names the file and the task set.
    """
    known_digests = {task_set.digest: ("the task file", _digest_rows(_task_rows(task_set))) for task_set in tasks}
    for file in results:
        claimed = file.results.record.tasks_digest or UNKNOWN
        for method in file.results.methods:
            digest = _digest_rows(file.results.rows_of(method))
            first, expected = known_digests.setdefault(claimed, (file.file, digest))
            if digest != expected:
                raise Mismatch(
                    f"{file.file}: method '{method}' claims the task set {claimed}, but has other tasks, classes or "
                    f"numbers of queries than {first}"
                )


def _task_rows(tasks: TaskSet) -> pa.Table:
    queries = pc.cast(pc.list_value_length(tasks.table.column("query")), pa.int32())
    return tasks.table.select(COLUMNS[:3]).append_column("n_query", queries)


def _digest_rows(rows: pa.Table) -> str:
    return tables.digest(rows.select(COLUMNS).combine_chunks(), COLUMNS)
