from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.names import apply_names
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
def test_bad_files(tmp_path: Path, catalog: Catalog, text: str, message: str) -> None:
    path = tmp_path / "names.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        apply_names(catalog, path)


def test_no_file(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(InputError, match="does not exist"):
        apply_names(catalog, tmp_path / "words.txt")
