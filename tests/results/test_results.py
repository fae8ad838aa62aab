from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shotproof.core.errors import InputError, UnknownName
from shotproof.core.records import ResultsRecord, Source
from shotproof.results.results import SCHEMA, Results

COLUMNS: dict[str, list[Any]] = {
    "method": ["b", "b", "b", "a"],
    "task": [7, 2, 2, 2],
    "slot": [0, 1, 0, 0],
    "label": ["x", "y", "x", "x"],
    "n_query": [5, 4, 3, 3],
    "n_correct": [5, 2, 1, 0],
    "missed": [[], [0, 3], [1, 2], [0, 1, 2]],
    "answered": [[], [0, 2], [1, 1], [0, 1, -1]],
}


def results(**changes: Any) -> Results:
    return Results(pa.table({**COLUMNS, **changes}))


def test_counts_are_of_one_method_in_order() -> None:
    counts = results().counts("b")
    assert counts.task.tolist() == [2, 2, 7]
    assert counts.n_query.tolist() == [3, 4, 5]
    assert counts.n_correct.tolist() == [1, 2, 5]
    assert results().methods == ["b", "a"]


def test_a_method_that_was_not_evaluated_is_an_error() -> None:
    with pytest.raises(UnknownName, match="unknown method of these results 'c'"):
        results().counts("c")


def test_reading_gives_what_was_written(tmp_path: Path) -> None:
    written = Results(pa.table(COLUMNS), ResultsRecord(sources={"tasks": Source("abc")}, seed=3))
    written.write(tmp_path / "results.parquet")
    read = Results.read(tmp_path / "results.parquet")
    assert read.table.cast(SCHEMA).equals(written.table.cast(SCHEMA))
    assert read.digest == written.digest
    assert read.record == replace(written.record, stated_digest=written.digest)


def test_missed_positions_are_optional() -> None:
    table = pa.table(COLUMNS).drop_columns(["missed", "answered"])
    assert Results(table).digest == results().digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_correct": [5, 2, 4, 0]}, "0 <= n_correct <= n_query"),
        ({"n_correct": [5, 2, -1, 0]}, "0 <= n_correct <= n_query"),
        ({"n_query": [5, 4, 3, 0]}, "at least one query"),
        ({"n_query": [5, 4, 3, None]}, "column 'n_query' has an empty value"),
        ({"missed": [[], [0], [1, 2], [0, 1, 2]]}, "column 'missed': expected n_query - n_correct positions"),
        ({"missed": ["a", "b", "c", "d"]}, "column 'missed': expected list"),
        ({"answered": [[], [1], [0, 0], [0, 1, -1]]}, "column 'answered': expected n_query - n_correct slots"),
        ({"slot": [0, 0, 0, 0]}, "two rows for the same class"),
        ({"slot": [0, 1, 0, 70000]}, "column 'slot': expected int16"),
        ({"task": ["7", "2", "2", "2"]}, "column 'task': expected whole numbers, found string"),
    ],
)
def test_counts_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        results(**changes)


def test_no_rows_are_refused() -> None:
    with pytest.raises(InputError, match="at least one row"):
        Results(SCHEMA.empty_table())
