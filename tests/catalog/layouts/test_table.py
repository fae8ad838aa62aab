from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layouts.table import TableLayout
from shotproof.core.errors import InputError


def read_csv_text(tmp_path: Path, text: str) -> Catalog:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    return TableLayout().read(path)


def test_path_and_label_are_enough(tmp_path: Path) -> None:
    catalog = read_csv_text(tmp_path, "path,label\nimages/b.png,007\n./images//a.png,NA\n")
    assert catalog.table.select(["item", "label", "split"]).to_pylist() == [
        {"item": "images/a.png", "label": "NA", "split": "all"},
        {"item": "images/b.png", "label": "007", "split": "all"},
    ]
    assert catalog.paths == [tmp_path / "images" / "a.png", tmp_path / "images" / "b.png"]


@pytest.mark.parametrize("path_name", ["path", "File", "filename", "FILEPATH", "image"])
@pytest.mark.parametrize("label_name", ["LABEL", "class", "Target"])
def test_columns_may_have_other_names(tmp_path: Path, path_name: str, label_name: str) -> None:
    catalog = read_csv_text(tmp_path, f"{label_name},{path_name}\n1,a.png\n")
    assert catalog.table.select(["item", "path", "label"]).to_pylist() == [
        {"item": "a.png", "path": "a.png", "label": "1"}
    ]


def test_our_own_name_wins_and_the_other_column_is_kept(tmp_path: Path) -> None:
    catalog = read_csv_text(tmp_path, "image,path,target,label\n5,a.png,3,jay\n")
    assert catalog.table["label"].to_pylist() == ["jay"]
    assert (catalog.table["image"].to_pylist(), catalog.table["target"].to_pylist()) == (["5"], ["3"])


def test_known_columns_are_text_and_others_keep_their_types(tmp_path: Path) -> None:
    text = "item,path,label,split,context,source,width,share,seen\n1,a,2,3,4,5,6,0.5,true\n2,b,2,3,,,,,\n"
    table = read_csv_text(tmp_path, text).table
    known = ["item", "path", "label", "split", "context", "source"]
    assert all(table.schema.field(name).type == pa.string() for name in known)
    assert table.select(["width", "share", "seen"]).to_pylist() == [
        {"width": 6, "share": 0.5, "seen": True},
        {"width": None, "share": None, "seen": None},
    ]


def test_types_are_inferred_from_the_whole_file(tmp_path: Path) -> None:
    lines = [f"{i}.png,a,{i}" for i in range(120_000)]
    catalog = read_csv_text(tmp_path, "\n".join(["path,label,code", *lines, "last.png,a,x9"]) + "\n")
    assert catalog.table.schema.field("code").type == pa.string()
    assert len(catalog) == 120_001


def test_parquet_gives_the_same_catalog(tmp_path: Path) -> None:
    columns = {"path": ["b.png", "a.png"], "label": pa.array([1, 2]), "split": pa.array(["x", "y"]).dictionary_encode()}
    pq.write_table(pa.table(columns), tmp_path / "table.parquet")
    from_parquet = TableLayout().read(tmp_path / "table.parquet")
    from_csv = read_csv_text(tmp_path, "path,label,split\nb.png,1,x\na.png,2,y\n")
    assert from_parquet.digest == from_csv.digest


def test_an_absolute_path_inside_the_folder_gives_the_same_item(tmp_path: Path) -> None:
    outside = Path("/somewhere/else.png")
    catalog = read_csv_text(tmp_path, f"path,label\n{tmp_path}/sub/a.png,x\n{outside},y\n")
    assert catalog.table["item"].to_pylist() == [str(outside), "sub/a.png"]
    assert catalog.paths == [outside, tmp_path / "sub" / "a.png"]


def test_quoted_values_may_hold_anything(tmp_path: Path) -> None:
    catalog = read_csv_text(tmp_path, 'path,label,note\n"a,b.png","<script>","two\nlines"\n')
    assert catalog.table.select(["item", "label", "note"]).to_pylist() == [
        {"item": "a,b.png", "label": "<script>", "note": "two\nlines"}
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("paths,label\na,b\n", r"no column 'path' \(nor file, filename, .*, sound, audio\): did you mean 'paths'"),
        ("path,lable\na,b\n", r"no column 'label' \(nor class, target\): did you mean 'lable'"),
        ("file,filename,label\na,b,c\n", "which of the columns file, filename is the path"),
        ("path,label\n", "has no rows"),
        ("path,label\na,x\n,y\n", r"column 'path' has an empty value \(row 2 of 2\)"),
        ("path,label,split\na,x,\n", r"column 'split' has an empty value"),
        ("path,label\na.png,x\n./a.png,y\n", r"column 'path' must be unique: 'a\.png' occurs 2 times"),
        ("path,label,item\na,x,1\nb,y,1\n", "'item' must be unique: '1' occurs 2 times"),
        ("path,label\na,x,y\n", "not a CSV file"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_csv_text(tmp_path, text)


def test_a_parquet_file_that_cannot_be_used_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    path.write_text("no parquet")
    with pytest.raises(InputError, match="not readable as Parquet"):
        TableLayout().read(path)
    pq.write_table(pa.table({"path": ["a"], "label": [0.5]}), path)
    with pytest.raises(InputError, match="'label': expected string, found double"):
        TableLayout().read(path)
    with pytest.raises(InputError, match="is not a file"):
        TableLayout().read(tmp_path)


def test_an_empty_label_is_left_for_the_check(tmp_path: Path) -> None:
    assert read_csv_text(tmp_path, "path,label\na,\n").table["label"].to_pylist() == [""]
