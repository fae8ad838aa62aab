"""Results: for each method, task and class, the number of queries and of correct answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError, UnknownName
from shotproof.core.records import ResultsRecord
from shotproof.core.tables import Tabular, cast_columns, conform, whole_column
from shotproof.results.metrics import Counts

REQUIRED = {
    "method": "string",
    "task": "integer",
    "slot": "integer",
    "label": "string",
    "n_query": "integer",
    "n_correct": "integer",
}
SCHEMA = pa.schema(
    [
        ("method", pa.string()),
        ("task", pa.int32()),
        ("slot", pa.int16()),
        ("label", pa.string()),
        ("n_query", pa.int32()),
        ("n_correct", pa.int32()),
        ("missed", pa.list_(pa.int32())),  # positions in the task set's query list that were labeled wrongly
        ("answered", pa.list_(pa.int16())),  # the slot that each of them was assigned to; -1: none of the classes
    ]
)


@dataclass(frozen=True, repr=False)
class Results(Tabular):
    """One row per method and class of a task. The record names the task set and the features by their digests.

    Example:
        >>> import pyarrow as pa
        >>> columns = {"method": ["ncc"] * 2, "task": [0, 0], "slot": [0, 1], "label": ["wren", "owl"]}
        >>> results = Results(pa.table({**columns, "n_query": [15, 15], "n_correct": [12, 9]}))
        >>> results.counts("ncc").accuracy_by_task().tolist()
        [70.0]
    """

    KIND, REQUIRED, RECORD = "results", REQUIRED, ResultsRecord

    table: pa.Table
    record: ResultsRecord = field(default_factory=ResultsRecord)

    def __post_init__(self) -> None:
        table = cast_columns(conform(self.table, REQUIRED, "results"), SCHEMA, "results")
        _check(table)
        object.__setattr__(self, "table", table)

    def describe(self) -> str:
        """Describe the results by their methods, encoder and tasks."""
        methods = ", ".join(self.methods)
        return f"{methods} on {self.record.features.classifier}, {self.record.tasks.sampler or 'unknown'} tasks"

    @property
    def methods(self) -> list[str]:
        """Return the methods, in the order in which they were evaluated."""
        return list(self._by_method)

    def by_method(self) -> list[Results]:
        """Split the results by method; each part keeps only the record of its own method."""
        parts = []
        for name, rows in self._by_method.items():
            methods = tuple(method for method in self.record.methods if method.spelling == name)
            parts.append(Results(rows, replace(self.record, methods=methods, stated_digest=None)))
        return parts

    def rows_of(self, method: str) -> pa.Table:
        """Return the rows of one method, ordered by task and slot; raise UnknownName if it was not evaluated."""
        if method not in self._by_method:
            raise UnknownName("method of these results", method, self.methods)
        return self._by_method[method].sort_by([("task", "ascending"), ("slot", "ascending")])

    @cached_property
    def _by_method(self) -> dict[str, pa.Table]:
        """Return the rows of each method in their order in the file, all cut out at once: searching takes longer."""
        names = whole_column(self.table.column("method")).dictionary_encode()
        codes = names.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        table = self.table if (order == np.arange(len(order))).all() else self.table.take(pa.array(order))
        ends = np.cumsum(np.bincount(codes)).tolist()
        starts = [0, *ends[:-1]]
        slices = (table.slice(start, end - start) for start, end in zip(starts, ends, strict=True))
        return dict(zip(names.dictionary.to_pylist(), slices, strict=True))

    def counts(self, method: str) -> Counts:
        """Return the counts of one method, ordered by task and slot; raise UnknownName if it was not evaluated."""
        rows = self.rows_of(method)
        return Counts(*(rows.column(name).to_numpy().astype(np.int64) for name in ("task", "n_query", "n_correct")))


def _check(table: pa.Table) -> None:
    """Reject impossible counts, and two rows for the same class of a task."""
    if table.num_rows == 0:
        raise InputError("results: expected at least one row")
    for name in REQUIRED:
        if table.column(name).null_count:
            raise InputError(f"results, column '{name}' has an empty value")
    queries, correct = (table.column(name).to_numpy() for name in ("n_query", "n_correct"))
    is_possible = (correct >= 0) & (correct <= queries)
    if not is_possible.all():
        row = table.slice(int(np.argmin(is_possible)), 1).to_pylist()[0]
        raise InputError(
            f"results: expected 0 <= n_correct <= n_query, found {row['n_correct']} of {row['n_query']}: method "
            f"'{row['method']}', task {row['task']}, class '{row['label']}'"
        )
    queries_by_task = table.group_by(["method", "task"], use_threads=False).aggregate([("n_query", "sum")])
    if pc.min(queries_by_task.column("n_query_sum")).as_py() < 1:
        raise InputError("results: expected at least one query in every task")
    for name, noun in (("missed", "positions"), ("answered", "slots")):
        if name in table.column_names:
            column = whole_column(table.column(name))
            lengths, values = pc.list_value_length(column), column.flatten()
            if not pc.all(pc.equal(lengths, queries - correct), skip_nulls=False).as_py() or values.null_count:
                raise InputError(f"results, column '{name}': expected n_query - n_correct {noun} in each row")
            if name == "missed" and not _within(values.to_numpy(), np.repeat(queries, queries - correct)):
                raise InputError("results, column 'missed': expected positions among the n_query queries of the row")
    if table.group_by(["method", "task", "slot"], use_threads=False).aggregate([]).num_rows != table.num_rows:
        raise InputError("results: a method has two rows for the same class of a task")


def _within(positions: IntArray, ends: IntArray) -> bool:
    return bool(((positions >= 0) & (positions < ends)).all())
