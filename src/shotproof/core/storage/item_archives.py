"""Items within one file: zip and tar archives, and tables of bytes, read in place. Nothing is ever unpacked to a path.

A member of an archive has the name that it has there; one of a table (Parquet, or Arrow's stream as `datasets` saves
it) is COLUMN/ROW.EXTENSION, of a column of bytes, or of structs whose `bytes` they are.
"""

from __future__ import annotations

import bisect
import errno
import io
import tarfile
import threading
import weakref
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from shotproof.core.errors import first_line
from shotproof.core.storage import files
from shotproof.core.storage.numpy_files import MOST_UNPACKED, SMALL
from shotproof.core.storage.places import Found, InArchive

LARGEST_MEMBER = 2**31  # bytes
OPEN_ARCHIVES = 16
BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    pa.ArrowException,
    RuntimeError,
    NotImplementedError,
    EOFError,
)


class Archive(ABC):
    """An open file of many; threads share it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.lock = threading.Lock()

    @property
    @abstractmethod
    def names(self) -> Iterable[str]:
        """Its members."""

    @abstractmethod
    def size(self, name: str) -> int:
        """The bytes of a member; KeyError where there is none."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """All of a member, of at most LARGEST_MEMBER bytes."""

    @cached_property
    def folders(self) -> set[str]:
        """All folders that members lie in; the archive itself is the empty one."""
        found = {""}
        for name in self.names:
            parent = name.rpartition("/")[0]
            while parent and parent not in found:
                found.add(parent)
                parent = parent.rpartition("/")[0]
        return found


class _Zip(Archive):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self.archive = zipfile.ZipFile(file)
        self.members = {one.filename: one for one in self.archive.infolist() if _is_inside(one.filename)}

    @property
    def names(self) -> Iterable[str]:
        return self.members

    def size(self, name: str) -> int:
        return self.members[name].file_size

    def read(self, name: str) -> bytes:
        member = self.members[name]
        if member.file_size > max(SMALL, MOST_UNPACKED * member.compress_size):
            raise OSError(errno.EFBIG, f"it unpacks to more than {MOST_UNPACKED} times its size in the archive")
        with self.lock, self.archive.open(member) as file:
            return file.read(member.file_size)  # no more than the archive says, however much there is


class _Tar(Archive):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        # Opened as a plain tar: a member of a packed one could not be found without unpacking all before it.
        with tarfile.open(fileobj=file, mode="r:") as archive:
            self.members = {
                one.name.removeprefix("./"): (one.offset_data, one.size)
                for one in archive
                if one.isreg() and not one.issparse() and _is_inside(one.name.removeprefix("./"))
            }

    @property
    def names(self) -> Iterable[str]:
        return self.members

    def size(self, name: str) -> int:
        return self.members[name][1]

    def read(self, name: str) -> bytes:
        offset, size = self.members[name]
        with self.lock:
            self.file.seek(offset)
            data = self.file.read(size)
        if len(data) < size:
            raise OSError(errno.EIO, "the archive is cut off")
        return data


class _Table(Archive):
    """Rows of a table; the names of members are not listed: the catalog of its layout has them."""

    names: Iterable[str] = ()

    def size(self, name: str) -> int:
        return len(self.read(name))

    def read(self, name: str) -> bytes:
        column, _, row = name.rpartition("/")
        number = row.partition(".")[0]
        if not column or not number.isdecimal():
            raise KeyError(name)
        with self.lock:
            value = self.value(column, int(number))
        data = value["bytes"] if isinstance(value, dict) and "bytes" in value else value
        if not isinstance(data, bytes):
            raise OSError(errno.EINVAL, f"column '{column}' has no bytes in row {number}")
        return data

    @abstractmethod
    def value(self, column: str, row: int) -> Any:
        """A value; KeyError where there is none."""


class _Parquet(_Table):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self.parquet = pq.ParquetFile(file)
        sizes = [self.parquet.metadata.row_group(group).num_rows for group in range(self.parquet.num_row_groups)]
        self.starts = [sum(sizes[:group]) for group in range(len(sizes) + 1)]
        self.held: tuple[str, int, pa.ChunkedArray] | None = None

    def value(self, column: str, row: int) -> Any:
        if row >= self.starts[-1] or column not in self.parquet.schema_arrow.names:
            raise KeyError(f"{column}/{row}")
        group = bisect.bisect_right(self.starts, row) - 1
        if self.held is None or self.held[:2] != (column, group):
            self.held = (column, group, self.parquet.read_row_group(group, columns=[column]).column(0))
        return self.held[2][row - self.starts[group]].as_py()


class _Arrow(_Table):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        if not isinstance(getattr(file, "name", None), str | Path):
            raise OSError(errno.EINVAL, "Arrow files are read from disk only")
        # Mapped into memory: nothing is read before it is asked for.
        self.table = pa.ipc.open_stream(pa.memory_map(str(file.name))).read_all()

    def value(self, column: str, row: int) -> Any:
        if row >= self.table.num_rows or column not in self.table.column_names:
            raise KeyError(f"{column}/{row}")
        return self.table.column(column)[row].as_py()


_KINDS: dict[str, Callable[[IO[bytes]], Archive]] = {".zip": _Zip, ".tar": _Tar, ".parquet": _Parquet, ".arrow": _Arrow}
_opening = threading.Lock()


def open_archive(path: Path) -> Archive:
    """The archive at a path, kept open for its next member as long as it does not change.

    Raises:
        OSError: it cannot be read as what its name says.
    """
    found = files.find(path)
    with _opening:
        return _opened(path, found)


@lru_cache(OPEN_ARCHIVES)
def _opened(path: Path, found: Found) -> Archive:
    if found.kind != "file":
        raise OSError(errno.EINVAL, f"{path.name} is no regular file")
    file = files.open_file(path)
    try:
        archive = _KINDS[path.suffix](file)
        weakref.finalize(archive, file.close)
        return archive
    except OSError:
        file.close()
        raise
    except BROKEN as error:
        file.close()
        raise OSError(errno.EINVAL, f"{path.name} is not readable as {path.suffix}: {first_line(error)}") from error


def find(place: InArchive) -> Found:
    """What a member is, or a folder of members; OSError where there is none."""
    archive, changed = open_archive(place.archive), files.find(place.archive).changed
    try:
        return Found("file", archive.size(place.member), changed)
    except KeyError as error:
        if place.member in archive.folders:
            return Found("folder", 0, changed)
        raise FileNotFoundError(errno.ENOENT, "does not exist") from error


def open_file(place: InArchive) -> IO[bytes]:
    """A member; OSError where it cannot be read."""
    archive = open_archive(place.archive)
    try:
        if archive.size(place.member) > LARGEST_MEMBER:
            raise OSError(errno.EFBIG, f"expected at most {LARGEST_MEMBER:,} bytes")
        return io.BytesIO(archive.read(place.member))
    except KeyError as error:
        raise FileNotFoundError(errno.ENOENT, "does not exist") from error
    except BROKEN as error:
        raise OSError(errno.EINVAL, first_line(error)) from error


def names_below(place: InArchive) -> Iterator[str]:
    """The names of the members below a folder, from there."""
    prefix = f"{place.member}/" if place.member else ""
    return (name.removeprefix(prefix) for name in open_archive(place.archive).names if name.startswith(prefix))


def _is_inside(name: str) -> bool:
    """Whether a member is a file within the archive's own folders."""
    return not name.endswith("/") and not name.startswith("/") and ".." not in name.split("/")
