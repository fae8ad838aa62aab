"""What each of our tables holds, found out without importing what reads the others."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError, placed
from shotproof.core.plain_values import typed
from shotproof.core.records import Header
from shotproof.core.storage.files import is_folder
from shotproof.core.storage.parts import in_parts
from shotproof.core.tables import read_meta, read_parquet_schema

_HOMES = {
    "results": "results.results:Results",
    "tasks": "tasks.taskset:TaskSet",
    "features": "features.features:Features",
    "catalog": "catalog.catalog:Catalog",
    "attributes": "attributes.attributes:Attributes",
    "similarity": "analysis.similarity:Similarity",
}
# What tells files apart that somebody made with a script of their own.
_COLUMNS = {
    "results": {"method", "task", "slot", "n_correct"},
    "tasks": {"task", "slot", "support", "query"},
    "features": {"item", "feature"},
    "catalog": {"item", "path", "label"},
    "attributes": {"item", "attributes"},
    "similarity": {"item", "m_ce", "m_te"},
}


def kind_of(path: Path) -> str:
    """What a file holds: by its metadata, or else by its columns."""
    schema = read_parquet_schema(path, str(path))
    with placed(f"{path}, metadata, "):
        header: Header = typed(read_meta(schema, str(path)), Header)
    if header.kind in _COLUMNS:
        return header.kind
    for name, columns in _COLUMNS.items():
        if columns <= set(schema.names):
            return name
    listed = ", ".join(schema.names[:8])
    raise InputError(f"{path} is none of our files: expected {', '.join(_COLUMNS)}; it has the columns {listed}")


def read_kind(path: Path, kind: str) -> Any:
    """Read a file as one of this kind.

    Raises:
        InputError: it is of another kind, or cannot be read.
    """
    module, _, name = _HOMES[kind].partition(":")
    return getattr(importlib.import_module(f"shotproof.{module}"), name).read(path)


def holds_files(path: Path) -> bool:
    """Return whether this is a folder of files, and not a table in parts."""
    return is_folder(path) and not in_parts(path)
