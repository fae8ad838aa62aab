"""Reading of untrusted files, with limits checked before anything is read or allocated.

Only regular files are read, as a device or a pipe would never end. An invalid file raises an InputError whose message
begins with `subject`: the kind of file and its path.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import mmap
import os
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any, TypeVar

from shotproof.core.errors import InputError, did_you_mean, first_line
from shotproof.core.storage.places import FileInfo, split_archive_path, url_of
from shotproof.core.text import is_storable

T = TypeVar("T")

LARGEST_TEXT = 2**30  # bytes of a file that is read at once
LARGEST_DIGESTED = 2**40  # bytes of a file that is hashed
LARGEST_ITEM = 2**31  # bytes of an image or a sound
DEEPEST = 100  # levels of nested lists and tables
LONGEST_NAME, LONGEST_PATH = 255, 4095  # bytes, the limits of most systems

HEADROOM = 48 * 2**20  # bytes of memory: the stacks of a few threads, and a library's buffers for a small file

_KINDS = {
    stat.S_ISREG: "file",
    stat.S_ISDIR: "folder",
    stat.S_ISCHR: "device",
    stat.S_ISBLK: "device",
    stat.S_ISFIFO: "pipe",
    stat.S_ISSOCK: "socket",
}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def require_headroom() -> None:
    """Raise MemoryError if almost no memory is left, by allocating a little and freeing it again.

    Raises:
        MemoryError: too little is left. Libraries would abort the process, or wait forever for one of their threads.
    """
    try:
        mmap.mmap(-1, HEADROOM).close()
    except OSError as error:
        raise MemoryError(f"less than {HEADROOM:,} bytes of memory are left") from error


def check_path(path: str | Path) -> None:
    """Reject paths that no file system allows, and paths that are not UTF-8, which neither Arrow nor a record can hold.

    Raises:
        OSError: the path is invalid; `strerror` says why.
    """
    if not is_storable(str(path)):
        raise OSError(errno.EILSEQ, "its name is not valid UTF-8: rename it")
    text = os.fsencode(str(path))
    if b"\0" in text:
        raise OSError(errno.EINVAL, "its name contains a NUL character")
    if len(text) > LONGEST_PATH or any(len(name) > LONGEST_NAME for name in text.split(b"/")):
        raise OSError(
            errno.ENAMETOOLONG, f"its name is longer than {LONGEST_NAME} bytes, or its path longer than {LONGEST_PATH}"
        )


def _elsewhere(path: Path) -> tuple[ModuleType, Any] | None:
    """Return the module that reads a path that is not on disk, and the location in its terms; None for a path on disk.

    Such a module defines `find`, `open_file` and `names_below`, as this one does.
    """
    place, url = split_archive_path(path), url_of(path)
    if place is not None:
        from shotproof.core.storage import item_archives  # imports Arrow

        return item_archives, place
    if url is not None:
        from shotproof.core.storage import object_stores

        return object_stores, url
    return None


def find(path: str | Path) -> FileInfo:
    """Look up a file or folder on disk, at a URL, or in an archive.

    Raises:
        OSError: it does not exist, or the path is invalid; `strerror` says why.
    """
    check_path(path)
    path = Path(path)
    if elsewhere := _elsewhere(path):
        reader, place = elsewhere
        info: FileInfo = reader.find(place)
        return info
    status = path.stat()
    kind = next((name for test, name in _KINDS.items() if test(status.st_mode)), "special file")
    return FileInfo(kind, status.st_size, status.st_mtime_ns)


def find_all(paths: Sequence[Path]) -> list[FileInfo | None]:
    """Look up each path; None if it does not exist or is invalid.

    An object store is queried once per folder rather than once per file.
    """
    in_stores = Counter(path.parent for path in paths if url_of(path) and split_archive_path(path) is None)
    listings: dict[Path, dict[str, FileInfo]] = {}
    for folder, files in in_stores.items():
        url = url_of(folder)
        if files > 1 and url is not None and not url.startswith("https:"):  # HTTPS servers have no listings
            from shotproof.core.storage import object_stores

            with contextlib.suppress(OSError):
                listings[folder] = object_stores.find_in(url)
    return [listings[path.parent].get(path.name) if path.parent in listings else _find_or_none(path) for path in paths]


def _find_or_none(path: Path) -> FileInfo | None:
    try:
        return find(path)
    except OSError:
        return None


def open_file(path: Path) -> IO[bytes]:
    """Open a file for reading, from disk, a URL or an archive. Raise OSError if that fails."""
    if elsewhere := _elsewhere(path):
        reader, place = elsewhere
        opened: IO[bytes] = reader.open_file(place)
        return opened
    return path.open("rb")


def source_of(path: Path) -> Any:
    """Return what a library can read a file from: its path, or the open file if it is not on disk."""
    return open_file(path) if _elsewhere(path) else path


def names_below(folder: Path) -> Iterator[str]:
    """List the files below a folder on disk, in a store or an archive, as relative paths. Raise OSError if it fails."""
    if elsewhere := _elsewhere(folder):
        reader, place = elsewhere
        names: Iterator[str] = reader.names_below(place)
        return names
    return (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def path_exists(path: str | Path) -> bool:
    """Return whether there is a file or folder at this path."""
    return _find_or_none(Path(path)) is not None


def is_folder(path: Path) -> bool:
    """Return whether there is a folder at this path."""
    info = _find_or_none(path)
    return info is not None and info.kind == "folder"


def check_regular(path: Path, largest: int | None = None) -> None:
    """Reject a path that is not a regular file, before it is opened.

    Args:
        path: the file
        largest: the largest size allowed, in bytes

    Raises:
        OSError: it does not exist, is not a regular file, or is too large; `strerror` says which.
    """
    info = find(path)
    if info.kind != "file":
        raise OSError(errno.EINVAL, f"expected a regular file, found a {info.kind}")
    if largest is not None and info.size > largest:
        raise OSError(errno.EFBIG, f"expected at most {largest:,} bytes, found {info.size:,}")


def is_regular(path: Path) -> bool:
    """Return whether there is a regular file at this path."""
    info = _find_or_none(path)
    return info is not None and info.kind == "file"


def file_sha256(path: Path) -> str:
    """Compute the SHA-256 of a file's content, in hexadecimal, without holding all of it in memory.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger than LARGEST_DIGESTED.
    """
    check_regular(path, LARGEST_DIGESTED)
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def field(entry: Any, name: str, kind: type[T]) -> T:
    """Return the value of a key in a table of a JSON file.

    Raises:
        KeyError: the key is missing.
        TypeError: the entry is not a table, or the value has another type.
    """
    value = entry[name]
    if type(value) is not kind:
        raise TypeError(f"{name}: expected {kind.__name__}, found {type(value).__name__}")
    return value


def require_file(path: Path, subject: str, largest: int | None = None) -> None:
    """Raise InputError unless the path is a readable regular file; if it is missing, suggest the closest name there.

    Raises:
        InputError: it is missing, too large, or not a regular file.
        MemoryError: there is too little memory to read anything.
    """
    require_headroom()
    try:
        check_regular(path, largest)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{subject} does not exist{suggest_file(path)}") from error
    except OSError as error:
        raise InputError(f"{subject} cannot be read: {error.strerror or error}") from error


def suggest_file(path: Path) -> str:
    """Return the end of a message about a missing file: the closest name in its folder."""
    if _elsewhere(path):
        return ""
    try:
        names = [sibling.name for sibling in path.parent.iterdir() if sibling.suffix == path.suffix]
    except OSError:
        return ""
    return did_you_mean(path.name, names) if names else ""


def read_text(path: Path, subject: str, *, encoding: str = "utf-8") -> str:
    """Read a text file."""
    require_file(path, subject, LARGEST_TEXT)
    try:
        with io.TextIOWrapper(open_file(path), encoding=encoding) as file:
            return file.read()
    except OSError as error:
        raise InputError(f"{subject} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{subject} is not valid UTF-8 text: {error}") from error


def read_bytes(path: Path, subject: str) -> bytes:
    """Read a file as bytes."""
    require_file(path, subject, LARGEST_TEXT)
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{subject} cannot be read: {error.strerror or error}") from error


def read_toml(path: Path, subject: str) -> dict[str, Any]:
    """Read a TOML file."""
    return parse_toml(read_text(path, subject), subject)


def parse_toml(text: str, subject: str) -> dict[str, Any]:
    """Parse TOML. Raise InputError if it is invalid or nested deeper than DEEPEST."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{subject} is not valid TOML: {_describe_parse_error(error)}") from error
    _require_shallow(document, subject)
    return document


def read_json(path: Path, subject: str) -> Any:
    """Read a JSON file."""
    return parse_json(read_text(path, subject), subject)


def parse_json(text: str | bytes, subject: str) -> Any:
    """Parse JSON. Raise InputError if it is invalid, contains lone surrogates, or is nested deeper than DEEPEST.

    Example:
        >>> parse_json("[" * 1000, "metadata")
        Traceback (most recent call last):
        shotproof.core.errors.InputError: metadata is not valid JSON: lists or tables are nested deeper than 100 levels
    """
    try:
        decoded = text if isinstance(text, str) else text.decode()
        document = json.loads(decoded)
        if _SURROGATE.search(decoded):
            json.dumps(document, ensure_ascii=False).encode()  # fails for half of a surrogate pair
    except (ValueError, RecursionError) as error:
        raise InputError(f"{subject} is not valid JSON: {_describe_parse_error(error)}") from error
    _require_shallow(document, subject, "JSON")
    return document


def _describe_parse_error(error: Exception) -> str:
    return (
        f"lists or tables are nested deeper than {DEEPEST} levels"
        if isinstance(error, RecursionError)
        else first_line(error)
    )


def _require_shallow(document: Any, subject: str, kind: str = "TOML") -> None:
    """Reject documents nested so deeply that recursive code would run out of stack."""
    level = [document]
    for _ in range(DEEPEST):
        level = [child for node in level for child in _children(node) if isinstance(child, Mapping | list)]
        if not level:
            return
    raise InputError(f"{subject} is not valid {kind}: {_describe_parse_error(RecursionError())}")


def _children(value: Any) -> Any:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
