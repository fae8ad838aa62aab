"""Answers of each classifier on one task set, row by row of that set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from shotproof.core.arrays import FloatArray
from shotproof.core.errors import Mismatch
from shotproof.core.records import UNKNOWN
from shotproof.results.evaluated import Classifier
from shotproof.results.metrics import Counts
from shotproof.results.origin import Origin
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet


@dataclass(frozen=True)
class Answers:
    """One classifier's answers; every array has one value per row of the task set.

    missed: positions of the queries that were labeled wrongly; None if the results do not record them
    answered: slots that these queries were assigned to; None if the results do not record them
    """

    classifier: Classifier
    counts: Counts
    missed: pa.ChunkedArray | None
    answered: pa.ChunkedArray | None = None

    def missed_at(self, row: int) -> list[int] | None:
        """Return the missed queries of one row; None if the results do not record them."""
        positions: list[int] | None = None if self.missed is None else self.missed[row].as_py()
        return positions


@dataclass(frozen=True)
class AnsweredTasks:
    """Task set with the answers of every classifier on it, in the order of the results."""

    tasks: TaskSet
    answers: list[Answers]

    def accuracy_by_row(self) -> FloatArray:
        """Compute the accuracy of each row, averaged over classifiers, in percent; NaN for a row without queries."""
        mean: FloatArray = np.mean([answers.counts.accuracy() for answers in self.answers], axis=0)
        return mean

    def accuracy_by_task(self) -> FloatArray:
        """Compute the accuracy of each task, averaged over classifiers and classes, in percent: [tasks]."""
        mean: FloatArray = np.mean([answers.counts.accuracy_by_task() for answers in self.answers], axis=0)
        return mean


def results_on(tasks: TaskSet, results: Sequence[Results]) -> list[Results]:
    """Select the results that are on these tasks.

    Tasks drawn from several catalogs may be the same (sounds mixed at several levels): results on the catalog of these
    tasks are preferred, if there are any.
    """
    on_tasks = [result for result in results if result.record.tasks_digest == tasks.digest]
    catalog = tasks.record.source("catalog")
    return [result for result in on_tasks if result.record.tasks.source("catalog") == catalog] or on_tasks


def answers_on(tasks: TaskSet, results: Sequence[Results]) -> AnsweredTasks:
    """Collect the answers of every classifier that was evaluated on these tasks.

    Args:
        tasks: task set
        results: results, on these tasks or on others

    Returns:
        The task set with the answers; for a classifier that was evaluated more than once, the first ones.

    Raises:
        Mismatch: no results are on these tasks, or their rows are not those of the tasks.
    """
    on_tasks = results_on(tasks, results)
    if not on_tasks:
        digests = sorted({result.record.tasks_digest or UNKNOWN for result in results})
        raise Mismatch(f"no results are on the task set {tasks.digest}: they are on {', '.join(digests)}")
    answers: dict[Classifier, Answers] = {}
    for result in on_tasks:
        encoder = Origin.of(result).encoder
        for classifier in (Classifier(encoder, method) for method in result.methods):
            if classifier not in answers:
                answers[classifier] = _align(tasks, result, classifier)
    return AnsweredTasks(tasks, list(answers.values()))


def _align(tasks: TaskSet, results: Results, classifier: Classifier) -> Answers:
    """Order the answers of a classifier like the rows of the task set."""
    rows = results.rows_of(classifier.method)
    is_same = rows.num_rows == tasks.table.num_rows and all(
        np.array_equal(rows.column(name).to_numpy(), tasks.table.column(name).to_numpy()) for name in ("task", "slot")
    )
    if not is_same:
        raise Mismatch(
            f"the results of method '{classifier.method}' name the task set {tasks.digest}, but contain other tasks "
            "and slots"
        )
    missed, answered = (
        rows.column(name) if name in rows.column_names and pa.types.is_list(rows.schema.field(name).type) else None
        for name in ("missed", "answered")
    )
    return Answers(classifier, results.counts(classifier.method), missed, answered)
