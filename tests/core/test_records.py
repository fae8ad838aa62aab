"""Records: round trips, and rejection of values of other types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shotproof.core.errors import InputError
from shotproof.core.records import (
    AttributesRecord,
    CatalogRecord,
    FeaturesRecord,
    Maker,
    MethodRecord,
    Record,
    ResultsRecord,
    Source,
    TasksRecord,
)
from shotproof.core.tables import read_table, write_table

EXAMPLES: list[Record] = [
    CatalogRecord(name="birds", layout=Maker("folder", "folder"), path_columns=("foreground",), dropped={"alike": 3}),
    AttributesRecord(name="words", detectors=(Maker("captions", "captions(file='c.csv')", {"file": "c.csv"}),)),
    FeaturesRecord(encoder=Maker("pixels", "pixels(size=4)", {"size": 4}), shape=(3, 2, 2), skipped=("a", "b")),
    TasksRecord(
        name="hard",
        sampler=Maker("hardest", "hardest(effort='high')", {"effort": "high"}),
        way=5,
        shot=1,
        seed=0,
        sources={"catalog": Source("1f2e", "birds"), "features": Source("3d4c", "lite0")},
        summary={"classes_left_out": []},
    ),
    ResultsRecord(
        tasks=TasksRecord(sampler=Maker("random"), seed=3),
        features=FeaturesRecord(name="mine"),
        methods=(MethodRecord("ncc"), MethodRecord("ridge(penalty=2)", {"penalty": 2.0}, 4)),
        seed=7,
        sources={"tasks": Source("aa", "random"), "features": Source("bb", "mine")},
    ),
]


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_from_its_file_as_it_was(record: Record, tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    write_table(path, pa.table({"item": ["a"]}), "catalog", record, "d1d1")
    _, read = read_table(path, "catalog", {"item": "string"}, type(record))
    assert read.stated_digest == "d1d1"
    assert read.to_meta() == record.to_meta()
    assert all(getattr(read, name) == getattr(record, name) for name in record.to_meta())


def test_the_same_record_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_table(tmp_path / name, pa.table({"item": ["a"]}), "catalog", EXAMPLES[0])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_somebody_else_wrote_may_lack_and_add_fields_but_not_change_their_types() -> None:
    record = TasksRecord.read({"summary": None, "more": 1})
    assert (record.sampler, record.sources, record.seed, record.stated_digest) == (None, {}, None, None)
    newer: dict[str, Any] = {"format": 2, "way": 5, "more": 1}
    assert TasksRecord.read(newer).way == 5
    for odd, message in (
        ({"way": True}, "way: expected a whole number, found True"),
        ({"sampler": {"spelling": "no name"}}, "sampler.name: expected text, found nothing"),
        ({"sources": {"like": {"digest": 5}}}, "sources.like.digest: expected text, found 5"),
        ({"seed": "zero"}, "seed: expected a whole number, found 'zero'"),
    ):
        with pytest.raises(InputError) as caught:
            TasksRecord.read({**newer, **odd})
        assert str(caught.value) == message


def test_a_record_is_a_record_or_metadata() -> None:
    assert TasksRecord.read(EXAMPLES[3]) is EXAMPLES[3]
    with pytest.raises(InputError, match=r"expected a table, found \[\]"):
        TasksRecord.read([])  # type: ignore[arg-type]


@pytest.mark.parametrize(("summary", "left_out"), [({}, ()), ({"classes_left_out": None}, ())])
def test_no_class_is_left_out_where_a_summary_names_none(summary: dict[str, Any], left_out: tuple[str, ...]) -> None:
    assert TasksRecord.read({"format": 2, "summary": summary}).classes_left_out == left_out


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        ({"classes_left_out": 5}, "summary.classes_left_out: expected a list of text, found 5"),
        ({"classes_left_out": [1]}, r"summary.classes_left_out\[0\]: expected text, found 1"),
        ({"tasks_in_all": "x"}, "summary.tasks_in_all: expected a whole number, found 'x'"),
    ],
)
def test_a_summary_of_other_types_is_refused_when_it_is_read(summary: dict[str, Any], message: str) -> None:
    for record, meta in ((TasksRecord, {"summary": summary}), (ResultsRecord, {"tasks": {"summary": summary}})):
        with pytest.raises(InputError, match=message):
            record.read({"format": 2, **meta})
