"""Tables in parts: a folder `NAME.parts` of Parquet files, which are written one by one and read together.

`whole.json` is written last: without it the folder is not whole, and nobody reads it. Parts that are there already are
kept where they hold what would be written, so that a run that was ended goes on where it was.
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
class Whole:
    """What makes parts a whole: the rows of each, and the metadata that one file of them all would have."""

    rows: tuple[int, ...]
    meta: Mapping[str, Any]


def in_parts(path: Path) -> bool:
    """Whether this is the name of a folder of parts."""
    return path.suffix == SUFFIX


def part_path(folder: Path, number: int) -> Path:
    """The file of a part."""
    return folder / f"part-{number:05}.parquet"


def own_name(name: str) -> str:
    """The name of a file, or of the folder of parts that it is one of.

    Example:
        >>> own_name("features/lite0.parts/part-00000.parquet"), own_name("tasks.parquet")
        ('features/lite0.parts', 'tasks.parquet')
    """
    folder = name.rpartition("/")[0]
    return folder if folder.endswith(SUFFIX) else name


def read_whole(folder: Path, what: str) -> Whole:
    """The rows and metadata of a folder of parts.

    Raises:
        InputError: it is not whole.
    """
    try:
        document = read_json(folder / WHOLE, f"{what}, {WHOLE}")
    except InputError as error:
        if "does not exist" not in str(error):
            raise
        raise InputError(
            f"{what} is not whole, or not there: {WHOLE} is missing; the same command, run again, goes on with it"
        ) from error
    whole: Whole = typed(document or {}, Whole, f"{what}, {WHOLE}")
    if not whole.rows or min(whole.rows) < 0:
        raise InputError(f"{what}, {WHOLE}, rows: expected numbers of rows, found {list(whole.rows)}")
    return whole


def part_paths(folder: Path, what: str) -> list[Path]:
    """The files of a folder of parts, in order."""
    return [part_path(folder, number) for number in range(len(read_whole(folder, what).rows))]


def take_apart(folder: Path) -> None:
    """Before parts are written: until `write_whole`, the folder is not whole."""
    _remove(folder / WHOLE)


def write_whole(folder: Path, rows: list[int], meta: Mapping[str, Any]) -> None:
    """Make parts a whole; further parts, of another one before, are removed."""
    known = {part_path(folder, number).name for number in range(len(rows))}
    for name in list(names_below(folder)):
        if name.startswith("part-") and name not in known:
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
