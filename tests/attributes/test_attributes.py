from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.records import AttributesRecord, Maker

WORDS = st.lists(st.sampled_from(["red", "été", "z", "A", "water:noun", "left wing visible", "0"]), max_size=6)


def catalog_of(items: list[str]) -> Catalog:
    same = ["x"] * len(items)
    return Catalog(pa.table({"item": items, "path": items, "label": same, "split": same}))


@given(st.dictionaries(st.text("abc/é", min_size=1), st.none() | WORDS, min_size=1), st.randoms())
def test_of_gives_each_catalog_item_its_own_words_whatever_the_order(words, random) -> None:
    items = list(words)
    random.shuffle(items)
    wanted = items[: max(1, len(items) // 2)]  # a catalog of some of the items, in another order

    held = Attributes.from_words(words).of(catalog_of(wanted))

    assert held.words == sorted({word for item in wanted for word in words[item] or []})
    for row, item in enumerate(wanted):
        codes = held.matrix[row].indices
        assert [held.words[code] for code in codes] == sorted(set(words[item] or []))
        assert held.known[row] == (words[item] is not None)


def test_repeated_words_of_a_foreign_file_count_once(tmp_path: Path) -> None:
    table = pa.table({"item": ["a", "b"], "attributes": [["x", "y", "x"], []]})
    pq.write_table(table, tmp_path / "theirs.parquet")
    held = Attributes.read(tmp_path / "theirs.parquet").of(catalog_of(["b", "a"]))
    assert held.words == ["x", "y"]
    assert held.matrix.indptr.tolist() == [0, 0, 2]


def test_a_file_keeps_null_apart_from_empty_and_its_bytes_are_the_same_each_time(tmp_path: Path) -> None:
    words = {"a": ["red", "blue"], "b": [], "c": None}
    for name in ("one.parquet", "two.parquet"):
        Attributes.from_words(words, AttributesRecord(detectors=(Maker("table"),))).write(tmp_path / name)
    read = Attributes.read(tmp_path / "one.parquet")
    assert read.to_words() == {"a": ["blue", "red"], "b": [], "c": None}
    assert read.record.detectors == (Maker("table"),)
    assert read.record.stated_digest == read.digest
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_the_digest_is_of_the_content_not_of_its_chunks() -> None:
    whole = Attributes.from_words({"a": ["x"], "b": None, "c": ["y", "z"]})
    parts = pa.concat_tables([whole.table.slice(0, 1), whole.table.slice(1, 2)])
    assert Attributes(parts).digest == whole.digest
    assert Attributes.from_words({"a": ["x"], "b": [], "c": ["y", "z"]}).digest != whole.digest


def test_an_item_without_a_row_is_named() -> None:
    with pytest.raises(Mismatch, match=r"lack 2 of the 3 items, e.g. 'q'"):
        Attributes.from_words({"a": ["x"]}).of(catalog_of(["a", "q", "r"]))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"item": ["a", "a"], "attributes": [["x"], ["y"]]}, "'a' occurs 2 times"),
        ({"item": ["a", None], "attributes": [["x"], ["y"]]}, "empty value"),
        ({"item": ["a"], "attribute": [["x"]]}, "no column 'attributes': did you mean 'attribute'"),
        ({"item": ["a"], "attributes": ["x"]}, "column 'attributes': expected list"),
        ({"item": [1], "attributes": [["x"]]}, "column 'item': expected string, found int64"),
    ],
)
def test_wrong_tables_are_refused(columns: dict[str, list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Attributes(pa.table(columns))


def test_another_kind_of_file_is_refused_by_name(tmp_path: Path) -> None:
    catalog_of(["a"]).write(tmp_path / "catalog.parquet")
    with pytest.raises(InputError, match=r"expected a file of kind .attributes., found kind .catalog."):
        Attributes.read(tmp_path / "catalog.parquet")
