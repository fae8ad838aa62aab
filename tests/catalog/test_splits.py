from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.splits import apply_splits
from shotproof.core.errors import InputError

LABELS = ["robin", "007", "jay", "robin"]


@pytest.fixture
def catalog() -> Catalog:
    items = [f"item{i}" for i in range(4)]
    return Catalog(pa.table({"item": items, "path": items, "label": LABELS, "split": ["all"] * 4}))


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "splits.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_every_item_gets_the_split_of_its_label(tmp_path: Path, catalog: Catalog, start: str) -> None:
    path = write(tmp_path, f"{start}split,label,note\ntest,robin,\ntrain,007,x\nval,jay,\n")
    split = apply_splits(catalog, path)
    assert split.table["split"].to_pylist() == ["test", "train", "val", "test"]
    assert split.table.drop(["split"]) == catalog.table.drop(["split"])
    assert str(tmp_path) not in str(split.record)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,split\nrobin,a\n007,a\n", "no line for label 'jay'"),
        ("label,split\nrobin,a\n007,a\njays,b\n", "no line for label 'jay': did you mean 'jays'"),
        ("label,split\nrobin,a\n007,a\njay,b\nrobbin,b\n", "no item has the label 'robbin': did you mean 'robin'"),
        ("label,split\nrobin,a\n007,a\njay,b\nrobin,b\n", "line 5: label 'robin' occurs twice"),
        ("label,split\nrobin,a\n007,\njay,b\n", "line 3: expected a label and a split"),
        ("label,spilt\nrobin,a\n", "no column 'split': did you mean 'spilt'"),
        ("label,split,split\nrobin,a,b\n", "2 columns named 'split'"),
        ("label,split\nrobin,a,b\n", "not a CSV file"),
        ("", "not a CSV file"),
    ],
)
def test_what_does_not_fit_is_one_clear_error(tmp_path: Path, catalog: Catalog, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        apply_splits(catalog, write(tmp_path, text))


def test_a_file_that_is_missing_or_binary_is_an_error(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(InputError, match="does not exist"):
        apply_splits(catalog, tmp_path / "none.csv")
    (tmp_path / "splits.csv").write_bytes(b"\xff\xfe\x00label")
    with pytest.raises(InputError, match="UTF-8"):
        apply_splits(catalog, tmp_path / "splits.csv")
