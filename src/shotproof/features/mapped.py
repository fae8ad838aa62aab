"""Large feature files: unpacked into a temporary file that is mapped into memory, so that few of it need be there."""

from __future__ import annotations

import mmap
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from shotproof.core.errors import InputError, first_line

LARGE = 2**28  # bytes beyond which features are mapped
BATCH_ROWS = 2**14


def is_large(path: Path) -> bool:
    """Whether a Parquet file unpacks to more than should be read at once; no where it is no such file."""
    try:
        meta = pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        return False
    return bool(sum(meta.row_group(group).total_byte_size for group in range(meta.num_row_groups)) > LARGE)


def map_features(path: Path) -> pa.Array:
    """The column `feature` of a Parquet file, fixed-size lists of numbers, as one array on disk.

    It lies in a file without a name in the folder for temporary files, and is gone when the process ends.
    """
    kind = pq.read_schema(path).field("feature").type
    # Buffered, as a row group may be the whole file.
    buffered = {"buffer_size": 2**20, "pre_buffer": False, "page_checksum_verification": True}
    with pq.ParquetFile(path, **buffered) as source, tempfile.TemporaryFile() as unpacked:
        try:
            for batch in source.iter_batches(BATCH_ROWS, columns=["feature"], use_threads=False):
                column = batch.column(0)
                if column.null_count or column.flatten().null_count:
                    raise InputError(f"features file {path}, column 'feature' has an empty value")
                unpacked.write(column.flatten().to_numpy().data)
            unpacked.flush()
            values = mmap.mmap(unpacked.fileno(), 0, access=mmap.ACCESS_READ)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"features file {path} cannot be unpacked: {first_line(error)}") from error
    buffer = pa.py_buffer(values)
    numbers = pa.Array.from_buffers(kind.value_type, buffer.size * 8 // kind.value_type.bit_width, [None, buffer])
    return pa.FixedSizeListArray.from_arrays(numbers, kind.list_size)
