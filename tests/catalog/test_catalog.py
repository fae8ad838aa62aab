from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, UnknownName
from shotproof.core.records import CatalogRecord, Maker


def make(**columns: object) -> pa.Table:
    base = {"item": ["a", "b", "c"], "path": ["x/a", "x/b", "y/c"], "label": ["x", "x", "y"], "split": ["s", "s", "t"]}
    return pa.table({**base, **columns})


names = st.sampled_from(["a", "b", "a b", "ü"])
folders = st.lists(names, max_size=3).map(lambda parts: "/".join(parts))


@settings(deadline=None)
@given(data=folders, first=folders, second=folders)
def test_a_written_catalog_finds_its_files_from_anywhere(
    tmp_path_factory: pytest.TempPathFactory, data: str, first: str, second: str
) -> None:
    base = tmp_path_factory.mktemp("places")
    (base / data / "x").mkdir(parents=True)
    (base / data / "x" / "image.png").write_text("the image")
    table = pa.table({"item": ["i"], "path": ["x/image.png"], "label": ["x"], "split": ["s"]})
    catalog = Catalog(table, base / data)
    catalog.write(base / first / "1.parquet")
    once = Catalog.read(base / first / "1.parquet")
    once.write(base / second / "2.parquet")
    twice = Catalog.read(base / second / "2.parquet")
    for read in (once, twice):
        assert read.paths[0].read_text() == "the image"
        assert read.digest == catalog.digest
    # However often a catalog moves, its paths stay as short as they can be.
    assert twice.table["path"][0].as_py() == os.path.relpath(base / data / "x" / "image.png", base / second)


def test_a_catalog_can_be_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "image.png").write_text("the image")
    (tmp_path / "deep" / "real").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "real")
    table = pa.table({"item": ["i"], "path": ["image.png"], "label": ["x"], "split": ["s"]})
    Catalog(table, tmp_path / "data").write(tmp_path / "link" / "catalog.parquet")
    for folder in ("link", "deep/real"):
        assert Catalog.read(tmp_path / folder / "catalog.parquet").paths[0].read_text() == "the image"


def test_absolute_paths_stay_as_they_are(tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere" / "a.png")
    Catalog(make(path=[elsewhere, "b", "c"]), tmp_path / "data").write(tmp_path / "out" / "catalog.parquet")
    read = Catalog.read(tmp_path / "out" / "catalog.parquet")
    assert read.table["path"].to_pylist() == [elsewhere, "../data/b", "../data/c"]


def test_the_digest_is_of_everything_but_the_place(tmp_path: Path) -> None:
    digest = Catalog(make(context=["u", "v", "w"])).digest
    assert Catalog(make(context=["u", "v", "w"], path=["1", "2", "3"]), tmp_path).digest == digest
    shuffled = make(context=["u", "v", "w"]).select(["context", "split", "path", "label", "item"])
    assert Catalog(shuffled).digest == digest
    changes = {"item": ["a", "b", "d"], "label": ["x", "x", "z"], "split": ["s", "t", "t"], "context": ["u", "v", None]}
    digests = {Catalog(make(**{"context": ["u", "v", "w"], name: values})).digest for name, values in changes.items()}
    assert len({digest, Catalog(make()).digest, *digests}) == 6


def test_further_columns_and_metadata_come_back(tmp_path: Path) -> None:
    columns = {"width": [1, 2, None], "visible": [True, None, False], "box": [{"x": 1}, None, {"x": 2}]}
    Catalog(make(**columns), tmp_path, CatalogRecord("birds", layout=Maker("mine"))).write(tmp_path / "c.parquet")
    read = Catalog.read(tmp_path / "c.parquet")
    assert {name: read.table[name].to_pylist() for name in columns} == columns
    assert (read.record.name, read.record.layout) == ("birds", Maker("mine"))
    assert read.record.stated_digest == read.digest


def test_one_split_is_taken_out_and_more_than_one_must_be_chosen() -> None:
    catalog = Catalog(make())
    assert catalog.splits == ["s", "t"]
    assert catalog.in_split("s").table["item"].to_pylist() == ["a", "b"]
    assert len(catalog.in_split("t").in_split(None)) == 1
    with pytest.raises(InputError, match="splits s, t: choose one"):
        catalog.in_split(None)
    with pytest.raises(UnknownName, match="unknown split 'S': did you mean 's'"):
        catalog.in_split("S")


def test_rows_of_items_in_any_order() -> None:
    catalog = Catalog(make())
    assert catalog.rows_of(pa.array(["c", "a", "c"]), "tasks").tolist() == [2, 0, 2]
    with pytest.raises(InputError, match=r"tasks: the catalog lacks 2 of the 3 items, e\.g\. 'e'"):
        catalog.rows_of(pa.array(["a", "e", "f"]), "tasks")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"item": ["a", "a", "b"]}, "'item' must be unique: 'a' occurs 2 times"),
        ({"item": ["a", None, "b"]}, "'item' has an empty value"),
        ({"path": ["a", None, "b"]}, "'path' has an empty value"),
        ({"split": ["a", None, "b"]}, "'split' has an empty value"),
        ({"label": [1, 2, 3]}, "'label': expected string, found int64"),
        ({"context": [1, 2, 3]}, "'context': expected string, found int64"),
        ({"source": [[], [], []]}, "'source': expected string, found list"),
    ],
)
def test_columns_that_cannot_be_used_are_named(columns: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Catalog(make(**columns))


def test_a_missing_column_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match="no column 'label': did you mean 'labels'"):
        Catalog(make().rename_columns(["item", "path", "labels", "split"]))


def test_a_missing_label_is_an_empty_one() -> None:
    assert Catalog(make(label=["x", None, "y"])).table["label"].to_pylist() == ["x", "", "y"]


@pytest.mark.parametrize(
    ("paths", "medium"),
    [
        (["a.png", "b.JPG"], "image"),
        (["a.wav", "b.flac"], "sound"),
        (["a.wav", "b.png"], None),
        (["a.png", ""], None),
        (["a", "b"], None),
        (["", ""], None),
    ],
)
def test_the_medium_is_told_by_the_files_names(paths: list[str], medium: str | None) -> None:
    columns = {"item": ["a", "b"], "path": paths, "label": ["x", "y"], "split": ["all", "all"]}
    assert Catalog(pa.table(columns)).medium == medium


@pytest.mark.parametrize("paths", [["a.wav", ""], ["", ""]])
def test_mixtures_that_are_made_when_they_are_read_are_sounds(paths: list[str]) -> None:
    columns = {"item": ["a", "b"], "path": paths, "label": ["x", "y"], "split": ["all", "all"]}
    assert Catalog(pa.table({**columns, "foreground": ["a.wav", "a.wav"]})).medium == "sound"


def test_a_column_of_paths_that_is_named_twice_moves_once(tmp_path: Path) -> None:
    catalog = Catalog(make(), tmp_path / "a" / "b", CatalogRecord(path_columns=("path",)))
    assert catalog.path_columns == ["path"]
    assert catalog.moved_to(tmp_path / "a").table["path"].to_pylist() == ["b/x/a", "b/x/b", "b/y/c"]


@pytest.mark.parametrize("column", ["item", "label", "split", "context", "source", "name"])
def test_columns_that_say_what_an_item_is_are_no_paths(column: str) -> None:
    with pytest.raises(InputError, match=f"path_columns: column '{column}'"):
        Catalog(make(), record=CatalogRecord(path_columns=(column,)))


def test_mixtures_that_are_not_written_have_paths_whatever_the_record_says() -> None:
    mixed = make(path=["", "x/b", "y/c"], foreground=["f", None, None], background=["b", None, None])
    assert Catalog(mixed).path_columns == ["path", "foreground", "background"]
    named = make(foreground=["bird", "bird", "bird"], background=["sea", "sea", "land"])  # words, of items with files
    assert Catalog(named).path_columns == ["path"]


def test_a_catalog_goes_to_a_data_frame_and_back_with_its_root(tmp_path: Path) -> None:
    catalog = Catalog(make(), tmp_path)
    again = Catalog.from_pandas(catalog.to_pandas(), root=str(tmp_path))
    assert (again.paths, again.digest) == (catalog.paths, catalog.digest)


@pytest.mark.parametrize(
    "keep",
    [
        [True, False, True],
        np.array([True, False, True]),
        pa.array([True, False, True]),
        pc.field("item") != "b",
    ],
)
def test_items_are_kept_by_a_mask_or_a_condition(tmp_path: Path, keep: Any) -> None:
    kept = Catalog(make(context=["sea", "land", "sea"]), tmp_path, CatalogRecord(name="birds")).filter(keep)
    assert (kept.items, kept.root, kept.record.name) == (["a", "c"], tmp_path, "birds")


def test_a_column_of_a_data_frame_is_a_mask() -> None:
    catalog = Catalog(make())
    assert catalog.filter(catalog.to_pandas()["label"] == "y").items == ["c"]


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ([True], "expected 3 values, each true or false"),
        ([1, 0, 2], "expected 3 values, each true or false"),
        ("label", "expected 3 values, each true or false"),
        (pc.field("lable") == "x", "or a condition on columns: .*lable"),
        ([False] * 3, "none of the 3 items is kept"),
    ],
)
def test_a_filter_that_cannot_be_used(keep: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Catalog(make()).filter(keep)


def test_roots_may_be_given_as_text(tmp_path: Path) -> None:
    catalog = Catalog(make(), str(tmp_path / "birds"))  # type: ignore[arg-type]
    moved = catalog.moved_to(str(tmp_path))
    assert moved.root == tmp_path
    assert moved.table["path"].to_pylist() == ["birds/x/a", "birds/x/b", "birds/y/c"]
    assert moved.paths == catalog.paths
