"""The files of a run's folder, and what each of our files holds."""

from __future__ import annotations

from pathlib import Path

from shotproof.core.errors import InputError
from shotproof.core.plain_values import typed
from shotproof.core.records import Header
from shotproof.core.storage.files import is_folder, names_below
from shotproof.core.storage.parts import in_parts, own_name
from shotproof.core.tables import placed, read_meta, read_parquet_schema
from shotproof.pipeline.steps.steps import read_manifest

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


def files_of(path: Path) -> list[Path]:
    """A file itself; of a folder, the files of its last run, or else all Parquet files below it."""
    if in_parts(path) or not is_folder(path):
        return [path]
    current = read_manifest(path).current
    names = current or sorted({own_name(name) for name in names_below(path) if name.endswith(".parquet")})
    files = [path / name for name in names]
    if not files:
        raise InputError(f"{path} has no run in it: expected a folder that shotproof run has written, or Parquet files")
    return files
