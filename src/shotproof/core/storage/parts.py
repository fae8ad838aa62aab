"""Tables in parts: a folder `NAME.parts` of Parquet files, written one by one and read as one table.

`whole.json` is written last; a folder without it is incomplete and is not read. Existing parts with the right content
are kept, so an interrupted run resumes where it stopped.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError, WriteFailed
from shotproof.core.plain_values import typed
from shotproof.core.storage.files import names_below, read_json
from shotproof.core.storage.places import url_of
from shotproof.core.storage.whole_files import write_text

SUFFIX = ".parts"
WHOLE = "whole.json"


@dataclass(frozen=True)
class PartsManifest:
    """Content of `whole.json`: the number of rows of each part, and the metadata that a single file would have."""

    rows: tuple[int, ...]
    meta: Mapping[str, Any]


def is_in_parts(path: Path) -> bool:
    """Return whether a path names a folder of parts."""
    return path.suffix == SUFFIX


def part_path(folder: Path, number: int) -> Path:
    """Return the path of a part."""
    return folder / f"part-{number:05}.parquet"


def table_name(name: str) -> str:
    """Return the name of the table that a file holds: the file itself, or the folder of parts that it belongs to.

    Example:
        >>> table_name("features/lite0.parts/part-00000.parquet"), table_name("tasks.parquet")
        ('features/lite0.parts', 'tasks.parquet')
    """
    folder = name.rpartition("/")[0]
    return folder if folder.endswith(SUFFIX) else name


def read_manifest(folder: Path, subject: str) -> PartsManifest:
    """Read the manifest of a folder of parts.

    Raises:
        InputError: the folder is incomplete.
    """
    try:
        document = read_json(folder / WHOLE, f"{subject}, {WHOLE}")
    except InputError as error:
        if "does not exist" not in str(error):
            raise
        raise InputError(
            f"{subject} is incomplete ({WHOLE} is missing); run the same command again to resume"
        ) from error
    manifest: PartsManifest = typed(document or {}, PartsManifest, f"{subject}, {WHOLE}")
    if not manifest.rows or min(manifest.rows) < 0:
        raise InputError(
            f"{subject}, {WHOLE}, rows: expected the number of rows of each part, found {list(manifest.rows)}"
        )
    return manifest


def part_paths(folder: Path, subject: str) -> list[Path]:
    """Return the paths of the parts in a folder, in order."""
    return [part_path(folder, number) for number in range(len(read_manifest(folder, subject).rows))]


def mark_incomplete(folder: Path) -> None:
    """Remove the manifest before parts are written; `write_manifest` completes the folder again."""
    _remove(folder / WHOLE)


def write_manifest(folder: Path, rows: list[int], meta: Mapping[str, Any]) -> None:
    """Write the manifest that completes a folder, and remove leftover parts of a previous, longer table."""
    part_names = {part_path(folder, number).name for number in range(len(rows))}
    for name in list(names_below(folder)):
        if name.startswith("part-") and name not in part_names:
            _remove(folder / name)
    write_text(folder / WHOLE, json.dumps({"rows": rows, "meta": meta}, sort_keys=True, ensure_ascii=False))


def _remove(path: Path) -> None:
    from shotproof.core.storage import object_stores

    try:
        url = url_of(path)
        if url is None:
            path.unlink(missing_ok=True)
        else:
            with contextlib.suppress(FileNotFoundError):
                object_stores.remove(url)
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error
