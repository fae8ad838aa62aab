"""Where files lie: in a folder, in an object store (a URL), or in an archive (`birds.zip!/jay/1.jpg`).

A place is a `Path` whatever it is, so that joining, parents and endings work alike. pathlib makes one slash of the two
of a URL; `url_of` gives it back.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from shotproof.core.errors import InputError
from shotproof.core.printable import NO_SECRETS, READ_ONLY, SCHEMES, SECRET

# Files that hold items: their names within it stand after the `!`, those of tables are COLUMN/ROW.
TABLES = (".parquet", ".arrow")
ARCHIVES = (".zip", ".tar")

_URL = re.compile(rf"({'|'.join(SCHEMES)}):/+(.*)", re.DOTALL)


class Found(NamedTuple):
    """What lies at a place: `file`, `folder`, or another kind; its bytes, and when it was changed, in ns."""

    kind: str
    size: int
    changed: int | None


class InArchive(NamedTuple):
    """A member of an archive; the archive itself where `member` is empty."""

    archive: Path
    member: str


def url_of(path: str | Path) -> str | None:
    """The URL that a path stands for; None where it is a local one.

    Raises:
        InputError: it carries a password, token or signature, which belong into the environment.

    Example:
        >>> url_of(Path("s3://bucket/birds") / "1.jpg")
        's3://bucket/birds/1.jpg'
        >>> url_of("birds/1.jpg")
    """
    found = _URL.match(str(path))
    if found is None:
        return None
    url = f"{found[1]}://{found[2]}"
    if re.search(SECRET, url):
        raise InputError(f"{url}: {NO_SECRETS}")
    return url


def require_writable(url: str) -> None:
    """Refuse a place that can only be read."""
    scheme = url.partition(":")[0]
    if scheme in READ_ONLY:
        raise InputError(f"cannot write {url}: {scheme}:// is for reading; expected a local path, s3:// or gs://")


def joined(folder: Path, path: str) -> Path:
    """A path of somebody's table: from a folder, unless it is absolute or a URL."""
    return Path(path) if url_of(path) else folder / path


def shown(path: str | Path) -> str:
    """A place as people spell it."""
    return url_of(path) or Path(path).as_posix()


def absolute(folder: Path) -> Path:
    """A folder wherever this process works: without links, or the URL itself."""
    return folder if url_of(folder) else Path(os.path.realpath(folder))


def store_of(place: Path) -> str:
    """What two places must share for a relative path from one to the other: the bucket, or nothing on disk."""
    return "" if url_of(place) is None else "/".join(place.parts[:2])


def in_archive(path: Path) -> InArchive | None:
    """The archive and the member that a path names; None where it names none."""
    text = str(path)
    if "!" not in text:
        return None
    parts = path.parts
    for place, part in enumerate(parts):
        if part.endswith(tuple(f"{end}!" for end in (*ARCHIVES, *TABLES))):
            archive = Path(*parts[:place], part[:-1])
            return InArchive(archive, "/".join(parts[place + 1 :]))
    return None
