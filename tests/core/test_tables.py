from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.core.errors import InputError
from shotproof.core.records import CatalogRecord, Record
from shotproof.core.storage.store import Store
from shotproof.core.tables import METADATA_KEY, digest, read_table, require_unique, write_table

NULLABLE = {
    pa.string(): st.none() | st.text("ab", max_size=3),
    pa.binary(): st.none() | st.binary(max_size=3),
    pa.int64(): st.none() | st.integers(-2, 2),
    pa.float32(): st.none() | st.sampled_from([0.0, 0.5, -1.0]),
    pa.bool_(): st.none() | st.booleans(),
    pa.list_(pa.string()): st.none() | st.lists(st.none() | st.text("ab", max_size=2), max_size=3),
    pa.list_(pa.float32(), 2): st.none() | st.lists(st.sampled_from([0.0, 0.5]), min_size=2, max_size=2),
    pa.struct({"x": pa.int64(), "y": pa.string()}): st.none()
    | st.fixed_dictionaries({"x": st.none() | st.integers(0, 1), "y": st.sampled_from("ab")}),
}
kinds_and_values = st.sampled_from(list(NULLABLE)).flatmap(
    lambda kind: st.tuples(st.just(kind), *[st.lists(NULLABLE[kind], max_size=6)] * 2)
)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def digest_of(values: pa.Array | pa.ChunkedArray) -> str:
    return digest(pa.table({"x": values}), ["x"])


@settings(deadline=None)
@given(kinds_and_values)
def test_two_columns_have_the_same_digest_if_and_only_if_their_values_are_equal(case: Any) -> None:
    kind, left, right = case
    same = digest_of(pa.array(left, kind)) == digest_of(pa.array(right, kind))
    assert same == (left == right)


@settings(deadline=None)
@given(kinds_and_values, st.integers(0, 6), st.integers(0, 6))
def test_the_digest_does_not_depend_on_chunks_and_slices(case: Any, cut: int, before: int) -> None:
    kind, values, others = case
    whole = pa.array(values, kind)
    chunked = pa.chunked_array([whole[:cut], whole[cut:]], kind)
    sliced = pa.array(others[:before] + values + others, kind)[len(others[:before]) :][: len(values)]
    assert digest_of(whole) == digest_of(chunked) == digest_of(sliced)


@settings(deadline=None)
@given(st.lists(NULLABLE[pa.string()], max_size=6))
def test_the_digest_does_not_depend_on_the_encoding_of_text(values: list[str | None]) -> None:
    plain = pa.array(values, pa.string())
    assert digest_of(plain) == digest_of(plain.dictionary_encode()) == digest_of(plain.cast(pa.large_string()))


def test_the_digest_names_its_columns_and_their_order() -> None:
    table = pa.table({"x": ["a"], "y": ["b"]})
    renamed = table.rename_columns(["y", "x"])
    digests = {digest(table, ["x", "y"]), digest(table, ["y", "x"]), digest(renamed, ["x", "y"]), digest(table, ["x"])}
    assert len(digests) == 4


def test_a_column_that_cannot_be_digested_is_an_input_error() -> None:
    with pytest.raises(InputError, match="duration"):
        digest_of(pa.array([[1]], pa.list_view(pa.duration("s"))))


def test_a_table_and_its_metadata_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "table.parquet"
    table = pa.table({"item": ["a", "ü"], "attributes": [["x"], None]})
    write_table(path, table, "attributes", CatalogRecord("naïve ✓", notes={"seed": 3}), "1f2e")
    read, record = read_table(path, "attributes", {"item": "string", "attributes": "strings"}, CatalogRecord)
    assert read.to_pydict() == table.to_pydict()
    assert (record.name, record.notes, record.stated_digest) == ("naïve ✓", {"seed": 3}, "1f2e")


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    table = pa.table({"item": [f"item{i}" for i in range(1000)]})
    for name, notes in [("a", {"b": 1, "a": 2}), ("b", {"a": 2, "b": 1})]:
        write_table(tmp_path / name, table, "catalog", CatalogRecord(notes=notes))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# A limit on the size of files stands for the full disk: the write fails halfway, with an error of the system.
FULL_DISK = """
import sys, resource
from pathlib import Path
import numpy as np, pyarrow as pa
from shotproof.core.errors import WriteFailed
from shotproof.core.records import Record
from shotproof.core.tables import write_table
from shotproof.core.storage.whole_files import write_text

path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for write in (
    lambda: write_text(path, "x" * 100_000),
    lambda: write_table(path, pa.table({"x": np.random.default_rng(0).random(100_000)}), "catalog", Record()),
):
    try:
        write()
    except WriteFailed as error:
        print(error)
"""


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    path.write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert [line.startswith(f"cannot write {path}: ") for line in done.stdout.splitlines()] == [True, True]
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["table.parquet"]


def write_raw(path: Path, table: pa.Table, meta: bytes) -> None:
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: meta}), path)


ITEMS = pa.table({"item": ["a"]})


def test_a_missing_file_is_named_with_the_nearest(tmp_path: Path) -> None:
    write_table(tmp_path / "catalog.parquet", ITEMS, "catalog", Record())
    with pytest.raises(InputError, match=r"catalogue\.parquet does not exist: did you mean 'catalog\.parquet'"):
        read_table(tmp_path / "catalogue.parquet", "catalog", {}, Record)
    with pytest.raises(InputError, match="does not exist"):
        read_table(tmp_path / "no" / "folder.parquet", "catalog", {}, Record)


@pytest.mark.parametrize("content", [b"", b"item,label\n", b"PAR1" + bytes(100) + b"PAR1"])
def test_a_file_that_is_not_parquet_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(InputError, match="not readable as Parquet"):
        read_table(tmp_path / "x.parquet", "catalog", {}, Record)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=3), st.integers(1, 2000))
def test_a_damaged_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[int, int]], end: int
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "x.parquet"
    write_table(path, pa.table({"item": [f"i{i}" for i in range(20)]}), "catalog", Record())
    content = bytearray(path.read_bytes())
    for position, value in flips:
        content[position % len(content)] = value
    path.write_bytes(content[:end])
    try:
        rows = read_table(path, "catalog", {"item": "string"}, Record)[0].to_pylist()
    except InputError:
        return
    assert all(isinstance(row["item"], str | None) for row in rows)


def test_metadata_of_another_kind_or_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_table(path, ITEMS, "tasks", Record())
    with pytest.raises(InputError, match=r"expected a file of kind .catalog., found kind .tasks."):
        read_table(path, "catalog", {}, Record)
    for newer in (99, "new", 0):
        write_raw(path, ITEMS, json.dumps({"format": newer}).encode())
        with pytest.raises(InputError, match="format"):
            read_table(path, "catalog", {}, Record)


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (b"not json", "metadata is not .* JSON"),
        (b"\xff", "metadata is not .* JSON"),
        (b"[" * 1_000, "metadata is not .* JSON: .* deeper than 100"),
        (b'{"name": "\\ud800"}', "metadata is not .* JSON"),
        (b"[1]", r"metadata: expected a table, found \[1\]"),
        (b'{"format": 2, "name": 5}', "metadata, name: expected text, found 5"),
        (b'{"sources": 5}', "metadata, sources: expected a table, found 5"),
    ],
)
def test_metadata_of_another_type_is_told_with_the_file_and_the_place(
    tmp_path: Path, meta: bytes, message: str
) -> None:
    write_raw(tmp_path / "x.parquet", ITEMS, meta)
    with pytest.raises(InputError, match=f"^catalog file .*x.parquet, {message}"):
        read_table(tmp_path / "x.parquet", "catalog", {"item": "string"}, Record)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("string", pa.array([1])),
        ("integer", pa.array(["1"])),
        ("strings", pa.array(["a"])),
        ("floats", pa.array([[1.0]])),
        ("strings", pa.array([[{"x": 1}]])),
    ],
)
def test_columns_of_the_wrong_kind_are_named(tmp_path: Path, kind: str, values: pa.Array) -> None:
    pq.write_table(pa.table({"value": values}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=f"'value': expected .*, found {str(values.type)[:4]}"):
        read_table(tmp_path / "x.parquet", "test", {"value": kind}, Record)
    with pytest.raises(InputError, match="has no column 'values': did you mean 'value'"):
        read_table(tmp_path / "x.parquet", "test", {"values": kind}, Record)


def test_columns_come_with_our_types_whatever_their_encoding(tmp_path: Path) -> None:
    columns = {
        "text": pa.array(["a", None]).dictionary_encode(),
        "count": pa.array([1, 2], pa.int8()),
        "words": pa.array([["a"], []], pa.large_list(pa.large_string())),
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    required = {"text": "string", "count": "integer", "words": "strings"}
    table, _ = read_table(tmp_path / "x.parquet", "test", required, Record)
    assert table.schema.types == [pa.string(), pa.int64(), pa.list_(pa.string())]


@pytest.mark.parametrize(
    ("values", "message"), [(["a", None], "empty"), (["a", ""], "empty"), (["b", "a", "a"], "'a' occurs 2 times")]
)
def test_identifiers_are_unique_and_not_empty(values: list[str | None], message: str) -> None:
    with pytest.raises(InputError, match=message):
        require_unique(pa.chunked_array([pa.array(values, pa.string())]), "column 'item'")


READING = """
import os, resource
from pathlib import Path
import pyarrow as pa
from shotproof.core.storage.store import Store
from shotproof.core.tables import read_parquet

threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
print(read_parquet(Path("x.parquet"), "x").num_rows, threads() - before)
print(Store(Path("store")).find(pa.array(["a"])).num_rows, threads() - before)

taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + 6 * 2**20, resource.RLIM_INFINITY))
for read in (lambda: read_parquet(Path("x.parquet"), "x"), lambda: Store(Path("store")).find(pa.array(["a"]))):
    try:
        read()
    except MemoryError:
        print("memory ran out")
"""


def test_files_are_read_by_one_thread_and_not_where_memory_runs_out(tmp_path: Path) -> None:
    table = pa.table({"key": ["a", "b"], "value": ["c", "d"]})
    write_table(tmp_path / "x.parquet", table, "catalog", Record())
    segment = Store(tmp_path / "store").add(table)
    command = [sys.executable, "-c", READING]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["2 0", "1 0", "memory ran out", "memory ran out"]
    assert segment is not None
    assert segment.exists()  # it is not taken for a broken one
