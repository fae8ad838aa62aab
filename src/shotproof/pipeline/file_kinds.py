"""Detection of what a Parquet file holds, without importing the readers of the other kinds."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError, error_prefix
from shotproof.core.plain_values import typed
from shotproof.core.records import Header
from shotproof.core.storage.files import is_folder
from shotproof.core.storage.parts import is_in_parts
from shotproof.core.tables import read_meta, read_parquet_schema

_CLASSES = {
    "results": "results.results:Results",
    "tasks": "tasks.taskset:TaskSet",
    "features": "features.features:Features",
    "catalog": "catalog.catalog:Catalog",
    "attributes": "attributes.attributes:Attributes",
    "similarity": "analysis.similarity:Similarity",
    "fitted map": "features.fitted_map:FittedMap",
}
# Identify the kind of files without metadata, written by users' own scripts.
_COLUMNS = {
    "results": {"method", "task", "slot", "n_correct"},
    "tasks": {"task", "slot", "support", "query"},
    "features": {"item", "feature"},
    "catalog": {"item", "path", "label"},
    "attributes": {"item", "attributes"},
    "similarity": {"item", "m_ce", "m_te"},
    "fitted map": {"scale", "offset", "directions", "images"},
}


def kind_of(path: Path) -> str:
    """Return the kind of a file from its metadata, or from its columns if it has none."""
    schema = read_parquet_schema(path, str(path))
    with error_prefix(f"{path}, metadata, "):
        header: Header = typed(read_meta(schema, str(path)), Header)
    if header.kind in _COLUMNS:
        return header.kind
    for name, columns in _COLUMNS.items():
        if columns <= set(schema.names):
            return name
    column_names = ", ".join(schema.names[:8])
    raise InputError(
        f"{path} is not a Shotproof file: expected one of {', '.join(_COLUMNS)}; its columns are {column_names}"
    )


def read_kind(path: Path, kind: str) -> Any:
    """Read a file as the given kind.

    Raises:
        InputError: the file is of another kind, or cannot be read.
    """
    module, _, name = _CLASSES[kind].partition(":")
    return getattr(importlib.import_module(f"shotproof.{module}"), name).read(path)


def holds_files(path: Path) -> bool:
    """Return whether the path is a folder of files, and not a table stored in parts."""
    return is_folder(path) and not is_in_parts(path)
