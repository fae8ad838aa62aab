"""Tables in parts: same content as in one file, and no incomplete folders are read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from shotproof.core import tables
from shotproof.core.errors import InputError
from shotproof.pipeline.read import read, read_inputs
from tests.conftest import draw_data


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tables, "ROWS_PER_PART", 100)
    catalog, attributes = draw_data()
    catalog.write(tmp_path / "catalog.parts")
    attributes.write(tmp_path / "attributes.parts")
    return tmp_path


def test_parts_are_the_same_as_one_file(parts: Path) -> None:
    for name, one in zip(("catalog", "attributes"), draw_data(), strict=True):
        again = read(parts / f"{name}.parts")
        assert again.digest == one.digest == again.record.stated_digest
        assert again.record.detectors == one.record.detectors if name == "attributes" else True
        assert len(list((parts / f"{name}.parts").glob("part-*.parquet"))) == 4
    assert [len(kind) for kind in (read_inputs([parts]).catalogs, read_inputs([parts]).attributes)] == [1, 1]


def test_parts_that_are_there_are_kept(parts: Path) -> None:
    catalog, _ = draw_data()
    folder = parts / "catalog.parts"
    (folder / "whole.json").unlink()
    (folder / "part-00001.parquet").unlink()
    (folder / "part-00002.parquet").write_bytes(b"PAR1 half")
    os.utime(folder / "part-00000.parquet", ns=(1, 1))
    with pytest.raises(InputError, match=r"catalog.parts is incomplete .*whole.json is missing"):
        read(folder)
    catalog.write(folder)
    assert read(folder).digest == catalog.digest
    assert (folder / "part-00000.parquet").stat().st_mtime_ns == 1


def test_what_is_shorter_leaves_no_part_behind(parts: Path) -> None:
    _, attributes = draw_data(classes=2)
    attributes.write(parts / "attributes.parts")
    assert len(list((parts / "attributes.parts").glob("part-*"))) == 1
    assert read(parts / "attributes.parts").digest == attributes.digest


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("[]", "whole.json"),
        ("{}", "rows"),
        ('{"rows": [], "meta": {}}', "rows: expected"),
        ('{"rows": [9999999999], "meta": {}}', "expected at most 2,147,483,648 rows"),
        ('{"rows": [100, 100, 100, 20, 1], "meta": {}}', "part-00004.parquet does not exist"),
        ('{"rows": [100, 100, 100, 19], "meta": {}}', "part-00003.parquet: expected 19 rows, found 20"),
    ],
)
def test_a_document_that_does_not_fit_is_told(parts: Path, document: str, message: str) -> None:
    (parts / "catalog.parts/whole.json").write_text(document)
    with pytest.raises(InputError, match=message):
        read(parts / "catalog.parts")


def test_parts_with_other_columns_are_told(parts: Path) -> None:
    (parts / "catalog.parts/part-00001.parquet").write_bytes(
        (parts / "attributes.parts/part-00001.parquet").read_bytes()
    )
    with pytest.raises(InputError, match="its parts have different columns"):
        read(parts / "catalog.parts")


def test_the_document_holds_the_record_and_nothing_else(parts: Path) -> None:
    document = json.loads((parts / "catalog.parts/whole.json").read_text())
    assert document["rows"] == [100, 100, 100, 20]
    assert document["meta"]["kind"] == "catalog"
