"""What files say of the classes of a catalog: splits, and names for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from shotproof.catalog.catalog import NAME, Catalog
from shotproof.catalog.layouts.csv_file import read_csv
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.storage.files import file_sha256, read_text
from shotproof.core.tables import conform


def file_origin(path: Path) -> dict[str, str]:
    """What a record keeps of such a file."""
    return {"file": path.name, "sha256": file_sha256(path)}


def apply_splits(catalog: Catalog, path: Path) -> Catalog:
    """Replace each item's split by that of its label.

    Args:
        catalog: whose items are divided
        path: a CSV with the columns label and split, of the same labels as the catalog

    Raises:
        InputError: the file cannot be read, names a label twice, or other labels than the catalog has.
    """
    split_of = _by_label(path, "split")
    splits = splits_of(catalog.table.column("label").to_pylist(), split_of, path)
    place = catalog.table.column_names.index("split")
    table = catalog.table.set_column(place, "split", pa.array(splits, pa.string()))
    return Catalog(table, catalog.root, replace(catalog.record, splits=file_origin(path)))


def splits_of(labels: Sequence[str], split_of: Mapping[str, str], path: Path) -> list[str]:
    """Return the split of each item's label; the file must name the classes that there are, and no others."""
    present = set(labels)
    for label in sorted(present - split_of.keys()):
        raise InputError(f"{path} does not list the class '{label}'{did_you_mean(label, split_of)}")
    for label in sorted(split_of.keys() - present):
        raise InputError(f"{path} lists the class '{label}', of which there are no items{did_you_mean(label, present)}")
    return [split_of[label] for label in labels]


def apply_names(catalog: Catalog, path: Path) -> Catalog:
    """Return the catalog with a column `name`, by label; of labels that the file lacks, one at least must be in it.

    Args:
        catalog: whose classes are named
        path: a CSV with the columns label and name, or a text file with a label and its name on each line, as
            ImageNet's `words.txt` and `synset_words.txt` are; it may name further labels

    Raises:
        InputError: the file cannot be read, names a label twice, or none of the catalog's labels.
    """
    name_of = _by_label(path, "name")
    labels = catalog.table.column("label").to_pylist()
    present = set(labels)
    if not present & name_of.keys():
        first = min(present, default="")
        raise InputError(
            f"names file {path} names none of the {len(present)} labels, e.g. '{first}'{did_you_mean(first, name_of)}"
        )
    names = pa.array([name_of.get(label) for label in labels], pa.string())
    table = catalog.table.drop_columns([NAME]) if NAME in catalog.table.column_names else catalog.table
    return Catalog(table.append_column(NAME, names), catalog.root, replace(catalog.record, names=file_origin(path)))


def _by_label(path: Path, column: str) -> dict[str, str]:
    """{label: split or name} of a file; a label may stand there more than once if it says the same."""
    what = f"{column}s file {path}"
    rows: Iterable[tuple[str, str]]
    if path.suffix == ".txt" and column == "name":
        # A label and a name on each line, with a space or a tab between them; of several synonyms the first.
        lines = [line.strip().partition(" ") for line in read_text(path, what).expandtabs(1).splitlines()]
        rows, first_line = [(label, names.split(",")[0].strip()) for label, _, names in lines], 1
    else:
        table = conform(read_csv(path, what, is_text=lambda name: True), {"label": "string", column: "string"}, what)
        rows = zip(table.column("label").to_pylist(), table.column(column).to_pylist(), strict=True)
        first_line = 2
    value_of: dict[str, str] = {}
    for line, (label, value) in enumerate(rows, start=first_line):
        if not label or not value:
            raise InputError(f"{what}, line {line}: expected a label and a {column}, found '{label},{value}'")
        if value_of.setdefault(label, value) != value:
            raise InputError(
                f"{what}, line {line}: label '{label}' has two {column}s, '{value_of[label]}' and '{value}'"
            )
    return value_of
