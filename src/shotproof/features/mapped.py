"""Large feature files: unpacked into a temporary file that is mapped into memory, so that few of it need be there."""

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

LARGE = 2**28  # bytes beyond which features are mapped
BATCH_ROWS = 2**14


class Mapped:
    """Numbers in a file without a name in the folder for temporary files, which is gone when nobody has it open.

    It travels by reference: a process of the same machine maps the same file, another unpacks the features anew.
    """

    def __init__(self, path: Path, file: IO[bytes], kind: pa.DataType) -> None:
        self.path = path  # of the features
        self.file = file
        self.kind = kind
        weakref.finalize(self, file.close)

    def column(self) -> pa.FixedSizeListArray:
        """Return the lists of numbers, one array."""
        buffer = pa.py_buffer(mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ))
        numbers = buffer.size * 8 // self.kind.value_type.bit_width
        values = pa.Array.from_buffers(self.kind.value_type, numbers, [None, buffer])
        return pa.FixedSizeListArray.from_arrays(values, self.kind.list_size)

    def __reduce__(self) -> tuple[Any, ...]:
        status = os.fstat(self.file.fileno())
        shared = Path(f"/proc/{os.getpid()}/fd/{self.file.fileno()}")
        return _mapped_again, (absolute(self.path), shared, (status.st_dev, status.st_ino), self.kind)


def _mapped_again(path: Path, shared: Path, identity: tuple[int, int], kind: pa.DataType) -> Mapped:
    with contextlib.suppress(OSError):
        file = shared.open("rb")
        status = os.fstat(file.fileno())
        if (status.st_dev, status.st_ino) == identity:
            return Mapped(path, file, kind)
        file.close()
    return map_features(path)


def is_large(path: Path) -> bool:
    """Return whether Parquet files unpack to more than should be read at once; no where they are no such files."""
    try:
        return sum(_unpacked_size(file) for file in _files(path)) > LARGE
    except (pa.ArrowException, OSError, ValueError):  # of our own errors too; names that are not UTF-8 are of the last
        return False


def map_features(path: Path) -> Mapped:
    """Return the column `feature` of a Parquet file or of parts, fixed-size lists of numbers, on disk."""
    kind = pq.read_schema(source_of(_files(path)[0])).field("feature").type
    # Buffered, as a row group may be the whole file.
    buffered = {"buffer_size": 2**20, "pre_buffer": False, "page_checksum_verification": True}
    unpacked = Mapped(path, tempfile.TemporaryFile(), kind)  # noqa: SIM115 - closed when nobody has it
    for file in _files(path):
        try:
            with pq.ParquetFile(source_of(file), **buffered) as source:
                for batch in source.iter_batches(BATCH_ROWS, columns=["feature"], use_threads=False):
                    column = batch.column(0)
                    if column.type != kind or column.null_count or column.flatten().null_count:
                        raise InputError(f"features file {file}, column 'feature' has an empty value, or another type")
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
