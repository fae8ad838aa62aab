"""The detector `captions`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from shotproof.attributes.detector import detect
from shotproof.attributes.detectors.captions import CaptionsDetector
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime

ITEMS = ["007", "b", "c"]
CATALOG = Catalog(
    pa.table(
        {
            "item": ITEMS,
            "path": ["birds/one.jpg", "birds/two.jpg", "cats/two.jpg"],
            "label": ["bird", "bird", "cat"],
            "split": ["test"] * 3,
        }
    ),
    Path("data"),
)
COLUMNS = {
    "item": ["007", "b", "c", "007"],
    "caption": ["a bird", 'green "trees",\nand water', "", "a red bird"],
}
WORDS = {"007": ["bird:noun", "red:adj"], "b": ["green:adj", "tree:noun", "water:noun"], "c": []}


def save(path: Path, columns: dict[str, list[Any]]) -> Path:
    table = pa.table(columns)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return path


@pytest.fixture(params=["csv", "parquet", "jsonl"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"captions.{request.param}"


def test_words_from_captions_in_every_format(file: Path) -> None:
    save(file, COLUMNS)
    assert CaptionsDetector(file).detect(CATALOG, Runtime(cache=None)) == WORDS


def test_noun_chunks_keep_compounds_and_the_record_says_so(tmp_path: Path) -> None:
    file = save(tmp_path / "c.csv", {"item": ITEMS, "caption": ["a bird on a tree branch", "it is green", "a cat"]})
    found = detect(CATALOG, f"captions(file='{file}', words='chunks')", runtime=Runtime(cache=None))
    assert found.to_words() == {"007": ["bird:noun", "tree branch:noun"], "b": [], "c": ["cat:noun"]}
    assert "words='chunks'" in found.record.detector
    with pytest.raises(InputError, match="words: expected single or chunks, found 'chunk': did you mean 'chunks'"):
        CaptionsDetector(file, words="chunk")


def test_the_record_says_which_tagger_auto_was(tmp_path: Path) -> None:
    assert CaptionsDetector(tmp_path / "c.csv", tagger="auto").tagger in ("hanta", "spacy")


def test_captions_of_other_splits_are_passed_over(file: Path) -> None:
    save(file, {name: [*values, "other"] for name, values in COLUMNS.items()})
    assert CaptionsDetector(file).detect(CATALOG, Runtime(cache=None)) == WORDS


@pytest.mark.parametrize(
    "names",
    [
        ["birds/one.jpg", "birds/two.jpg", "cats/two.jpg"],
        ["one.jpg", "b", "cats/two.jpg"],
        ["/elsewhere/birds/one.jpg", "data/birds/two.jpg", "./cats/two.jpg"],
    ],
)
def test_items_by_the_names_of_their_files(tmp_path: Path, names: list[str]) -> None:
    file = save(tmp_path / "captions.csv", {"file": names, "caption": ["a dog", "a cat", "a bird"]})
    expected = {"007": ["dog:noun"], "b": ["cat:noun"], "c": ["bird:noun"]}
    assert CaptionsDetector(file).detect(CATALOG, Runtime(cache=None)) == expected


def test_a_file_name_of_two_items_is_refused(tmp_path: Path) -> None:
    file = save(tmp_path / "captions.csv", {"file": ["two.jpg"], "caption": ["a dog"]})
    with pytest.raises(InputError, match=r"'two\.jpg' may be any of 2 items, e\.g\. 'b' and 'c'"):
        CaptionsDetector(file).detect(CATALOG, Runtime(cache=None))


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_a_null_caption_is_reported_and_gives_no_words(
    tmp_path: Path, suffix: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = save(tmp_path / f"c.{suffix}", {"item": [*ITEMS, "b"], "caption": ["a dog", None, None, "a cat"]})
    assert CaptionsDetector(file).detect(CATALOG, Runtime(cache=None)) == {
        "007": ["dog:noun"],
        "b": ["cat:noun"],
        "c": None,
    }
    assert [record.getMessage() for record in caplog.records] == [f"item 'c' is skipped: it has no caption in {file}"]


def test_the_metadata_names_the_file_without_its_folder(file: Path) -> None:
    save(file, COLUMNS)
    found = detect(CATALOG, CaptionsDetector(file))
    assert found.to_words() == WORDS
    assert str(file.parent) not in json.dumps(found.record.to_meta())
    assert found.record.detectors[0].spelling == f"captions(file='{file.name}')"
    assert found.record.sources["captions"].name == file.name
    before = found.record.source("captions")
    save(file, {**COLUMNS, "caption": ["other"] * 4})
    assert detect(CATALOG, CaptionsDetector(file)).record.source("captions") != before


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"item": ["b"], "caption": ["a"]}, "no row for 2 of 3 items, e.g. '007'"),
        ({"item": ["007", "b", "cc"], "caption": ["a"] * 3}, "1 of 3 items, e.g. 'c'; 1 rows .* 'cc'"),
        ({"items": ITEMS, "caption": ["a"] * 3}, "expected a column 'item' or 'file', found .*: did you mean 'items'"),
        ({"item": ITEMS, "captions": ["a"] * 3}, "no column 'caption': did you mean 'captions'"),
        ({"item": ["007", "b", ""], "caption": ["a"] * 3}, "column 'item' has an empty value"),
    ],
)
def test_rows_that_do_not_fit(file: Path, columns: dict[str, list[str]], message: str) -> None:
    save(file, columns)
    with pytest.raises(InputError, match=message):
        CaptionsDetector(file).detect(CATALOG, Runtime(cache=None))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.csv", b"item,caption\n", "has no rows"),
        ("c.csv", b"", "c.csv"),
        ("c.csv", b"item,caption\na,\xff\n", "UTF-8"),
        ("c.parquet", b"PAR1", "is not readable as Parquet"),
        ("c.jsonl", b"", "expected a column .*, found none"),
        ("c.jsonl", b'{"item": "a", "caption": "b"}\n[1]\n', "line 2: expected a table, found"),
        ("c.jsonl", b'{"item": "a", "caption": "\xff"}\n', "UTF-8"),
        ("c.jsonl", b'{"item": 7, "caption": "b"}\n', "line 1, 'item': expected text, found 7"),
        ("c.jsonl", b'{"item": "a", "caption": "\\ud800"}\n', "line 1 .*JSON"),
        ("c.csv", b"item,caption\na," + b"w" * 10_001, "captions of at most 10,000 characters, found 10,001"),
        ("c.txt", b"a dog", r"ends with .csv, .parquet, .jsonl"),
    ],
)
def test_files_that_are_no_captions(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        CaptionsDetector(tmp_path / name).detect(CATALOG, Runtime(cache=None))


def test_a_file_that_is_not_there(file: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        CaptionsDetector(file).detect(CATALOG, Runtime(cache=None))


def test_captions_that_are_numbers(tmp_path: Path) -> None:
    file = save(tmp_path / "c.parquet", {"item": ITEMS, "caption": [1, 2, 3]})
    with pytest.raises(InputError, match="column 'caption': expected string, found int64"):
        CaptionsDetector(file).detect(CATALOG, Runtime(cache=None))
