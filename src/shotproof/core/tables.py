"""Reading and writing Shotproof's files: Parquet with zstd, whole or not at all, with a digest of the content."""

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
SHOWN = 5  # rows of a description in a notebook
LONGEST = 60  # characters of a cell there

# What a column of a kind becomes, and the types that it may have in a file.
_COLUMN_KINDS = {
    "string": (pa.string(), (pa.types.is_string, pa.types.is_large_string, pa.types.is_null)),
    "integer": (pa.int64(), (pa.types.is_integer,)),
    "number": (pa.float64(), (pa.types.is_floating, pa.types.is_integer, pa.types.is_null)),
    "strings": (pa.list_(pa.string()), (pa.types.is_list, pa.types.is_large_list)),
}


class Tabular:
    """A table with a record: its file, to and from pandas, and how it shows itself.

    KIND: what its files are called
    REQUIRED: the columns that they must have, and that its digest is of, each with the kind of its values
    RECORD: what their metadata becomes
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
            InputError: it is none; the message has the file and the place.
        """
        table, record = read_table(Path(path), cls.KIND, cls.REQUIRED, cls.RECORD)
        with error_prefix(f"{path}: "):
            return cls(table, record)  # type: ignore[call-arg]

    def write(self, path: str | Path) -> None:
        """Write a file of this kind, whole or not at all."""
        write_table(Path(path), self.table, self.KIND, self.record, self.digest)

    @cached_property
    def digest(self) -> str:
        """The digest of the content."""
        return digest(self.table, list(self.REQUIRED))

    def to_pandas(self) -> pd.DataFrame:
        """The table as a data frame.

        Raises:
            MissingExtra: pandas is not installed.
        """
        require_pandas()
        return self.table.to_pandas()

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame) -> Self:
        """From a data frame that has the columns of this kind of file; its index is left out.

        Raises:
            InputError: a column is missing, or its values are of another type.
        """
        try:
            table = pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError) as error:  # half a surrogate pair is a ValueError
            raise InputError(f"the data frame cannot be read: {error}") from error
        return cls(table.replace_schema_metadata(None))  # type: ignore[call-arg]

    def describe(self) -> str:
        """What it is, in one line."""
        return counted(self.table.num_rows, "row")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.describe()}>"

    def _repr_html_(self) -> str:
        names = self.table.column_names
        rows = self.table.slice(0, SHOWN).to_pylist()
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(f'<td>{_cell(row[name])}</td>' for name in names)}</tr>" for row in rows)
        return f"<p>{escape(repr(self))}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def require_pandas() -> Any:
    """The module pandas; MissingExtra where it is not installed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtra("a data frame", "pandas") from error
    return pd


def _cell(value: Any) -> str:
    text = str(value)
    return escape(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


def check_output(path: Path, *, folder: bool = False) -> None:
    """Refuse, before anything is computed, a place where nothing can be written.

    Args:
        path: of the file, or of the folder
        folder: whether it is to be a folder

    Raises:
        InputError: there is a folder of the file's name, or a file where a folder is to be.
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
        raise InputError(f"{path} is a folder, expected the name of a file")
    for place in [*([path] if folder else []), *path.parents]:
        if place.is_file():
            raise InputError(f"{place} is a file, expected a folder")


def check_replaceable(folder: Path, marks: Sequence[str], earlier: str) -> None:
    """Refuse, before anything is computed, to replace a folder that holds something else.

    Args:
        folder: to be written
        marks: files that are in every folder of the kind
        earlier: what such a folder is called, e.g. `an earlier site`

    Raises:
        InputError: it cannot be written, or holds other files.
    """
    check_output(folder, folder=True)
    if folder.is_dir() and any(folder.iterdir()) and not all((folder / name).is_file() for name in marks):
        raise InputError(f"{folder} holds other files: expected a new folder, an empty one, or {earlier}")


def write_table(
    path: Path, table: pa.Table, kind: str, record: Record, digest: str | None = None, group_rows: int | None = None
) -> None:
    """Write a Parquet file with a record as its `shotproof` metadata; the same table and record give the same bytes.

    Args:
        path: where to; of a name that ends in `.parts`, a folder of parts
        table: the rows
        kind: of file, e.g. `tasks`
        record: what it was made from
        digest: of its content
        group_rows: rows per row group, or part (default: a million)
    """
    meta = stamped(kind, record, digest)
    if is_in_parts(path):
        return _write_parts(path, table, meta, group_rows or ROWS_PER_PART)
    text = json.dumps(meta, sort_keys=True, ensure_ascii=False)
    stored = table.replace_schema_metadata({METADATA_KEY: encoded(text, path)})
    with whole_file(path) as temporary:
        pq.write_table(
            stored,
            temporary,
            compression="zstd",
            # Numbers hardly repeat: looking for those that do takes longer than all else.
            use_dictionary=[field.name for field in table.schema if not pa.types.is_fixed_size_list(field.type)],
            row_group_size=group_rows,
            write_page_checksum=True,
        )


def stamped(kind: str, record: Record, digest: str | None) -> Meta:
    """The metadata of a file."""
    return {"format": FORMAT, "shotproof": __version__, "kind": kind, "digest": digest, **record.to_meta()}


def _write_parts(folder: Path, table: pa.Table, meta: Meta, rows: int) -> None:
    """Write a table in parts; those that are there already, of the same content, are left as they are."""
    starts = range(0, max(len(table), 1), rows)
    mark_incomplete(folder)
    for number, start in enumerate(starts):
        part, path = table.slice(start, rows), part_path(folder, number)
        own = digest(part, part.column_names)
        with contextlib.suppress(InputError):
            if read_meta(read_parquet_schema(path, f"part {path}"), f"part {path}").get("digest") == own:
                continue
        write_table(path, part, meta["kind"], Record(), own)
    write_manifest(folder, [len(table.slice(start, rows)) for start in starts], meta)


def read_table(
    path: Path, kind: str, required: Mapping[str, str], record: type[R], columns: Sequence[str] | None = None
) -> tuple[pa.Table, R]:
    """Read a Parquet file and check that it is a `kind` file: where its columns and its metadata become typed.

    A file without Shotproof's metadata is accepted if its columns are right.

    Args:
        path: of the file
        kind: what it should hold, e.g. `tasks`
        required: columns, each `string`, `integer`, `strings` (list of string) or `floats` (fixed-size list)
        record: what its metadata becomes
        columns: those to read; None: all

    Returns:
        The table, whose required columns have our own types, and the record.

    Raises:
        InputError: it is no such file; the message has the file, the place, what was expected and what was found.
    """
    subject = f"{kind} file {path}"
    table = read_parquet(path, subject, columns)
    meta = read_meta(table.schema, subject)
    with error_prefix(f"{subject}, metadata, "):
        header: Header = typed(meta, Header)
    if header.format not in (None, FORMAT):
        raise InputError(f"{subject} has format {header.format}; this version reads {FORMAT}")
    if header.kind not in (None, kind):
        raise InputError(f"{path} is no {kind} file but one of kind '{header.kind}'")
    with error_prefix(f"{subject}, metadata, "):
        read = record.read(meta)
    return conform(table, required, subject), read


def read_parquet(path: Path, subject: str, columns: Sequence[str] | None = None) -> pa.Table:
    """A Parquet file, whose text is UTF-8 and whose columns have different names.

    Arrow reads it in this thread alone, as everywhere: where there is no memory for the stacks of its others, it would
    wait for them for ever. On files of a million rows they gained nothing.
    """
    if is_in_parts(path):
        paths, schema = part_paths(path, subject), read_parquet_schema(path, subject)
        try:
            tables = [read_parquet(one, f"{subject}, {one.name}", columns) for one in paths]
            joined = pa.concat_tables(tables)
        except pa.ArrowException as error:
            raise InputError(f"{subject}: its parts have different columns: {first_line(error)}") from error
        for one, table, rows in zip(paths, tables, read_manifest(path, subject).rows, strict=True):
            if len(table) != rows:
                raise InputError(f"{subject}, {one.name}: expected {rows:,} rows, found {len(table):,}")
        return joined.replace_schema_metadata(schema.metadata)
    schema = read_parquet_schema(path, subject)
    wanted = schema.names if columns is None else list(columns)
    twice = next((name for name in wanted if wanted.count(name) > 1 or schema.names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{subject} has {schema.names.count(twice)} columns named '{twice}', expected each once")
    try:
        with pq.ParquetFile(source_of(path), pre_buffer=False, page_checksum_verification=True) as file:
            table = file.read(columns, use_threads=False)
        table.validate(full=True)  # text that is not UTF-8 would fail later, and anywhere
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{subject} is not readable as Parquet: {first_line(error)}") from error
    return table


def read_parquet_schema(path: Path, subject: str) -> pa.Schema:
    """The columns and metadata of a Parquet file."""
    if is_in_parts(path):
        whole = read_manifest(path, subject)
        if sum(whole.rows) > MOST_ROWS:
            raise InputError(f"{subject}: expected at most {MOST_ROWS:,} rows, found {sum(whole.rows):,}")
        schema = read_parquet_schema(part_path(path, 0), subject)
        return schema.with_metadata({METADATA_KEY: json.dumps(plain(whole.meta)).encode()})
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
    """Shotproof's metadata of a schema; empty when there is none."""
    raw = (schema.metadata or {}).get(METADATA_KEY)
    if raw is None:
        return {}
    meta: Meta = typed(parse_json(raw, f"{subject}, metadata"), Mapping[str, Any], f"{subject}, metadata") or {}
    return meta


def conform(table: pa.Table, required: Mapping[str, str], subject: str) -> pa.Table:
    """Check that the required columns are there, with the right kind of values, and give them our own types."""
    for name, kind in required.items():
        if name not in table.column_names:
            raise InputError(f"{subject} has no column '{name}'{did_you_mean(name, table.column_names)}")
        column = table.column(name)
        if kind == "floats":
            if not pa.types.is_fixed_size_list(column.type) or not pa.types.is_floating(column.type.value_type):
                expected = "a fixed-size list of float32 or float16"
                raise InputError(f"{subject}, column '{name}': expected {expected}, found {column.type}")
            if not column.type.list_size or any(one.null_count or list_values(one).null_count for one in column.chunks):
                raise InputError(f"{subject}, column '{name}': expected at least one number in each row, found none")
            continue
        wanted, accepted = _COLUMN_KINDS[kind]
        try:
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            if not any(accepts(column.type) for accepts in accepted):
                raise pa.ArrowInvalid("another type")
            column = column.cast(wanted)
        except pa.ArrowException as error:
            raise InputError(
                f"{subject}, column '{name}': expected {wanted}, found {table.column(name).type}"
            ) from error
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def cast_columns(table: pa.Table, schema: pa.Schema, subject: str) -> pa.Table:
    """The table with the columns that a schema names, where it has them, in the schema's types."""
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
    """The row of each item, [n]; Mismatch where one is not `among` the rows.

    Args:
        items: identifiers to look up
        among: the identifiers of the rows
        lacking: the beginning of the message, e.g. `the features lack`
        hint: its end
    """
    rows = pc.index_in(items, value_set=among)
    if rows.null_count:
        missing, wanted = pc.unique(items.filter(pc.is_null(rows))), pc.count_distinct(items).as_py()
        raise Mismatch(f"{lacking} {len(missing)} of the {wanted} items, e.g. '{missing[0].as_py()}'{hint}")
    found: npt.NDArray[np.int64] = rows.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def require_unique(column: pa.ChunkedArray, subject: str) -> None:
    """Refuse nulls, empty strings and repeated values in a column of identifiers."""
    if column.null_count or pc.any(pc.equal(column, "")).as_py():
        raise InputError(f"{subject} has an empty value")
    if pc.count_distinct(column).as_py() != len(column):
        counts = column.value_counts()
        repeated = counts.filter(pc.greater(counts.field("counts"), 1))
        first = repeated.field("values")[0].as_py()
        raise InputError(f"{subject} must be unique: '{first}' occurs {repeated.field('counts')[0].as_py()} times")


def require_no_nulls(column: pa.ChunkedArray, subject: str) -> None:
    """Refuse lists in which a value is null; a list may be null itself."""
    if whole_column(column).flatten().null_count:
        raise InputError(f"{subject}: expected lists of text, found a null in one")


def digest(table: pa.Table, columns: Sequence[str]) -> str:
    """A digest of the content of some columns, the same whatever the chunking or encoding of the table."""
    hasher = hashlib.sha256()
    hash_columns(hasher, table, columns)
    return hasher.hexdigest()[:32]


def hash_columns(hasher: Any, table: pa.Table, columns: Sequence[str]) -> None:
    """Feed the content of some columns to the hasher."""
    for name in columns:
        column = table.column(name)
        hasher.update(f"{name}:{table.num_rows};".encode())
        if _is_full(column):
            hash_lists(hasher, column.type.list_size, column.chunks)
        else:
            _hash_array(hasher, whole_column(column))


def hash_lists(hasher: Any, size: int, chunks: Iterable[pa.FixedSizeListArray]) -> None:
    """Feed lists of numbers to the hasher, chunk by chunk: they need not be in memory together."""
    hasher.update(str(size).encode())
    for chunk in chunks:
        _hash_array(hasher, list_values(chunk))


def _is_full(column: pa.ChunkedArray) -> bool:
    """Whether a column holds lists of one length, with no null."""
    lists = pa.types.is_fixed_size_list(column.type)
    return lists and not any(chunk.null_count or list_values(chunk).null_count for chunk in column.chunks)


def _hash_array(hasher: Any, array: Any) -> None:
    """Feed validity, lengths and values of an array to the hasher."""
    if isinstance(array, pa.ChunkedArray):  # combine_chunks keeps chunks only where a string array would overflow
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
    """The array with a value for each null; not copied, as `fill_null` would, where there is none."""
    return pc.fill_null(array, value) if array.null_count else array


def whole_column(column: pa.ChunkedArray) -> Any:
    """A column as one array; not copied, as `combine_chunks` would, where it is one already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def list_values(array: pa.FixedSizeListArray) -> pa.Array:
    """The values of fixed-size lists end to end; not copied, as `flatten` would, where no list is null."""
    if array.null_count:
        return array.flatten()
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)
