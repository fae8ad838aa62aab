"""Results: for each method, task and class, how many queries and how many of them correct."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.errors import InputError
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
        ("missed", pa.list_(pa.int16())),  # positions in the task set's query list that were labelled wrongly
    ]
)


@dataclass(frozen=True)
class Results:
    """A row a class of a task, for a method. The metadata names the task set and the features by their digests."""

    table: pa.Table
    meta: Meta = field(default_factory=dict)

    def __post_init__(self) -> None:
        table = conform(self.table, REQUIRED, "results")
        wrong = pc.or_(
            pc.less(table.column("n_query"), 1), pc.greater(table.column("n_correct"), table.column("n_query"))
        )
        if table.num_rows == 0 or pc.any(wrong).as_py():
            raise InputError("results: expected rows with n_query >= 1 and n_correct <= n_query")
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
        rows = self.table.filter(pc.equal(self.table.column("method"), method))
        rows = rows.sort_by([("task", "ascending"), ("slot", "ascending")])
        task, queries, correct = (rows.column(name).to_numpy() for name in ("task", "n_query", "n_correct"))
        return Counts(np.asarray(task), np.asarray(queries), np.asarray(correct))
