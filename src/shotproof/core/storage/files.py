"""Files that may be anything: the one place where they are opened, with limits before anything is read or allocated.

Only regular files are read: a device or a pipe would never end. What is wrong with a file is an InputError, whose
message begins with `what`, the kind of file and its path.
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
from shotproof.core.storage.places import Found, in_archive, url_of
from shotproof.core.text import is_storable

T = TypeVar("T")

LARGEST_TEXT = 2**30  # bytes of a file that is read as text, all at once
LARGEST_DIGESTED = 2**40  # bytes of a file whose digest is taken
LARGEST_ITEM = 2**31  # bytes of an image or a sound
DEEPEST = 100  # lists and tables within each other
LONGEST_NAME, LONGEST_PATH = 255, 4095  # bytes, as most systems have it

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
    """Ask the system for some memory, and give it back untouched.

    Raises:
        MemoryError: there is too little. Libraries would abort the process, or wait for ever for a thread of theirs.
    """
    try:
        mmap.mmap(-1, HEADROOM).close()
    except OSError as error:
        raise MemoryError(f"less than {HEADROOM:,} bytes of memory are left") from error


def check_path(path: str | Path) -> None:
    """Refuse a path that no file can have, with a NUL or longer than systems allow, or that is not UTF-8.

    Neither Arrow nor a record could hold the latter.

    Raises:
        OSError: it is one; `strerror` says why.
    """
    if not is_storable(str(path)):
        raise OSError(errno.EILSEQ, "its name is not UTF-8: rename it")
    text = os.fsencode(str(path))
    if b"\0" in text:
        raise OSError(errno.EINVAL, "its name has a NUL character")
    if len(text) > LONGEST_PATH or any(len(name) > LONGEST_NAME for name in text.split(b"/")):
        raise OSError(
            errno.ENAMETOOLONG, f"its name is longer than {LONGEST_NAME} bytes, or its path than {LONGEST_PATH}"
        )


def _elsewhere(path: Path) -> tuple[ModuleType, Any] | None:
    """Return the module that reads what is not a path on disk, and what it calls the place; None of a path on disk.

    Such a module has `find`, `open_file` and `names_below`, as this one.
    """
    place, url = in_archive(path), url_of(path)
    if place is not None:
        from shotproof.core.storage import item_archives  # which need Arrow

        return item_archives, place
    if url is not None:
        from shotproof.core.storage import object_stores

        return object_stores, url
    return None


def find(path: str | Path) -> Found:
    """What lies at a place: on disk, at a URL, or in an archive.

    Raises:
        OSError: nothing does, or none can; `strerror` says why.
    """
    check_path(path)
    path = Path(path)
    if elsewhere := _elsewhere(path):
        reader, place = elsewhere
        found: Found = reader.find(place)
        return found
    status = path.stat()
    kind = next((name for test, name in _KINDS.items() if test(status.st_mode)), "something else")
    return Found(kind, status.st_size, status.st_mtime_ns)


def find_all(paths: Sequence[Path]) -> list[Found | None]:
    """What lies at each place; None where nothing does, or none can.

    A store is asked for one listing of each folder, and not for each file.
    """
    in_stores = Counter(path.parent for path in paths if url_of(path) and in_archive(path) is None)
    listed: dict[Path, dict[str, Found]] = {}
    for folder, files in in_stores.items():
        url = url_of(folder)
        if files > 1 and url is not None and not url.startswith("https:"):  # servers list nothing
            from shotproof.core.storage import object_stores

            with contextlib.suppress(OSError):
                listed[folder] = object_stores.find_in(url)
    return [listed[path.parent].get(path.name) if path.parent in listed else _found(path) for path in paths]


def _found(path: Path) -> Found | None:
    try:
        return find(path)
    except OSError:
        return None


def open_file(path: Path) -> IO[bytes]:
    """A file to be read, from disk, a URL or an archive; OSError where it cannot."""
    if elsewhere := _elsewhere(path):
        reader, place = elsewhere
        opened: IO[bytes] = reader.open_file(place)
        return opened
    return path.open("rb")


def source_of(path: Path) -> Any:
    """What a library reads a file from: its path, or the open file where it is not on disk."""
    return open_file(path) if _elsewhere(path) else path


def names_below(folder: Path) -> Iterator[str]:
    """The files below a folder, on disk, of a store or an archive, as relative paths; OSError where none are told."""
    if elsewhere := _elsewhere(folder):
        reader, place = elsewhere
        names: Iterator[str] = reader.names_below(place)
        return names
    return (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def is_there(path: str | Path) -> bool:
    """Whether there is a file or folder of this name; no where none can be."""
    return _found(Path(path)) is not None


def is_folder(path: Path) -> bool:
    """Whether there is a folder of this name; no where none can be."""
    found = _found(path)
    return found is not None and found.kind == "folder"


def check_regular(path: Path, largest: int | None = None) -> None:
    """Refuse what is not a regular file, before it is opened.

    Args:
        path: of the file
        largest: bytes that it may have

    Raises:
        OSError: it is not there, no regular file, or larger; `strerror` says which.
    """
    found = find(path)
    if found.kind != "file":
        kind = found.kind if found.kind.startswith("something") else f"a {found.kind}"
        raise OSError(errno.EINVAL, f"expected a regular file, found {kind}")
    if largest is not None and found.size > largest:
        raise OSError(errno.EFBIG, f"expected at most {largest:,} bytes, found {found.size:,}")


def is_regular(path: Path) -> bool:
    """Whether there is a regular file of this name; no where none can be."""
    found = _found(path)
    return found is not None and found.kind == "file"


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal, without reading all of it into memory.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger than LARGEST_DIGESTED.
    """
    check_regular(path, LARGEST_DIGESTED)
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def field(entry: Any, name: str, kind: type[T]) -> T:
    """What a table of a JSON file has under a name.

    Raises:
        KeyError: it has nothing there.
        TypeError: it is no table, or has something else there than a value of this type.
    """
    value = entry[name]
    if type(value) is not kind:
        raise TypeError(f"{name} of another type")
    return value


def require_file(path: Path, what: str, largest: int | None = None) -> None:
    """Refuse what cannot be read as a regular file; of one that is not there, with the nearest name beside it.

    Raises:
        InputError: it cannot.
        MemoryError: there is too little memory to read anything.
    """
    require_headroom()
    try:
        check_regular(path, largest)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{what} does not exist{similar_files(path)}") from error
    except OSError as error:
        raise InputError(f"{what} cannot be read: {error.strerror or error}") from error


def similar_files(path: Path) -> str:
    """The end of a message about a file that is not there: the nearest name in its folder."""
    if _elsewhere(path):
        return ""
    try:
        names = [one.name for one in path.parent.iterdir() if one.suffix == path.suffix]
    except OSError:
        return ""
    return did_you_mean(path.name, names) if names else ""


def read_text(path: Path, what: str, *, encoding: str = "utf-8") -> str:
    """All of a text file."""
    require_file(path, what, LARGEST_TEXT)
    try:
        with io.TextIOWrapper(open_file(path), encoding=encoding) as file:
            return file.read()
    except OSError as error:
        raise InputError(f"{what} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{what} is not text in UTF-8: {error}") from error


def read_bytes(path: Path, what: str) -> bytes:
    """All of a file as it is."""
    require_file(path, what, LARGEST_TEXT)
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{what} cannot be read: {error.strerror or error}") from error


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """What a TOML file holds."""
    return parse_toml(read_text(path, what), what)


def parse_toml(text: str, what: str) -> dict[str, Any]:
    """What TOML says; InputError where it is none, or nests deeper than DEEPEST."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} is not readable as TOML: {_of_text(error)}") from error
    _require_shallow(document, what)
    return document


def read_json(path: Path, what: str) -> Any:
    """What a JSON file holds."""
    return parse_json(read_text(path, what), what)


def parse_json(text: str | bytes, what: str) -> Any:
    """What JSON says; InputError where it is none, holds text that is not Unicode, or nests deeper than DEEPEST.

    Example:
        >>> parse_json("[" * 1000, "metadata")
        Traceback (most recent call last):
        shotproof.core.errors.InputError: metadata is not readable as JSON: lists or tables nest deeper than 100
    """
    try:
        decoded = text if isinstance(text, str) else text.decode()
        document = json.loads(decoded)
        if _SURROGATE.search(decoded):
            json.dumps(document, ensure_ascii=False).encode()  # half of a pair cannot be encoded
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} is not readable as JSON: {_of_text(error)}") from error
    _require_shallow(document, what, "JSON")
    return document


def _of_text(error: Exception) -> str:
    return f"lists or tables nest deeper than {DEEPEST}" if isinstance(error, RecursionError) else first_line(error)


def _require_shallow(document: Any, what: str, kind: str = "TOML") -> None:
    """Refuse what nests so deep that those who walk through it would run out of stack."""
    level = [document]
    for _ in range(DEEPEST):
        level = [below for one in level for below in _below(one) if isinstance(below, Mapping | list)]
        if not level:
            return
    raise InputError(f"{what} is not readable as {kind}: {_of_text(RecursionError())}")


def _below(value: Any) -> Any:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
