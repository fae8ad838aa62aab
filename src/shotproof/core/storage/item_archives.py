"""Items inside one file: zip and tar archives, and tables of bytes, read in place. Nothing is unpacked to disk.

A member of an archive is addressed by its name; an item of a table (Parquet, or an Arrow stream as saved by `datasets`)
by COLUMN/ROW.EXTENSION, if the column holds bytes, or structs with a field `bytes`.
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
from shotproof.core.storage.places import FileInfo, InArchive

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
    """Open file that contains many items; safe to share between threads."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.lock = threading.Lock()

    @property
    @abstractmethod
    def names(self) -> Iterable[str]:
        """Return the names of the members."""

    @abstractmethod
    def size(self, name: str) -> int:
        """Return the size of a member in bytes. Raise KeyError if there is no such member."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Return the content of a member of at most LARGEST_MEMBER bytes."""

    @cached_property
    def folders(self) -> set[str]:
        """Return all folders that contain members; the root of the archive is the empty string."""
        folders = {""}
        for name in self.names:
            parent = name.rpartition("/")[0]
            while parent and parent not in folders:
                folders.add(parent)
                parent = parent.rpartition("/")[0]
        return folders


class _Zip(Archive):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self.archive = zipfile.ZipFile(file)
        self.members = {member.filename: member for member in self.archive.infolist() if _is_inside(member.filename)}

    @property
    def names(self) -> Iterable[str]:
        return self.members

    def size(self, name: str) -> int:
        return self.members[name].file_size

    def read(self, name: str) -> bytes:
        member = self.members[name]
        if member.file_size > max(SMALL, MOST_UNPACKED * member.compress_size):
            raise OSError(errno.EFBIG, f"unpacks to more than {MOST_UNPACKED} times its compressed size")
        with self.lock, self.archive.open(member) as file:
            return file.read(member.file_size)  # never more than the archive declares


class _Tar(Archive):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        # Uncompressed tar only: finding a member of a compressed one requires unpacking everything before it.
        with tarfile.open(fileobj=file, mode="r:") as archive:
            self.members = {
                member.name.removeprefix("./"): (member.offset_data, member.size)
                for member in archive
                if member.isreg() and not member.issparse() and _is_inside(member.name.removeprefix("./"))
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
            raise OSError(errno.EIO, "the archive is truncated")
        return data


class _Table(Archive):
    """Rows of a table. Names are not listed, as the catalog of its layout has them."""

    names: Iterable[str] = ()

    def size(self, name: str) -> int:
        return len(self.read(name))

    def read(self, name: str) -> bytes:
        column, _, row = name.rpartition("/")
        index = row.partition(".")[0]
        if not column or not index.isdecimal():
            raise KeyError(name)
        with self.lock:
            value = self.value(column, int(index))
        data = value["bytes"] if isinstance(value, dict) and "bytes" in value else value
        if not isinstance(data, bytes):
            raise OSError(errno.EINVAL, f"column '{column}', row {index}: expected bytes, found {type(data).__name__}")
        return data

    @abstractmethod
    def value(self, column: str, row: int) -> Any:
        """Return a value. Raise KeyError if there is none."""


class _Parquet(_Table):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self.parquet = pq.ParquetFile(file)
        sizes = [self.parquet.metadata.row_group(group).num_rows for group in range(self.parquet.num_row_groups)]
        self.starts = [sum(sizes[:group]) for group in range(len(sizes) + 1)]
        self.row_group: tuple[str, int, pa.ChunkedArray] | None = None

    def value(self, column: str, row: int) -> Any:
        if row >= self.starts[-1] or column not in self.parquet.schema_arrow.names:
            raise KeyError(f"{column}/{row}")
        group = bisect.bisect_right(self.starts, row) - 1
        if self.row_group is None or self.row_group[:2] != (column, group):
            self.row_group = (column, group, self.parquet.read_row_group(group, columns=[column]).column(0))
        return self.row_group[2][row - self.starts[group]].as_py()


class _Arrow(_Table):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        if not isinstance(getattr(file, "name", None), str | Path):
            raise OSError(errno.EINVAL, "Arrow files can only be read from disk")
        # Memory-mapped: values are read on access.
        self.table = pa.ipc.open_stream(pa.memory_map(str(file.name))).read_all()

    def value(self, column: str, row: int) -> Any:
        if row >= self.table.num_rows or column not in self.table.column_names:
            raise KeyError(f"{column}/{row}")
        return self.table.column(column)[row].as_py()


_KINDS: dict[str, Callable[[IO[bytes]], Archive]] = {".zip": _Zip, ".tar": _Tar, ".parquet": _Parquet, ".arrow": _Arrow}
_open_lock = threading.Lock()


def open_archive(path: Path) -> Archive:
    """Open the archive at a path, or reuse the open one if the file has not changed.

    Raises:
        OSError: it cannot be read as the format that its extension names.
    """
    info = files.find(path)
    with _open_lock:
        return _open_cached(path, info)


@lru_cache(OPEN_ARCHIVES)
def _open_cached(path: Path, info: FileInfo) -> Archive:
    if info.kind != "file":
        raise OSError(errno.EINVAL, f"{path.name} is not a regular file")
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
        raise OSError(errno.EINVAL, f"{path.name} is not a readable {path.suffix} file: {first_line(error)}") from error


def find(place: InArchive) -> FileInfo:
    """Look up a member or a folder of members. Raise OSError if there is none."""
    archive, modified = open_archive(place.archive), files.find(place.archive).modified
    try:
        return FileInfo("file", archive.size(place.member), modified)
    except KeyError as error:
        if place.member in archive.folders:
            return FileInfo("folder", 0, modified)
        raise FileNotFoundError(errno.ENOENT, "does not exist") from error


def open_file(place: InArchive) -> IO[bytes]:
    """Open a member for reading. Raise OSError if that fails."""
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
    """List the members below a folder, relative to it."""
    prefix = f"{place.member}/" if place.member else ""
    return (name.removeprefix(prefix) for name in open_archive(place.archive).names if name.startswith(prefix))


def _is_inside(name: str) -> bool:
    """Return whether a name is that of a file inside the archive's root."""
    return not name.endswith("/") and not name.startswith("/") and ".." not in name.split("/")
