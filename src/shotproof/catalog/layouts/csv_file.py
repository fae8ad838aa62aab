"""Tables from users: CSV files with a header line, and Parquet files."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as arrow_csv

from shotproof.core.errors import InputError
from shotproof.core.storage.files import LARGEST_TEXT, find, open_file, require_file, source_of
from shotproof.core.tables import read_parquet


def read_csv_or_parquet(path: Path, title: str, is_text: Callable[[str], bool]) -> pa.Table:
    """Read a table with at least one row: Parquet if the file name ends with `.parquet`, otherwise CSV (`read_csv`)."""
    table = read_parquet(path, title) if path.suffix.lower() == ".parquet" else read_csv(path, title, is_text)
    if not table.num_rows:
        raise InputError(f"{title} has no rows")
    return table


def read_csv(path: Path, title: str, is_text: Callable[[str], bool], text_columns: int = 0) -> pa.Table:
    """Read a CSV file. Columns that `is_text` accepts, and the first `text_columns`, stay text; others are inferred."""
    require_file(path, title, LARGEST_TEXT)
    try:
        with io.TextIOWrapper(open_file(path), encoding="utf-8-sig", newline="") as file:
            header = next((line for line in csv.reader(file) if line), [])  # Arrow skips empty lines as well
        size = find(path).size
    except OSError as error:
        raise InputError(f"{title} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{title} is not a CSV file in UTF-8: {error}") from error
    for name, count in Counter(header).items():
        if count > 1:
            raise InputError(f"{title} has {count} columns named '{name}'")
    try:
        table: pa.Table = arrow_csv.read_csv(
            source_of(path),
            # One block: types are inferred from the whole file, not from its first megabyte.
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=min(size + 1, 2**30)),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types={
                    name: pa.string() for index, name in enumerate(header) if is_text(name) or index < text_columns
                }
            ),
        )
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{title} is not a CSV file in UTF-8: {' '.join(str(error).split())}") from error
    return table
