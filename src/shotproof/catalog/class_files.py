"""Files about the classes of a catalog: their splits, and their readable names."""

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
    """Return the name and the digest of such a file, for the record."""
    return {"file": path.name, "sha256": file_sha256(path)}


def apply_splits(catalog: Catalog, path: Path) -> Catalog:
    """Replace each item's split by that of its label.

    Args:
        catalog: catalog to split
        path: a CSV with the columns label and split, and the same labels as the catalog

    Raises:
        InputError: the file cannot be read, gives a label two splits, or has other labels than the catalog.
    """
    split_by_label = _read_by_label(path, "split")
    splits = look_up_splits(catalog.table.column("label").to_pylist(), split_by_label, path)
    index = catalog.table.column_names.index("split")
    table = catalog.table.set_column(index, "split", pa.array(splits, pa.string()))
    return Catalog(table, catalog.root, replace(catalog.record, splits=file_origin(path)))


def look_up_splits(labels: Sequence[str], split_by_label: Mapping[str, str], path: Path) -> list[str]:
    """Return the split of each item's label. The file must list exactly the classes of the items."""
    present = set(labels)
    for label in sorted(present - split_by_label.keys()):
        raise InputError(f"{path} does not list the class '{label}'{did_you_mean(label, split_by_label)}")
    for label in sorted(split_by_label.keys() - present):
        raise InputError(f"{path} lists the class '{label}', which has no items{did_you_mean(label, present)}")
    return [split_by_label[label] for label in labels]


def apply_names(catalog: Catalog, path: Path) -> Catalog:
    """Add a column `name` to a catalog, by label. The file must name at least one of the catalog's labels.

    Args:
        catalog: catalog whose classes get names
        path: a CSV with the columns label and name, or a text file with a label and its name on each line, such as
            ImageNet's `words.txt` and `synset_words.txt`; it may name other labels as well

    Raises:
        InputError: the file cannot be read, gives a label two names, or names none of the catalog's labels.
    """
    name_by_label = _read_by_label(path, "name")
    labels = catalog.table.column("label").to_pylist()
    present = set(labels)
    if not present & name_by_label.keys():
        first = min(present, default="")
        hint = did_you_mean(first, name_by_label)
        raise InputError(f"names file {path} names none of the {len(present)} labels, e.g. '{first}'{hint}")
    names = pa.array([name_by_label.get(label) for label in labels], pa.string())
    table = catalog.table.drop_columns([NAME]) if NAME in catalog.table.column_names else catalog.table
    return Catalog(table.append_column(NAME, names), catalog.root, replace(catalog.record, names=file_origin(path)))


def _read_by_label(path: Path, column: str) -> dict[str, str]:
    """Read {label: split or name} from a file. A label may occur more than once if the values agree."""
    title = f"{column}s file {path}"
    rows: Iterable[tuple[str, str]]
    if path.suffix == ".txt" and column == "name":
        # A label and a name on each line, separated by a space or a tab; the first of several synonyms.
        lines = [line.strip().partition(" ") for line in read_text(path, title).expandtabs(1).splitlines()]
        rows, first_line = [(label, names.split(",")[0].strip()) for label, _, names in lines], 1
    else:
        table = conform(read_csv(path, title, is_text=lambda name: True), {"label": "string", column: "string"}, title)
        rows = zip(table.column("label").to_pylist(), table.column(column).to_pylist(), strict=True)
        first_line = 2
    value_by_label: dict[str, str] = {}
    for line, (label, value) in enumerate(rows, start=first_line):
        if not label or not value:
            raise InputError(f"{title}, line {line}: expected a label and a {column}, found '{label},{value}'")
        if value_by_label.setdefault(label, value) != value:
            raise InputError(
                f"{title}, line {line}: label '{label}' has two {column}s, '{value_by_label[label]}' and '{value}'"
            )
    return value_by_label
