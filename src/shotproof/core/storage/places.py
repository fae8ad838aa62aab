"""Paths of files in a folder, in an object store (a URL), or in an archive (`birds.zip!/jay/1.jpg`).

All of them are `Path` objects, so joining, parents and suffixes work alike. pathlib collapses the double slash of a
URL; `url_of` restores it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from shotproof.core.errors import InputError
from shotproof.core.printable import NO_SECRETS, READ_ONLY, SCHEMES, SECRET

# Files that contain items; an item is addressed after the `!`, in tables as COLUMN/ROW.
TABLES = (".parquet", ".arrow")
ARCHIVES = (".zip", ".tar")

_URL = re.compile(rf"({'|'.join(SCHEMES)}):/+(.*)", re.DOTALL)


class FileInfo(NamedTuple):
    """Kind of a path (`file`, `folder` or another), size in bytes, and modification time in ns."""

    kind: str
    size: int
    modified: int | None


class InArchive(NamedTuple):
    """Member of an archive, or the archive itself if `member` is empty."""

    archive: Path
    member: str


def url_of(path: str | Path) -> str | None:
    """Return the URL that a path stands for; None for a local path.

    Raises:
        InputError: it contains a password, token or signature, which belong in the environment.

    Example:
        >>> url_of(Path("s3://bucket/birds") / "1.jpg")
        's3://bucket/birds/1.jpg'
        >>> url_of("birds/1.jpg")
    """
    match = _URL.match(str(path))
    if match is None:
        return None
    url = f"{match[1]}://{match[2]}"
    if re.search(SECRET, url):
        raise InputError(f"{url}: {NO_SECRETS}")
    return url


def require_writable(url: str) -> None:
    """Raise InputError if a URL is read-only."""
    scheme = url.partition(":")[0]
    if scheme in READ_ONLY:
        raise InputError(f"cannot write {url}: {scheme}:// is read-only; expected a local path, s3:// or gs://")


def resolve_path(folder: Path, path: str) -> Path:
    """Resolve a path from a table against a folder, unless it is absolute or a URL."""
    return Path(path) if url_of(path) else folder / path


def format_path(path: str | Path) -> str:
    """Return a path as users write it: a URL, or with forward slashes."""
    return url_of(path) or Path(path).as_posix()


def absolute(folder: Path) -> Path:
    """Return a folder as an absolute path without symbolic links; a URL is returned unchanged."""
    return folder if url_of(folder) else Path(os.path.realpath(folder))


def store_of(place: Path) -> str:
    """Return the bucket of a path, empty on disk: relative paths exist only between paths of the same store."""
    return "" if url_of(place) is None else "/".join(place.parts[:2])


def split_archive_path(path: Path) -> InArchive | None:
    """Split a path into archive and member; None if it names no archive."""
    text = str(path)
    if "!" not in text:
        return None
    parts = path.parts
    for index, part in enumerate(parts):
        if part.endswith(tuple(f"{suffix}!" for suffix in (*ARCHIVES, *TABLES))):
            archive = Path(*parts[:index], part[:-1])
            return InArchive(archive, "/".join(parts[index + 1 :]))
    return None
