"""Parquet files whose columns or metadata are not what they should be."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzzing.choices import Choices
from tests.fuzzing.values import LONG, changed, json_value, to_json

KEY = b"shotproof"
_LOOSE = {
    "summary": ("classes_left_out", "tasks_in_all"),
    "sampler": ("name", "options"),
}
_STRANGE: tuple[Any, ...] = (
    lambda n: pa.nulls(n),
    lambda n: pa.array([True] * n),
    lambda n: pa.array(range(n), pa.int8()),
    lambda n: pa.array([2**40] * n, pa.int64()),
    lambda n: pa.array([2**64 - 1] * n, pa.uint64()),
    lambda n: pa.array([-1] * n, pa.int64()),
    lambda n: pa.array([0.5] * n),
    lambda n: pa.array([float("nan")] * n),
    lambda n: pa.array([""] * n),
    lambda n: pa.array(["x"] * n),
    lambda n: pa.array([None, *["x"] * (n - 1)][:n], pa.string()),
    lambda n: pa.array(["a\0b"] * n),
    lambda n: pa.array([f"{'y' * LONG}{row}" for row in range(n)]),
    lambda n: pa.array([f"é{row}" for row in range(n)], pa.large_string()),
    lambda n: pa.array([b"\xff\xfe"] * n, pa.binary()),
    lambda n: pa.array([f"{row}" for row in range(n)]).dictionary_encode(),
    lambda n: pa.array([None] * n, pa.dictionary(pa.int8(), pa.string())),
    lambda n: pa.array(range(n), pa.int32()).dictionary_encode(),
    lambda n: pa.array([[None]] * n, pa.list_(pa.null())),
    lambda n: pa.array([[]] * n, pa.list_(pa.string())),
    lambda n: pa.array([["x", None]] * n),
    lambda n: pa.array([["x", "x"]] * n, pa.large_list(pa.large_string())),
    lambda n: pa.array([[1, 2]] * n),
    lambda n: pa.array([[["x"]]] * n),
    lambda n: pa.array([[("a", "b")]] * n, pa.map_(pa.string(), pa.string())),
    lambda n: pa.array([["a", "b"]] * n, pa.list_(pa.string(), 2)),
    lambda n: pa.array([[1.0, 2.0]] * n, pa.list_(pa.float32(), 2)),
    lambda n: pa.array([[1.0, None]] * n, pa.list_(pa.float16() if n < 0 else pa.float64(), 2)),
    lambda n: pa.array([None, *[[1.0]] * (n - 1)][:n], pa.list_(pa.float32(), 1)),
    lambda n: pa.array([[]] * n, pa.list_(pa.float32(), 0)),
    lambda n: pa.array([[float("inf")]] * n, pa.list_(pa.float32(), 1)),
    lambda n: pa.array([{"a": 1}] * n),
    lambda n: pa.array([0] * n, pa.timestamp("us")),
    lambda n: pa.array([0] * n, pa.date32()),
    lambda n: pa.array([1] * n).cast(pa.decimal128(38, 3)),
    lambda n: pa.array([0] * n, pa.duration("s")),
)
PATHS = (
    "/dev/zero",
    "/dev/full",
    "/dev/null",
    "/dev/urandom",
    "pipe",
    "a\0b",
    ".",
    "",
    "missing",
    "z" * LONG,
    "/" + "y/" * 3_000,
)


def changed_table(content: bytes, choices: Choices) -> bytes:
    """A Parquet file with another column, row or metadata."""
    table = pq.read_table(io.BytesIO(content))
    meta = dict(table.schema.metadata or {})
    action = choices.below(12)
    if action < 4:
        return written(table, changed_meta(meta, choices))
    lists = [name for name in table.column_names if pa.types.is_list(table.schema.field(name).type)]
    if action >= 10 and lists:
        return written(_other_list(table, choices.pick(lists), choices), meta)
    name = choices.pick(table.column_names)
    place = table.column_names.index(name)
    if action < 7:
        table = table.set_column(place, name, choices.pick(_STRANGE)(table.num_rows))
    elif action == 7:
        table = _other_columns(table, name, choices)
    elif action == 8:
        table = _other_rows(table, choices)
    else:
        table = _other_cell(table, place, choices)
    return written(table, meta)


def changed_meta(meta: dict[bytes, bytes], choices: Choices) -> dict[bytes, bytes]:
    """Metadata, whose JSON holds other types, or is none."""
    document = json.loads(meta.get(KEY, b"{}"))
    keys = ("format", "kind", "made_by", "from", "shape", "summary", "path_columns", "name", "digest", "sources", "mix")
    if choices.below(12) == 0:
        return {**meta, KEY: choices.pick((b"", b"{", b"\xff", b"null", b'"x"', b"[" * 100_000, b"9" * 5_000))}
    if choices.below(4) == 0:
        document["format"] = 1
        document.setdefault("made_by", {"layout": "x", "sampler": "random", "encoder": "pixels > l2", "way": 5})
        document.setdefault("from", {"catalog": "0" * 32})
    for part, own in _LOOSE.items():  # tables of any values, of which some are used
        if isinstance(document.get(part), dict) and choices.below(4) == 0:
            document[part] = changed(document[part], choices, json_value, own)
    for _ in range(1 + choices.below(2)):
        if isinstance(document, dict):
            document = changed(document, choices, json_value, keys)
    return {**meta, KEY: to_json(document).encode("utf-8", "surrogatepass")}


def with_paths(content: bytes, choices: Choices) -> bytes:
    """A catalog whose first items lie at strange places."""
    table = pq.read_table(io.BytesIO(content))
    column = choices.pick([name for name in ("path", "foreground", "background") if name in table.column_names])
    paths = table.column(column).to_pylist()
    paths[choices.below(len(paths))] = choices.pick(PATHS)
    return written(table.set_column(table.column_names.index(column), column, pa.array(paths)), table.schema.metadata)


def written(table: pa.Table, meta: dict[bytes, bytes] | None) -> bytes:
    """The bytes of a Parquet file; of what Parquet cannot hold, those of one without the columns in question."""
    buffer = io.BytesIO()
    try:
        pq.write_table(table.replace_schema_metadata(meta), buffer, compression="zstd")
    except pa.ArrowException:
        buffer = io.BytesIO()
        kept = [name for name in table.column_names if not pa.types.is_nested(table.schema.field(name).type)]
        pq.write_table(table.select(kept).replace_schema_metadata(meta), buffer)
    return buffer.getvalue()


def _other_columns(table: pa.Table, name: str, choices: Choices) -> pa.Table:
    action = choices.below(4)
    if action == 0:
        return table.drop_columns([name])
    if action == 1:
        return table.append_column(name, table.column(name))
    if action == 2:
        return table.rename_columns(
            [
                column_name if column_name != name else choices.pick(("", "x", "context", "a\0"))
                for column_name in table.column_names
            ]
        )
    return table.append_column(
        choices.pick(("context", "source", "name", "missed", "class_text", "shape", "x" * LONG)),
        choices.pick(_STRANGE)(table.num_rows),
    )


def _other_rows(table: pa.Table, choices: Choices) -> pa.Table:
    count = table.num_rows
    rows = choices.pick(
        (
            np.arange(0),
            np.arange(1),
            np.arange(count)[::-1],
            np.repeat(np.arange(count), 2),
            np.append(np.arange(count), choices.below(count)),
            np.delete(np.arange(count), choices.below(count)),
        )
    )
    return table.take(pa.array(rows))


def _other_list(table: pa.Table, name: str, choices: Choices) -> pa.Table:
    """One list with fewer, more, repeated or strange values."""
    place, kind = table.column_names.index(name), table.schema.field(name).type
    values = table.column(place).to_pylist()
    row = choices.below(len(values))
    own, other = values[row] or [], values[choices.below(len(values))] or []
    strange = "x" if pa.types.is_string(kind.value_type) else choices.pick((-1, 0, 2**15 - 1))
    values[row] = choices.pick(
        ([], own[:1], own[1:], own + own, own + other, other, [*own, strange], [*own, None], own[::-1], None)
    )
    return table.set_column(place, name, pa.array(values, kind))


def _other_cell(table: pa.Table, place: int, choices: Choices) -> pa.Table:
    """One cell, with the type of its column where the value has it."""
    kind, values = table.schema.field(place).type, table.column(place).to_pylist()
    cell = choices.pick(
        (None, "", 0, -1, 2**15, 2**31 - 1, 2**31, "a\0b", "x" * LONG, [], [None], ["", "x"], [0], True, 1.5, "../..")
    )
    values[choices.below(len(values))] = cell
    for one in (kind, None):
        try:
            return table.set_column(place, table.column_names[place], pa.array(values, one))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
    return table
