"""Names of classes for people, from a file: labels stay what they are in all files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from shotproof.catalog.catalog import NAME, Catalog
from shotproof.catalog.layouts.csv_file import read_csv
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.file_digest import file_sha256
from shotproof.core.files import read_text
from shotproof.core.tables import conform

LIST = ".txt"


def apply_names(catalog: Catalog, path: Path) -> Catalog:
    """The catalog with a column `name`, by label; of labels that the file lacks, one at least must be in it.

    Args:
        catalog: whose classes are named
        path: a CSV with the columns label and name, or a text file with a label and its name on each line, as
            ImageNet's `words.txt` and `synset_words.txt` are; it may name further labels

    Raises:
        InputError: the file cannot be read, names a label twice, or none of the catalog's labels.
    """
    name_of = read_names(path)
    labels = catalog.table.column("label").to_pylist()
    present = set(labels)
    if not present & name_of.keys():
        first = min(present, default="")
        raise InputError(
            f"names file {path} names none of the {len(present)} labels, e.g. '{first}'{did_you_mean(first, name_of)}"
        )
    names = pa.array([name_of.get(label) for label in labels], pa.string())
    table = catalog.table.drop_columns([NAME]) if NAME in catalog.table.column_names else catalog.table
    record = replace(catalog.record, names={"file": path.name, "sha256": file_sha256(path)})
    return Catalog(table.append_column(NAME, names), catalog.root, record)


def read_names(path: Path) -> dict[str, str]:
    """{label: name} of a file."""
    what = f"names file {path}"
    if path.suffix == LIST:
        rows = _listed(path, what)
        first_line = 1
    else:
        table = conform(read_csv(path, what, is_text=lambda name: True), {"label": "string", "name": "string"}, what)
        rows = list(zip(table.column("label").to_pylist(), table.column("name").to_pylist(), strict=True))
        first_line = 2
    name_of: dict[str, str] = {}
    for line, (label, name) in enumerate(rows, start=first_line):
        if not label or not name:
            raise InputError(f"{what}, line {line}: expected a label and a name, found '{label},{name}'")
        if name_of.setdefault(label, name) != name:
            raise InputError(f"{what}, line {line}: label '{label}' has two names, '{name_of[label]}' and '{name}'")
    return name_of


def _listed(path: Path, what: str) -> list[tuple[str, str]]:
    """A label and a name on each line, with a space or a tab between them; of several synonyms the first."""
    pairs = [line.strip().split(maxsplit=1) for line in read_text(path, what).splitlines()]
    return [(pair[0], pair[1].split(",")[0].strip()) if len(pair) == 2 else ("".join(pair), "") for pair in pairs]
