"""Memory-mapped features: large files are unpacked to a temporary file that is mapped, not read, into memory."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import weakref
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from shotproof.core.errors import InputError, first_line
from shotproof.core.storage.files import source_of
from shotproof.core.storage.parts import is_in_parts, part_paths
from shotproof.core.storage.places import absolute

LARGE = 2**28  # bytes; larger files are mapped
BATCH_ROWS = 2**14


class Mapped:
    """Feature values in an unnamed temporary file, which is deleted when it is closed.

    It is pickled by reference: a process on the same machine maps the same file, another unpacks the features again.
    """

    def __init__(self, path: Path, file: IO[bytes], kind: pa.DataType) -> None:
        self.path = path  # the features file
        self.file = file
        self.kind = kind
        weakref.finalize(self, file.close)

    def column(self) -> pa.FixedSizeListArray:
        """Return the features as one array of lists."""
        buffer = pa.py_buffer(mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ))
        numbers = buffer.size * 8 // self.kind.value_type.bit_width
        values = pa.Array.from_buffers(self.kind.value_type, numbers, [None, buffer])
        return pa.FixedSizeListArray.from_arrays(values, self.kind.list_size)

    def __reduce__(self) -> tuple[Any, ...]:
        status = os.fstat(self.file.fileno())
        shared = Path(f"/proc/{os.getpid()}/fd/{self.file.fileno()}")
        return _restore_mapped, (absolute(self.path), shared, (status.st_dev, status.st_ino), self.kind)


def _restore_mapped(path: Path, shared: Path, identity: tuple[int, int], kind: pa.DataType) -> Mapped:
    with contextlib.suppress(OSError):
        file = shared.open("rb")
        status = os.fstat(file.fileno())
        if (status.st_dev, status.st_ino) == identity:
            return Mapped(path, file, kind)
        file.close()
    return map_features(path)


def is_large(path: Path) -> bool:
    """Return whether Parquet files unpack to more than should be in memory; False if they cannot be read."""
    try:
        return sum(_unpacked_size(file) for file in _files(path)) > LARGE
    except (pa.ArrowException, OSError, ValueError):  # ValueError: InputError, or names that are not UTF-8
        return False


def map_features(path: Path) -> Mapped:
    """Unpack the column `feature` of a Parquet file or of parts, fixed-size lists of numbers, to disk, and map it."""
    kind = pq.read_schema(source_of(_files(path)[0])).field("feature").type
    # Buffered because a row group may be the whole file.
    buffered = {"buffer_size": 2**20, "pre_buffer": False, "page_checksum_verification": True}
    unpacked = Mapped(path, tempfile.TemporaryFile(), kind)  # noqa: SIM115 - closed by its finalizer
    for file in _files(path):
        try:
            with pq.ParquetFile(source_of(file), **buffered) as source:
                for batch in source.iter_batches(BATCH_ROWS, columns=["feature"], use_threads=False):
                    column = batch.column(0)
                    if column.type != kind or column.null_count or column.flatten().null_count:
                        raise InputError(
                            f"features file {file}, column 'feature' has an empty value, or another type than {kind}"
                        )
                    unpacked.file.write(column.flatten().to_numpy().data)
            unpacked.file.flush()
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(f"features file {file} cannot be unpacked: {first_line(error)}") from error
    return unpacked


def _files(path: Path) -> list[Path]:
    return part_paths(path, f"features file {path}") if is_in_parts(path) else [path]


def _unpacked_size(path: Path) -> int:
    meta = pq.read_metadata(source_of(path))
    return sum(meta.row_group(group).total_byte_size for group in range(meta.num_row_groups))
