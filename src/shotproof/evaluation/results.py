"""Results: for each method, task and class, how many queries and how many of them correct."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.errors import InputError, UnknownName
from shotproof.evaluation.metrics import Counts
from shotproof.tables import Meta, conform, digest, read_table, write_table

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
        ("missed", pa.list_(pa.int32())),  # positions in the task set's query list that were labelled wrongly
    ]
)


@dataclass(frozen=True)
class Results:
    """A row a class of a task, for a method. The metadata names the task set and the features by their digests."""

    table: pa.Table
    meta: Meta = field(default_factory=dict)

    def __post_init__(self) -> None:
        table = conform(self.table, REQUIRED, "results")
        for name in table.column_names:
            if name in SCHEMA.names:
                table = table.set_column(table.column_names.index(name), name, _cast(table, name))
        _check(table)
        object.__setattr__(self, "table", table)

    @classmethod
    def read(cls, path: str | Path) -> Results:
        """Read results.parquet."""
        table, meta = read_table(Path(path), "results", REQUIRED)
        return cls(table, meta)

    def write(self, path: str | Path) -> None:
        """Write results.parquet."""
        write_table(Path(path), self.table, {**self.meta, "kind": "results", "digest": self.digest})

    @cached_property
    def digest(self) -> str:
        """Digest of the counts."""
        return digest(self.table, list(REQUIRED))

    @property
    def methods(self) -> list[str]:
        """The methods, in the order in which they were evaluated."""
        names: list[str] = pc.unique(self.table.column("method")).to_pylist()
        return names

    def counts(self, method: str) -> Counts:
        """The counts of one method, ordered by task and slot."""
        if method not in self.methods:
            raise UnknownName("method of these results", method, self.methods)
        rows = self.table.filter(pc.equal(self.table.column("method"), method))
        rows = rows.sort_by([("task", "ascending"), ("slot", "ascending")])
        return Counts(*(rows.column(name).to_numpy().astype(np.int64) for name in ("task", "n_query", "n_correct")))


def _cast(table: pa.Table, name: str) -> pa.ChunkedArray:
    try:
        return table.column(name).cast(SCHEMA.field(name).type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"results, column '{name}': expected {SCHEMA.field(name).type}") from error


def _check(table: pa.Table) -> None:
    """Refuse counts that cannot be, and two rows for the same class of a task."""
    if table.num_rows == 0:
        raise InputError("results: expected at least one row")
    for name in REQUIRED:
        if table.column(name).null_count:
            raise InputError(f"results, column '{name}' has an empty value")
    queries, correct = (table.column(name).to_numpy() for name in ("n_query", "n_correct"))
    if not ((correct >= 0) & (correct <= queries)).all():
        raise InputError("results: expected 0 <= n_correct <= n_query")
    asked = table.group_by(["method", "task"]).aggregate([("n_query", "sum")])
    if pc.min(asked.column("n_query_sum")).as_py() < 1:
        raise InputError("results: expected at least one query in every task")
    if "missed" in table.column_names:
        missed = pc.list_value_length(table.column("missed"))
        if not pc.all(pc.equal(missed, queries - correct)).as_py():
            raise InputError("results, column 'missed': expected n_query - n_correct positions in each row")
    if table.group_by(["method", "task", "slot"]).aggregate([]).num_rows != table.num_rows:
        raise InputError("results: a method has two rows for the same class of a task")
