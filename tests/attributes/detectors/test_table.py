from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.attributes.detector import detect
from shotproof.attributes.detectors.table import TableDetector
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.records import Maker

VOCABULARY = ["green back", "été", "7", "a,b", 'quoted "x"']


def catalog_of(items: list[str], **columns: list[Any]) -> Catalog:
    same = ["x"] * len(items)
    table = {"item": items, "path": [f"images/{item}.jpg" for item in items], "label": same, "split": same}
    return Catalog(pa.table(table | columns))


def write_csv(path: Path, columns: dict[str, list[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def write_parquet(path: Path, columns: dict[str, Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@given(st.lists(st.sets(st.sampled_from(VOCABULARY)), min_size=1, max_size=6).filter(any))
def test_all_forms_and_formats_say_the_same(tmp_path_factory: pytest.TempPathFactory, held: list[set[str]]) -> None:
    folder = tmp_path_factory.mktemp("forms")
    items = [f"{number:03d}" for number in range(len(held))]  # text, though it looks like numbers
    words = {item: sorted(words) for item, words in zip(items, held, strict=True)}
    pairs = [(item, word) for item, words in words.items() for word in words or [""]]
    wide = {"item": items, "label": items} | {w: [int(w in words[item]) for item in items] for w in VOCABULARY}
    long = {"item": [item for item, _ in pairs], "attribute": [word for _, word in pairs]}
    lists = {"item": items, "attributes": list(words.values())}
    files = [
        write_csv(folder / "wide.csv", wide),
        write_csv(folder / "long.csv", long),
        write_csv(folder / "list.csv", lists | {"attributes": ["; ".join(words) for words in words.values()]}),
        write_parquet(folder / "wide.parquet", wide),
        write_parquet(folder / "long.parquet", long),
        write_parquet(
            folder / "list.parquet", lists | {"attributes": pa.array(lists["attributes"], pa.list_(pa.string()))}
        ),
    ]
    catalog = catalog_of(items)
    for file in files:
        assert detect(catalog, TableDetector(file)).to_words() == words, file.name


def test_the_metadata_names_the_file_and_its_content_but_not_its_folder(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "parts.csv", {"item": ["a"], "attribute": ["beak"]})
    one = detect(catalog_of(["a"]), TableDetector(file)).record
    assert one.detectors == (Maker("table", "table(file='parts.csv')", {"file": "parts.csv"}),)
    assert one.sources["table"].name == "parts.csv"
    assert str(tmp_path) not in str(one.to_meta())
    write_csv(file, {"item": ["a"], "attribute": ["tail"]})
    assert detect(catalog_of(["a"]), TableDetector(file)).record.source("table") != one.source("table")


def test_true_and_false_of_a_csv_file_are_flags(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "wide.csv", {"item": ["a", "b"], "wet": ["true", "false"], "dry": [0.0, 1.0]})
    assert detect(catalog_of(["a", "b"]), TableDetector(file)).to_words() == {"a": ["wet"], "b": ["dry"]}


def test_without_a_file_the_true_false_columns_of_the_catalog_are_the_attributes() -> None:
    catalog = catalog_of(["a", "b"], **{"beak visible": [True, False], "tail visible": [True, True], "width": [0, 1]})
    found = detect(catalog, "table")
    assert found.to_words() == {"a": ["beak visible", "tail visible"], "b": ["tail visible"]}
    assert found.record.detectors == (Maker("table", "table", {"file": None}),)
    with pytest.raises(InputError, match="the catalog has no true/false columns"):
        detect(catalog_of(["a"]), "table")


@pytest.mark.parametrize("name", ["path", "file"])
@pytest.mark.parametrize("prefix", ["", "images/", "/data/birds/images/"])
def test_items_may_be_named_by_their_files(tmp_path: Path, name: str, prefix: str) -> None:
    file = write_csv(tmp_path / "t.csv", {name: [f"{prefix}b.jpg", f"{prefix}a.jpg"], "attribute": ["x", "y"]})
    assert detect(catalog_of(["a", "b"]), TableDetector(file)).to_words() == {"a": ["y"], "b": ["x"]}


def test_a_file_name_that_several_items_have_is_refused(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "t.csv", {"file": ["1.jpg"], "attribute": ["x"]})
    with pytest.raises(InputError, match=r"'1.jpg' may be any of 2 items, e.g. 'owl/1' and 'tit/1'"):
        detect(catalog_of(["owl/1", "tit/1"]), TableDetector(file))
    named = write_csv(tmp_path / "t.csv", {"file": ["owl/1.jpg", "tit/1.jpg"], "attribute": ["x", "y"]})
    assert detect(catalog_of(["owl/1", "tit/1"]), TableDetector(named)).to_words() == {"owl/1": ["x"], "tit/1": ["y"]}


def test_annotations_may_cover_more_items_than_the_catalog_but_not_fewer(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "t.csv", {"item": ["a", "other"], "attribute": ["x", "y"]})
    assert detect(catalog_of(["a"]), TableDetector(file)).to_words() == {"a": ["x"]}
    with pytest.raises(InputError, match=r"no row for 2 of 3 items, e.g. 'b'; .*empty attribute"):
        detect(catalog_of(["a", "b", "c"]), TableDetector(file))
    with pytest.raises(InputError, match="no item in common: 'a' and 'q'"):
        detect(catalog_of(["q"]), TableDetector(file))


def test_a_null_list_means_that_nothing_is_known(tmp_path: Path) -> None:
    lists = pa.array([["x", "", None, " x "], None, []], pa.list_(pa.string()))
    file = write_parquet(tmp_path / "t.parquet", {"item": ["a", "b", "c"], "attributes": lists})
    assert detect(catalog_of(["a", "b", "c"]), TableDetector(file)).to_words() == {"a": ["x"], "b": None, "c": []}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"item": ["a"], "wet": [2]}, "column 'wet': found 2; expected true and false, or 1 and 0"),
        ({"item": ["a"], "wet": [0.5]}, "column 'wet': found 0.5"),
        ({"item": ["a"], "wet": ["maybe"]}, "column 'wet': found string, e.g. 'maybe'"),
        ({"item": ["a", "b"], "wet": [1, ""]}, "column 'wet': 1 of 2 cells are empty"),
        ({"item": ["a", "a"], "wet": [1, 0]}, "item 'a' has 2 rows"),
        ({"item": ["", "a"], "wet": [1, 0]}, "column 'item' has an empty value"),
        ({"item": ["a"], "label": ["x"]}, "has no attributes: .*'attribute'.*found item, label"),
        ({"id": ["a"], "attribute": ["x"]}, "expected a column 'item' or 'path' or 'file', found id, attribute"),
        ({"item": ["a"], "attribute": ["x"], "attributes": ["y"]}, "both .*'attribute' and .*'attributes'"),
        ({"item": [], "attribute": []}, "has no rows"),
        ({"item": ["a"], "attribute": [""]}, "has no word"),
        ({"item": ["a"], "attributes": [" ; "]}, "has no word"),
        ({"item": ["a"], "wet": [0]}, "has no word"),
    ],
)
def test_tables_that_cannot_be_read_say_why(tmp_path: Path, columns: dict[str, list[Any]], message: str) -> None:
    file = write_csv(tmp_path / "t.csv", columns)
    with pytest.raises(InputError, match=message):
        detect(catalog_of(["a"]), TableDetector(file))


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        detect(catalog_of(["a"]), TableDetector(tmp_path / "none.csv"))
    for name, expected in {"t.csv": "not a CSV file", "t.parquet": "not readable as Parquet"}.items():
        (tmp_path / name).write_bytes(b"\xff\xfe\x00\x01\n" * 9)
        with pytest.raises(InputError, match=expected):
            detect(catalog_of(["a"]), TableDetector(tmp_path / name))
