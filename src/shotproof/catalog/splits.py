"""Splits by class, from a CSV with the columns `label` and `split`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layouts.csv_file import read_csv
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.file_digest import file_sha256
from shotproof.core.tables import conform

_SPLITS = re.compile(r"(?:^|[^a-z])(train|training|val|valid|validation|dev|test)(?=$|[^a-z])", re.IGNORECASE)


def split_in_name(name: str) -> str | None:
    """The split that a file's name has in it as a word; None where it has none.

    Example:
        >>> split_in_name("data/train-00000-of-00005.parquet"), split_in_name("birds-000012.tar")
        ('train', None)
    """
    found = _SPLITS.findall(name)
    return found[-1].lower() if found else None


def apply_splits(catalog: Catalog, path: Path) -> Catalog:
    """The catalog with each item's split replaced by that of its label; both must name the same labels."""
    split_of = read_splits(path)
    labels = catalog.table.column("label")
    present = set(pc.unique(labels).to_pylist())
    for label in sorted(present - split_of.keys()):
        raise InputError(f"splits file {path} has no line for label '{label}'{did_you_mean(label, split_of)}")
    for label in sorted(split_of.keys() - present):
        raise InputError(f"splits file {path}: no item has the label '{label}'{did_you_mean(label, present)}")
    splits = pa.array([split_of[label] for label in labels.to_pylist()], pa.string())
    table = catalog.table.set_column(catalog.table.column_names.index("split"), "split", splits)
    origin = {"file": path.name, "sha256": file_sha256(path)}
    return Catalog(table, catalog.root, replace(catalog.record, splits=origin))


def read_splits(path: Path) -> dict[str, str]:
    """{label: split} of a splits file."""
    table = read_csv(path, f"splits file {path}", is_text=lambda name: True)
    table = conform(table, {"label": "string", "split": "string"}, f"splits file {path}")
    split_of: dict[str, str] = {}
    rows = zip(table.column("label").to_pylist(), table.column("split").to_pylist(), strict=True)
    for line, (label, split) in enumerate(rows, start=2):
        if not label or not split:
            raise InputError(f"splits file {path}, line {line}: expected a label and a split, found '{label},{split}'")
        if label in split_of:
            raise InputError(f"splits file {path}, line {line}: label '{label}' occurs twice")
        split_of[label] = split
    return split_of
