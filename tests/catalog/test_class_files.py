from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.class_files import apply_names, apply_splits
from shotproof.core.errors import InputError

LABELS = ["n01440764", "n01443537", "n01440764", "n09999999"]


@pytest.fixture
def catalog() -> Catalog:
    items = [f"item{i}" for i in range(4)]
    return Catalog(pa.table({"item": items, "path": items, "label": LABELS, "split": ["all"] * 4}))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("names.csv", "name,label\ntench,n01440764\ngoldfish,n01443537\nsomething else,n00000001\n"),
        ("words.txt", "n01440764\ttench, Tinca tinca\nn01443537\tgoldfish, Carassius auratus\n"),
        ("synset_words.txt", "n01440764 tench, Tinca tinca\nn01443537 goldfish, Carassius auratus\n"),
    ],
)
def test_classes_have_names_and_labels_stay(tmp_path: Path, catalog: Catalog, file: str, text: str) -> None:
    path = tmp_path / file
    path.write_text(text)
    named = apply_names(catalog, path)
    assert named.class_names == {"n01440764": "tench", "n01443537": "goldfish", "n09999999": "n09999999"}
    assert named.table.column("label").to_pylist() == LABELS
    assert named.record.names is not None
    assert named.record.names["file"] == file
    assert named.digest == catalog.digest  # tasks that were drawn before stay its tasks
    named.write(tmp_path / "catalog.parquet")
    again = Catalog.read(tmp_path / "catalog.parquet")
    assert (again.class_names, again.digest) == (named.class_names, named.digest)


def test_without_names_classes_are_called_by_their_labels(catalog: Catalog) -> None:
    assert catalog.class_names == {label: label for label in LABELS}


def test_a_column_of_the_data_s_own_is_taken_where_it_names_classes(catalog: Catalog) -> None:
    by_class = Catalog(catalog.table.append_column("name", pa.array(["tench", "goldfish", "tench", None])))
    assert by_class.class_names["n01440764"] == "tench"
    assert by_class.digest != catalog.digest
    by_item = Catalog(catalog.table.append_column("name", pa.array(["one", "two", "three", "four"])))
    assert by_item.class_names == {label: label for label in LABELS}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,name\nn0144,tench\n", "names none of the 3 labels, e.g. 'n01440764': did you mean 'n0144'"),
        ("label,name\nn01440764,\n", "line 2: expected a label and a name"),
        ("label,name\nn01440764,tench\nn01440764,trout\n", "line 3: label 'n01440764' has two names, 'tench' and"),
        ("label,nam\nn01440764,tench\n", "has no column 'name'"),
    ],
)
def test_bad_names(tmp_path: Path, catalog: Catalog, text: str, message: str) -> None:
    path = tmp_path / "names.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        apply_names(catalog, path)


def test_no_names_file(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(InputError, match="does not exist"):
        apply_names(catalog, tmp_path / "words.txt")


BIRDS = ["robin", "007", "jay", "robin"]


@pytest.fixture
def birds() -> Catalog:
    items = [f"item{i}" for i in range(4)]
    return Catalog(pa.table({"item": items, "path": items, "label": BIRDS, "split": ["all"] * 4}))


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "splits.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_every_item_gets_the_split_of_its_label(tmp_path: Path, birds: Catalog, start: str) -> None:
    path = write(tmp_path, f"{start}split,label,note\ntest,robin,\ntrain,007,x\nval,jay,\n")
    split = apply_splits(birds, path)
    assert split.table["split"].to_pylist() == ["test", "train", "val", "test"]
    assert split.table.drop(["split"]) == birds.table.drop(["split"])
    assert str(tmp_path) not in str(split.record)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,split\nrobin,a\n007,a\n", "does not list the class 'jay'"),
        ("label,split\nrobin,a\n007,a\njays,b\n", "does not list the class 'jay': did you mean 'jays'"),
        (
            "label,split\nrobin,a\n007,a\njay,b\nrobbin,b\n",
            "'robbin', which has no items: did you mean 'robin'",
        ),
        ("label,split\nrobin,a\n007,a\njay,b\nrobin,b\n", "line 5: label 'robin' has two splits, 'a' and 'b'"),
        ("label,split\nrobin,a\n007,\njay,b\n", "line 3: expected a label and a split"),
        ("label,spilt\nrobin,a\n", "no column 'split': did you mean 'spilt'"),
        ("label,split,split\nrobin,a,b\n", "2 columns named 'split'"),
        ("label,split\nrobin,a,b\n", "not a CSV file"),
        ("", "not a CSV file"),
    ],
)
def test_splits_that_do_not_fit_are_one_clear_error(tmp_path: Path, birds: Catalog, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        apply_splits(birds, write(tmp_path, text))


def test_a_splits_file_that_is_missing_or_binary_is_an_error(tmp_path: Path, birds: Catalog) -> None:
    with pytest.raises(InputError, match="does not exist"):
        apply_splits(birds, tmp_path / "none.csv")
    (tmp_path / "splits.csv").write_bytes(b"\xff\xfe\x00label")
    with pytest.raises(InputError, match="UTF-8"):
        apply_splits(birds, tmp_path / "splits.csv")
