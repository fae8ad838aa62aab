"""What one file tells of one classifier on one axis: from a robustness card, or from results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.comparison.card import AxisTasks, Card, CardAxis, CardTasks, axis_tasks, without_folders
from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.dominance import OWN_TASKS, Comparable
from shotproof.core import tables
from shotproof.core.errors import InputError, Mismatch, placed
from shotproof.core.records import UNKNOWN, Source
from shotproof.results.evaluated import METRICS, Classifier, Metric, evaluated_sets
from shotproof.results.origin import Origin, labels_of
from shotproof.results.results import Results
from shotproof.stats.block import Group, Loss
from shotproof.stats.intervals import Covers, Estimate, Spread
from shotproof.tasks.taskset import TaskSet

Quantity = Literal["accuracy", "skill_lost"]
QUANTITIES: tuple[Quantity, ...] = ("accuracy", "skill_lost")
What = tuple[Quantity, Metric]
SAMPLER: Covers = "sampler"
AND = "+"  # between the digests of several seeds
MOST_TASKS = 10**9
COLUMNS = ["task", "slot", "label", "n_query"]  # by which task sets are told apart
AGREEING = 0.05  # points by which two files may differ on one mean
# What numbers of a card may be: beyond that, nobody has measured them.
_POSSIBLE = {
    "mean": (-1e9, 1e9),
    "variance": (1e-20, 1e20),
    "uncertainty": (1e-40, 1e40),
    "skew": (-1e40, 1e40),
    "task_variance": (1e-20, 1e20),
}


@dataclass(frozen=True)
class Slot:
    """What is measured: whoever measures the same must do so on the same task sets. A size is 0 where tasks differ.

    dial: how loud the backgrounds of mixed sounds are; None of what is not mixed, and of cards, which do not say
    """

    data_set: str
    split: str | None
    name: str
    way: int
    shot: int
    query: int
    dial: float | None = None


@dataclass(frozen=True)
class Measured:
    """One classifier on one axis.

    file: that tells it
    numbers: accuracies and skill lost in percent, by metric; by interval
    told: what a card says of it in words, and advises; None of results
    """

    classifier: Classifier
    file: str
    slot: Slot
    sets: AxisTasks
    numbers: Mapping[What, Mapping[str, Comparable]]
    medium: str | None = None
    told: tuple[str, str] | None = None


@dataclass(frozen=True)
class ResultsFile:
    """Results with the name of their file."""

    file: str
    results: Results


def measured_of_card(card: Card, file: str) -> Iterator[Measured]:
    """Each axis of a card.

    Raises:
        InputError: a number of it cannot be.
    """
    for axis in card.axes:
        if not 1 <= axis.tasks.tasks <= MOST_TASKS:
            raise InputError(f"{file}: {axis.name}, tasks: expected from 1 to {MOST_TASKS:,}")
        numbers: dict[What, Mapping[str, Comparable]] = {}
        for quantity, metric in product(QUANTITIES, METRICS):
            if axis.number(quantity, metric):
                with placed(f"{file}: {axis.name}, {quantity}, {metric}: "):
                    numbers[quantity, metric] = _of_card(axis, quantity, metric)
        yield Measured(
            Classifier(card.encoder or UNKNOWN, card.method),
            file,
            _slot(card.name, card.split, axis),
            axis,
            numbers,
            card.medium,
            (axis.verdict, axis.advice),
        )


def measured_of_results(given: Sequence[ResultsFile], names: Mapping[str, str]) -> Iterator[Measured]:
    """Each classifier of results on each of their task sets, compared with those on the same sets alone.

    Args:
        given: all results of all classifiers
        names: what people call each encoder

    Raises:
        Mismatch: a classifier's results are on other tasks than they claim.
    """
    origins = [Origin.of(one.results) for one in given]
    labels: dict[str | None, str] = {}
    for origin, label in zip(origins, labels_of(origins), strict=True):
        labels.setdefault(origin.tasks_digest, label)  # of sets that are the same tasks, the first
    data_sets = {origin.design.catalog: origin.design.data_set for origin in origins}
    apart = [part for one, origin in zip(given, origins, strict=True) for part in _by_classifier(one, origin)]
    on_sets: dict[Classifier, set[str | None]] = {}
    for classifier, digest, _ in apart:
        on_sets.setdefault(classifier, set()).add(digest)
    together: dict[frozenset[str | None], list[ResultsFile]] = {}
    for classifier, _, one in apart:
        together.setdefault(frozenset(on_sets[classifier]), []).append(one)
    for of_sets in together.values():
        files = {  # of sets that are the same tasks, the first file
            (classifier, digest or UNKNOWN): one.file
            for one in reversed(of_sets)
            for classifier, digest, _ in _by_classifier(one, Origin.of(one.results))
        }
        try:
            sets = evaluated_sets([one.results for one in of_sets])
        except InputError as error:
            raise error.placed(f"{', '.join(dict.fromkeys(files.values()))}: ") from error
        searched = {given.tasks_digest: given.searched for given in (one.origin for one in sets)}
        comparison = compare_sets(sets, (SAMPLER,), pairs=False)
        for block in comparison.blocks:
            design, lost = block.design, {loss.label: loss for loss in block.losses}
            for group in block.measured:
                loss, digest = lost.get(group.label), group.digests[0]
                axis = axis_tasks(block, group, loss, partial(_tasks, searched), labels.get(digest))
                slot = _slot(data_sets[design.catalog], design.split, axis, design.dial)
                for row in group.rows:
                    encoder, method = row.classifier
                    named = Classifier(names.get(encoder, encoder), without_folders(method))
                    numbers = _numbers(group, loss, row.classifier)
                    file = files[row.classifier, digest or UNKNOWN]
                    yield Measured(named, file, slot, axis, numbers, comparison.medium)


def _by_classifier(one: ResultsFile, origin: Origin) -> Iterator[tuple[Classifier, str | None, ResultsFile]]:
    for part in one.results.by_method():
        yield Classifier(origin.encoder, part.methods[0]), origin.tasks_digest, ResultsFile(one.file, part)


def _slot(data_set: str, split: str | None, axis: AxisTasks, dial: float | None = None) -> Slot:
    return Slot(data_set, split, axis.name, axis.way, axis.shot, axis.query, dial)


def _tasks(searched: Mapping[str | None, Source | None], group: Group) -> CardTasks:
    """Tell a task set by the digests of all seeds."""
    digest = AND.join(one or UNKNOWN for one in group.digests)
    seed = group.seeds[0] if len(group.seeds) == 1 else None
    features = searched.get(group.digests[0])
    return CardTasks(group.label, digest, group.tasks, seed, features.digest if features else None)


def _numbers(group: Group, loss: Loss | None, classifier: Classifier) -> dict[What, dict[str, Comparable]]:
    of: dict[Quantity, Group] = {"accuracy": group}
    if loss is not None and loss.skill.row(classifier):
        of["skill_lost"] = loss.skill
    return {
        (quantity, metric): {
            SAMPLER: Comparable(
                one.rows_by_classifier[classifier].intervals[metric][SAMPLER].estimate,
                # All accuracies of an axis are on the same tasks, those of cards too.
                {OWN_TASKS: one.values[classifier][metric]}
                if quantity == "accuracy"
                else one.by_task[metric][classifier],
            )
        }
        for quantity, one in of.items()
        for metric in METRICS
    }


def _of_card(axis: CardAxis, quantity: Quantity, metric: Metric) -> dict[str, Comparable]:
    """A number under the card's own interval, and under that over tasks, which every card tells too."""
    number, tasks = axis.estimates[quantity][metric], axis.tasks.tasks
    for name, (least, most) in (_POSSIBLE | ({"mean": (0, 100)} if quantity == "accuracy" else {})).items():
        value = getattr(number, name)
        if value is not None and not math.isnan(value) and not least <= value <= most:
            raise InputError(f"{name}: expected a number from {least:g} to {most:g}, found {value:g}")
    by_task = axis.by_task.get(metric, ()) if quantity == "accuracy" else ()
    own = Comparable.of_axis(number, tasks, by_task)
    if number.covers == SAMPLER:
        return {SAMPLER: own}
    variance = number.task_variance
    spread = None if variance is None or tasks < 2 else Spread(variance, 2 * variance**2 / (tasks - 1))
    refused = None if spread else number.refused or "the card has no variance over tasks"
    over_tasks = Estimate(number.mean, spread, refused).interval(SAMPLER)
    return {number.covers: own, SAMPLER: Comparable.of_axis(over_tasks, tasks, by_task)}


def require_same_rows(results: Sequence[ResultsFile], tasks: Sequence[TaskSet]) -> None:
    """Refuse results that are not on the tasks that they claim.

    Args:
        results: on any task sets
        tasks: those that are there; of others, the first results tell

    Raises:
        Mismatch: some are not; the message names the file and the task set.
    """
    known = {one.digest: ("the task file", _digest(_rows_of_tasks(one))) for one in tasks}
    for one in results:
        claimed = one.results.record.tasks_digest or UNKNOWN
        for method in one.results.methods:
            found = _digest(one.results.rows_of(method))
            first, expected = known.setdefault(claimed, (one.file, found))
            if found != expected:
                raise Mismatch(
                    f"{one.file}: method '{method}' claims the task set {claimed}, but has other tasks, classes or "
                    f"numbers of queries than {first}"
                )


def _rows_of_tasks(tasks: TaskSet) -> pa.Table:
    queries = pc.cast(pc.list_value_length(tasks.table.column("query")), pa.int32())
    return tasks.table.select(COLUMNS[:3]).append_column("n_query", queries)


def _digest(rows: pa.Table) -> str:
    return tables.digest(rows.select(COLUMNS).combine_chunks(), COLUMNS)
