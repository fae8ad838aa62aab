"""Whether results that claim the same task set have the same tasks, classes and numbers of queries."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.comparison.leaderboard_rows import ResultsFile
from shotproof.core.errors import Mismatch
from shotproof.core.records import UNKNOWN
from shotproof.core.tables import digest
from shotproof.tasks.taskset import TaskSet

COLUMNS = ["task", "slot", "label", "n_query"]


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
    return digest(rows.select(COLUMNS).combine_chunks(), COLUMNS)
