"""Reading and writing of Shotproof's files: Parquet with zstd, written atomically, with a digest of the content."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shotproof.core.errors import InputError, Mismatch, MissingExtra, did_you_mean, error_prefix, first_line
from shotproof.core.nouns import counted
from shotproof.core.plain_values import plain, typed
from shotproof.core.records import Header, Meta, Record
from shotproof.core.storage.files import LONGEST_NAME, check_path, parse_json, require_file, source_of
from shotproof.core.storage.parts import (
    is_in_parts,
    mark_incomplete,
    part_path,
    part_paths,
    read_manifest,
    write_manifest,
)
from shotproof.core.storage.places import require_writable, url_of
from shotproof.core.storage.whole_files import whole_file
from shotproof.core.text import encoded
from shotproof.version import __version__

if TYPE_CHECKING:
    import pandas as pd

R = TypeVar("R", bound=Record)

METADATA_KEY = b"shotproof"
FORMAT = 2
MOST_ROWS = 2**31
ROWS_PER_PART = 2**20
ROWS_SHOWN = 5  # rows of a table in a notebook
LONGEST_CELL = 60  # characters of a cell in a notebook

# By kind: the type of a column in memory, tests for the types accepted in a file, and the name in messages.
_COLUMN_KINDS = {
    "string": (pa.string(), (pa.types.is_string, pa.types.is_large_string, pa.types.is_null), "string"),
    "integer": (pa.int64(), (pa.types.is_integer,), "whole numbers"),
    "number": (pa.float64(), (pa.types.is_floating, pa.types.is_integer, pa.types.is_null), "numbers"),
    "strings": (pa.list_(pa.string()), (pa.types.is_list, pa.types.is_large_list), "lists of strings"),
}


class Tabular:
    """Table with a record: reading and writing of files, conversion to and from pandas, display.

    KIND: the name of its kind of file
    REQUIRED: the required columns, of which the digest is computed, each with the kind of its values
    RECORD: the record class of its metadata
    """

    KIND: ClassVar[str]
    REQUIRED: ClassVar[Mapping[str, str]]
    RECORD: ClassVar[type[Record]]
    table: pa.Table
    record: Any

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file of this kind.

        Raises:
            InputError: it is not a valid file of this kind; the message has the file and the location.
        """
        table, record = read_table(Path(path), cls.KIND, cls.REQUIRED, cls.RECORD)
        with error_prefix(f"{path}: "):
            return cls(table, record)  # type: ignore[call-arg]

    def write(self, path: str | Path) -> None:
        """Write a file of this kind atomically."""
        write_table(Path(path), self.table, self.KIND, self.record, self.digest)

    @cached_property
    def digest(self) -> str:
        """Return the digest of the content."""
        return digest(self.table, list(self.REQUIRED))

    def to_pandas(self) -> pd.DataFrame:
        """Convert the table to a data frame.

        Raises:
            MissingExtra: pandas is not installed.
        """
        require_pandas()
        return self.table.to_pandas()

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame) -> Self:
        """Create it from a data frame with the columns of this kind of file; the index is dropped.

        Raises:
            InputError: a column is missing, or its values have the wrong type.
        """
        try:
            table = pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError) as error:  # a lone surrogate raises ValueError
            raise InputError(f"cannot convert the data frame: {error}") from error
        return cls(table.replace_schema_metadata(None))  # type: ignore[call-arg]

    def describe(self) -> str:
        """Describe the content in one line."""
        return counted(self.table.num_rows, "row")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.describe()}>"

    def _repr_html_(self) -> str:
        names = self.table.column_names
        rows = self.table.slice(0, ROWS_SHOWN).to_pylist()
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(f'<td>{_cell(row[name])}</td>' for name in names)}</tr>" for row in rows)
        return f"<p>{escape(repr(self))}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def require_pandas() -> Any:
    """Import and return pandas. Raise MissingExtra if it is not installed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtra("a data frame", "pandas") from error
    return pd


def _cell(value: Any) -> str:
    text = str(value)
    return escape(text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…")


def check_output(path: Path, *, folder: bool = False) -> None:
    """Raise InputError if an output cannot be written; called before anything is computed.

    Args:
        path: the file or folder to write
        folder: whether the output is a folder

    Raises:
        InputError: the path of a file is a folder, the path of a folder is a file, or the path is invalid or read-only.
    """
    try:
        check_path(path)
    except OSError as error:
        raise InputError(f"cannot write {str(path)[:LONGEST_NAME]}: {error.strerror}") from error
    url = url_of(path)
    if url is not None:
        return require_writable(url)
    folder = folder or is_in_parts(path)
    if path.is_dir() and not folder:
        raise InputError(f"{path} is a folder, expected a file name")
    for place in [*([path] if folder else []), *path.parents]:
        if place.is_file():
            raise InputError(f"{place} is a file, expected a folder")


def check_replaceable(folder: Path, marks: Sequence[str], earlier: str) -> None:
    """Raise InputError if writing a folder would replace unrelated files; called before anything is computed.

    Args:
        folder: the folder to write
        marks: files that every folder of this kind contains
        earlier: description of such a folder, e.g. `an earlier site`

    Raises:
        InputError: the folder cannot be written, or contains other files.
    """
    check_output(folder, folder=True)
    if folder.is_dir() and any(folder.iterdir()) and not all((folder / name).is_file() for name in marks):
        raise InputError(f"{folder} contains other files: expected a new folder, an empty one, or {earlier}")


def write_table(
    path: Path, table: pa.Table, kind: str, record: Record, digest: str | None = None, group_rows: int | None = None
) -> None:
    """Write a Parquet file with a record as its `shotproof` metadata; the same table and record give the same bytes.

    Args:
        path: the file to write; if its name ends in `.parts`, a folder of parts
        table: the rows
        kind: the kind of file, e.g. `tasks`
        record: the record of how it was made
        digest: the digest of its content
        group_rows: rows per row group, or per part (default: a million)
    """
    meta = file_metadata(kind, record, digest)
    if is_in_parts(path):
        return _write_parts(path, table, meta, group_rows or ROWS_PER_PART)
    text = json.dumps(meta, sort_keys=True, ensure_ascii=False)
    stored = table.replace_schema_metadata({METADATA_KEY: encoded(text, path)})
    with whole_file(path) as temporary:
        pq.write_table(
            stored,
            temporary,
            compression="zstd",
            # Numbers rarely repeat, and searching for repeated ones would dominate the writing time.
            use_dictionary=[field.name for field in table.schema if not pa.types.is_fixed_size_list(field.type)],
            row_group_size=group_rows,
            write_page_checksum=True,
        )


def file_metadata(kind: str, record: Record, digest: str | None) -> Meta:
    """Return the metadata of a file."""
    return {"format": FORMAT, "shotproof": __version__, "kind": kind, "digest": digest, **record.to_meta()}


def _write_parts(folder: Path, table: pa.Table, meta: Meta, rows: int) -> None:
    """Write a table in parts; existing parts with the same content are kept."""
    starts = range(0, max(len(table), 1), rows)
    mark_incomplete(folder)
    for number, start in enumerate(starts):
        part, path = table.slice(start, rows), part_path(folder, number)
        part_digest = digest(part, part.column_names)
        with contextlib.suppress(InputError):
            if read_meta(read_parquet_schema(path, f"part {path}"), f"part {path}").get("digest") == part_digest:
                continue
        write_table(path, part, meta["kind"], Record(), part_digest)
    write_manifest(folder, [len(table.slice(start, rows)) for start in starts], meta)


def read_table(
    path: Path, kind: str, required: Mapping[str, str], record: type[R], columns: Sequence[str] | None = None
) -> tuple[pa.Table, R]:
    """Read a Parquet file of a kind: check it, and convert its columns and metadata to their types.

    A file without Shotproof's metadata is accepted if it has the required columns.

    Args:
        path: the file
        kind: the expected kind, e.g. `tasks`
        required: kinds of the required columns: `string`, `integer`, `strings` (list of string) or `floats` (fixed-size
            list)
        record: the record class of its metadata
        columns: the columns to read; None for all

    Returns:
        The table, whose required columns have Shotproof's types, and the record.

    Raises:
        InputError: it is not such a file; the message has the file, the location, what was expected and what was found.
    """
    subject = f"{kind} file {path}"
    table = read_parquet(path, subject, columns)
    meta = read_meta(table.schema, subject)
    with error_prefix(f"{subject}, metadata, "):
        header: Header = typed(meta, Header)
    if header.format not in (None, FORMAT):
        raise InputError(f"{subject} has format {header.format}; this version of Shotproof reads format {FORMAT}")
    if header.kind not in (None, kind):
        raise InputError(f"{path}: expected a file of kind '{kind}', found kind '{header.kind}'")
    with error_prefix(f"{subject}, metadata, "):
        parsed = record.read(meta)
    return conform(table, required, subject), parsed


def read_parquet(path: Path, subject: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file. Text that is not UTF-8 and repeated column names are errors.

    Arrow reads in the calling thread only, as everywhere in Shotproof: without memory for the stacks of its threads,
    it would wait for them forever. On files of a million rows, they saved no time.
    """
    if is_in_parts(path):
        paths, schema = part_paths(path, subject), read_parquet_schema(path, subject)
        try:
            tables = [read_parquet(part, f"{subject}, {part.name}", columns) for part in paths]
            joined = pa.concat_tables(tables)
        except pa.ArrowException as error:
            raise InputError(f"{subject}: its parts have different columns: {first_line(error)}") from error
        for part, table, rows in zip(paths, tables, read_manifest(path, subject).rows, strict=True):
            if len(table) != rows:
                raise InputError(f"{subject}, {part.name}: expected {rows:,} rows, found {len(table):,}")
        return joined.replace_schema_metadata(schema.metadata)
    schema = read_parquet_schema(path, subject)
    names = schema.names if columns is None else list(columns)
    repeated = next((name for name in names if names.count(name) > 1 or schema.names.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"{subject} has {schema.names.count(repeated)} columns named '{repeated}', expected one")
    try:
        with pq.ParquetFile(source_of(path), pre_buffer=False, page_checksum_verification=True) as file:
            table = file.read(columns, use_threads=False)
        table.validate(full=True)  # otherwise, text that is not UTF-8 would fail later, in an unrelated place
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{subject} is not readable as Parquet: {first_line(error)}") from error
    return table


def read_parquet_schema(path: Path, subject: str) -> pa.Schema:
    """Read the schema of a Parquet file: its columns and metadata."""
    if is_in_parts(path):
        manifest = read_manifest(path, subject)
        if sum(manifest.rows) > MOST_ROWS:
            raise InputError(f"{subject}: expected at most {MOST_ROWS:,} rows, found {sum(manifest.rows):,}")
        schema = read_parquet_schema(part_path(path, 0), subject)
        return schema.with_metadata({METADATA_KEY: json.dumps(plain(manifest.meta)).encode()})
    require_file(path, subject)
    try:
        with pq.ParquetFile(source_of(path)) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{subject} is not readable as Parquet: {first_line(error)}") from error
    if rows > MOST_ROWS:
        raise InputError(f"{subject}: expected at most {MOST_ROWS:,} rows, found {rows:,}")
    return schema


def read_meta(schema: pa.Schema, subject: str) -> Meta:
    """Return Shotproof's metadata in a schema; empty if there is none."""
    raw = (schema.metadata or {}).get(METADATA_KEY)
    if raw is None:
        return {}
    meta: Meta = typed(parse_json(raw, f"{subject}, metadata"), Mapping[str, Any], f"{subject}, metadata") or {}
    return meta


def conform(table: pa.Table, required: Mapping[str, str], subject: str) -> pa.Table:
    """Check that the required columns exist with the right kind of values, and convert them to Shotproof's types."""
    for name, kind in required.items():
        if name not in table.column_names:
            raise InputError(f"{subject} has no column '{name}'{did_you_mean(name, table.column_names)}")
        column = table.column(name)
        if kind == "floats":
            if not pa.types.is_fixed_size_list(column.type) or not pa.types.is_floating(column.type.value_type):
                expected = "a fixed-size list of float32 or float16"
                raise InputError(f"{subject}, column '{name}': expected {expected}, found {column.type}")
            if not column.type.list_size or any(
                chunk.null_count or list_values(chunk).null_count for chunk in column.chunks
            ):
                raise InputError(f"{subject}, column '{name}': expected at least one number in each row, found none")
            continue
        column_type, accepted, expected = _COLUMN_KINDS[kind]
        try:
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            if not any(accepts(column.type) for accepts in accepted):
                raise pa.ArrowInvalid("another type")
            column = column.cast(column_type)
        except pa.ArrowException as error:
            raise InputError(
                f"{subject}, column '{name}': expected {expected}, found {table.column(name).type}"
            ) from error
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def cast_columns(table: pa.Table, schema: pa.Schema, subject: str) -> pa.Table:
    """Cast the columns that a table shares with a schema to the schema's types."""
    for name in [name for name in schema.names if name in table.column_names]:
        kind = schema.field(name).type
        try:
            column = table.column(name).cast(kind)
        except pa.ArrowException as error:
            raise InputError(f"{subject}, column '{name}': expected {kind}: {first_line(error)}") from error
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def find_rows(
    items: pa.Array | pa.ChunkedArray, among: pa.Array | pa.ChunkedArray, lacking: str, hint: str = ""
) -> npt.NDArray[np.int64]:
    """Return the row of each item, [n]. Raise Mismatch if an item is missing.

    Args:
        items: the identifiers to look up
        among: the identifiers of the rows
        lacking: the start of the error message, e.g. `the features lack`
        hint: the end of the error message
    """
    rows = pc.index_in(items, value_set=among)
    if rows.null_count:
        missing, item_count = pc.unique(items.filter(pc.is_null(rows))), pc.count_distinct(items).as_py()
        raise Mismatch(f"{lacking} {len(missing)} of the {item_count} items, e.g. '{missing[0].as_py()}'{hint}")
    row_numbers: npt.NDArray[np.int64] = rows.to_numpy(zero_copy_only=False).astype(np.int64)
    return row_numbers


def require_unique(column: pa.ChunkedArray, subject: str) -> None:
    """Reject nulls, empty strings and repeated values in a column of identifiers."""
    if column.null_count or pc.any(pc.equal(column, "")).as_py():
        raise InputError(f"{subject} has an empty value")
    if pc.count_distinct(column).as_py() != len(column):
        counts = column.value_counts()
        repeated = counts.filter(pc.greater(counts.field("counts"), 1))
        first = repeated.field("values")[0].as_py()
        raise InputError(f"{subject} must be unique: '{first}' occurs {repeated.field('counts')[0].as_py()} times")


def require_no_nulls(column: pa.ChunkedArray, subject: str) -> None:
    """Reject lists that contain a null; a list itself may be null."""
    if whole_column(column).flatten().null_count:
        raise InputError(f"{subject}: expected lists of text, found a list with a null")


def digest(table: pa.Table, columns: Sequence[str]) -> str:
    """Compute a digest of the content of some columns, independent of the table's chunks and encoding."""
    hasher = hashlib.sha256()
    hash_columns(hasher, table, columns)
    return hasher.hexdigest()[:32]


def hash_columns(hasher: Any, table: pa.Table, columns: Sequence[str]) -> None:
    """Feed the content of some columns to a hasher."""
    for name in columns:
        column = table.column(name)
        hasher.update(f"{name}:{table.num_rows};".encode())
        if _is_full(column):
            hash_lists(hasher, column.type.list_size, column.chunks)
        else:
            _hash_array(hasher, whole_column(column))


def hash_lists(hasher: Any, size: int, chunks: Iterable[pa.FixedSizeListArray]) -> None:
    """Feed lists of numbers to a hasher, chunk by chunk, so that not all need to be in memory."""
    hasher.update(str(size).encode())
    for chunk in chunks:
        _hash_array(hasher, list_values(chunk))


def _is_full(column: pa.ChunkedArray) -> bool:
    """Return whether a column has lists of one length and no nulls."""
    lists = pa.types.is_fixed_size_list(column.type)
    return lists and not any(chunk.null_count or list_values(chunk).null_count for chunk in column.chunks)


def _hash_array(hasher: Any, array: Any) -> None:
    """Feed the validity, lengths and values of an array to a hasher."""
    if isinstance(array, pa.ChunkedArray):  # combine_chunks keeps several chunks only if a string array would overflow
        array = pa.concat_arrays([c.cast(pa.large_string()) if pa.types.is_string(c.type) else c for c in array.chunks])
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count:
        hasher.update(np.packbits(array.is_valid().to_numpy(zero_copy_only=False)).tobytes())
    kind = array.type
    if kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        hasher.update(_without_null(pc.binary_length(array), -1).to_numpy(zero_copy_only=False).astype("<i8").data)
        joined = _without_null(array.cast(pa.large_binary()), b"")
        offsets = np.frombuffer(joined.buffers()[1], dtype=np.int64)[joined.offset : joined.offset + len(joined) + 1]
        data = joined.buffers()[2]
        if data is not None and len(offsets):
            hasher.update(memoryview(data)[offsets[0] : offsets[-1]])
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = _without_null(pc.list_value_length(array), -1)
        hasher.update(lengths.to_numpy(zero_copy_only=False).astype("<i8").data)
        _hash_array(hasher, array.flatten())
    elif pa.types.is_fixed_size_list(kind):
        hasher.update(str(kind.list_size).encode())
        _hash_array(hasher, list_values(array))
    elif pa.types.is_null(kind):
        pass
    elif pa.types.is_boolean(kind):
        hasher.update(np.packbits(_without_null(array, False).to_numpy(zero_copy_only=False)).tobytes())
    elif pa.types.is_floating(kind) or pa.types.is_integer(kind):
        values = _without_null(array, 0).to_numpy(zero_copy_only=False)
        width = "<i8" if pa.types.is_integer(kind) else values.dtype.newbyteorder("<")
        hasher.update(np.ascontiguousarray(values.astype(width, copy=False)).data)
    elif pa.types.is_struct(kind):
        for child in array.flatten():
            _hash_array(hasher, child)
    else:
        try:
            text = array.cast(pa.string())
        except pa.ArrowException as error:
            raise InputError(f"columns of type {kind} are not supported") from error
        _hash_array(hasher, text)


def _without_null(array: Any, value: Any) -> Any:
    """Replace nulls by a value. Unlike `fill_null`, this copies nothing if there are none."""
    return pc.fill_null(array, value) if array.null_count else array


def whole_column(column: pa.ChunkedArray) -> Any:
    """Return a column as one array. Unlike `combine_chunks`, this copies nothing if it has a single chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def list_values(array: pa.FixedSizeListArray) -> pa.Array:
    """Return the concatenated values of fixed-size lists. Unlike `flatten`, this copies nothing if no list is null."""
    if array.null_count:
        return array.flatten()
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)
