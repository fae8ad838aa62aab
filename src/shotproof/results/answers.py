"""What each classifier answered on one task set, row by row of that set."""

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

    missed: the positions of the queries that were labeled wrongly; None where the results do not tell
    answered: the slots that these were given; None where the results do not tell
    """

    classifier: Classifier
    counts: Counts
    missed: pa.ChunkedArray | None
    answered: pa.ChunkedArray | None = None

    def missed_at(self, row: int) -> list[int] | None:
        """The missed queries of one row; None where the results do not tell."""
        positions: list[int] | None = None if self.missed is None else self.missed[row].as_py()
        return positions


@dataclass(frozen=True)
class AnsweredTasks:
    """A task set with the answers of every classifier on it, in the order of the results."""

    tasks: TaskSet
    answers: list[Answers]

    def accuracy_by_row(self) -> FloatArray:
        """The accuracy on the queries of each row's class, mean over classifiers, in percent; NaN without queries."""
        mean: FloatArray = np.mean([one.counts.accuracy() for one in self.answers], axis=0)
        return mean

    def accuracy_by_task(self) -> FloatArray:
        """The mean over classifiers and classes, in percent: [tasks]."""
        mean: FloatArray = np.mean([one.counts.accuracy_by_task() for one in self.answers], axis=0)
        return mean


def results_on(tasks: TaskSet, results: Sequence[Results]) -> list[Results]:
    """Those that are on these tasks.

    The same tasks may be drawn from several catalogs (sounds that are mixed louder): results on those of their own
    catalog are taken, where there are any.
    """
    same = [given for given in results if given.record.tasks_digest == tasks.digest]
    catalog = tasks.record.source("catalog")
    return [given for given in same if given.record.tasks.source("catalog") == catalog] or same


def answers_on(tasks: TaskSet, results: Sequence[Results]) -> AnsweredTasks:
    """The answers of every classifier that was evaluated on these tasks.

    Args:
        tasks: the task set
        results: on these tasks or on others

    Returns:
        The task set with the answers; of a classifier that was evaluated more than once, the first.

    Raises:
        Mismatch: no results are on these tasks, or their rows are not those of the tasks.
    """
    own = results_on(tasks, results)
    if not own:
        known = sorted({given.record.tasks_digest or UNKNOWN for given in results})
        raise Mismatch(f"no results are on the task set {tasks.digest}: they are on {', '.join(known)}")
    answers: dict[Classifier, Answers] = {}
    for given in own:
        encoder = Origin.of(given).encoder
        for classifier in (Classifier(encoder, method) for method in given.methods):
            if classifier not in answers:
                answers[classifier] = _aligned(tasks, given, classifier)
    return AnsweredTasks(tasks, list(answers.values()))


def _aligned(tasks: TaskSet, results: Results, classifier: Classifier) -> Answers:
    rows = results.rows_of(classifier.method)
    same = rows.num_rows == tasks.table.num_rows and all(
        np.array_equal(rows.column(name).to_numpy(), tasks.table.column(name).to_numpy()) for name in ("task", "slot")
    )
    if not same:
        raise Mismatch(
            f"the results of method '{classifier.method}' name the task set {tasks.digest}, but have other tasks and "
            "slots"
        )
    missed, answered = (
        rows.column(name) if name in rows.column_names and pa.types.is_list(rows.schema.field(name).type) else None
        for name in ("missed", "answered")
    )
    return Answers(classifier, results.counts(classifier.method), missed, answered)
