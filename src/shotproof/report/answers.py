"""What each classifier answered on one task set, row by row of that set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.errors import Mismatch
from shotproof.evaluation.results import Results
from shotproof.evaluation.sources import UNKNOWN, Source, lookup
from shotproof.tasks.taskset import TaskSet


@dataclass(frozen=True)
class Answers:
    """One classifier's answers; every array has a value a row of the task set.

    `missed` lists the positions of the queries that were labelled wrongly; None where the results do not tell.
    """

    encoder: str
    method: str
    n_query: npt.NDArray[np.int64]
    n_correct: npt.NDArray[np.int64]
    missed: pa.ChunkedArray | None

    @property
    def share(self) -> npt.NDArray[np.float64]:
        """M_c, the accuracy on the queries of each row's class; NaN where it has none."""
        return np.where(self.n_query > 0, self.n_correct / np.maximum(self.n_query, 1), np.nan)

    def missed_at(self, row: int) -> list[int] | None:
        """The missed queries of one row; None where the results do not tell."""
        positions: list[int] | None = None if self.missed is None else self.missed[row].as_py()
        return positions


def places_on(tasks: TaskSet, sources: Sequence[Source]) -> list[int]:
    """Which of the sources are on these tasks. The same tasks may be drawn from several catalogs (sounds mixed with
    another dial): those of their own catalog, where there are any.
    """
    same = [place for place, source in enumerate(sources) if source.tasks_digest == tasks.digest]
    catalog = lookup(tasks.meta, "from", "catalog")
    return [place for place in same if sources[place].design.catalog == catalog] or same


def answers_on(tasks: TaskSet, results: Sequence[Results]) -> list[Answers]:
    """The answers of every classifier that was evaluated on these tasks, in the order of the results."""
    answers: dict[tuple[str, str], Answers] = {}
    sources = [Source.of(given) for given in results]
    for place in places_on(tasks, sources):
        given, encoder = results[place], sources[place].encoder
        for method in given.methods:
            answers.setdefault((encoder, method), _align(tasks, given, encoder, method))
    if not answers:
        known = sorted({source.tasks_digest or UNKNOWN for source in sources})
        raise Mismatch(f"no results are on the task set {tasks.digest}: they are on {', '.join(known)}")
    return list(answers.values())


def _align(tasks: TaskSet, results: Results, encoder: str, method: str) -> Answers:
    rows = results.table.filter(pc.equal(results.table.column("method"), method))
    rows = rows.sort_by([("task", "ascending"), ("slot", "ascending")])
    same = rows.num_rows == tasks.table.num_rows and all(
        np.array_equal(rows.column(name).to_numpy(), tasks.table.column(name).to_numpy()) for name in ("task", "slot")
    )
    if not same:
        raise Mismatch(
            f"the results of method '{method}' name the task set {tasks.digest}, but have other tasks and slots"
        )
    missed = None
    if "missed" in rows.column_names and pa.types.is_list(rows.schema.field("missed").type):
        missed = rows.column("missed")
    n_query, n_correct = (rows.column(name).to_numpy().astype(np.int64) for name in ("n_query", "n_correct"))
    return Answers(encoder, method, n_query, n_correct, missed)
