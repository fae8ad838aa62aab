"""Cache of computed values by key, in immutable Parquet files that are written atomically.

Features are cached by the digest of their file, in a folder per encoder, so a moved, renamed or copied file is found
again. The digests themselves are cached by a file's path, size and modification time.

Processes need no locks. A segment is named after the digest of its content, which is checked on every read, and never
changes; merging writes the new segment before it removes the old ones. At worst, a value is computed twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shotproof.core.errors import InputError, UnreadableItem
from shotproof.core.plain_values import typed
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.files import file_sha256, find_all, read_json, require_headroom
from shotproof.core.storage.places import FileInfo, url_of
from shotproof.core.storage.whole_files import whole_file, write_text
from shotproof.core.tables import digest

logger = logging.getLogger("shotproof")

MANY_SEGMENTS = 32
FULL_SEGMENT = 32 * 2**20  # bytes; segments of this size are not merged further
FLUSH_SECONDS = 20.0
SHAPE_FILE = "shape.json"
COLUMNS = ("key", "value")
FILES_PER_CHUNK = 64

OnError = Literal["raise", "skip"]


@dataclass(frozen=True)
class StoredShape:
    """Content of the shape file: the shape of all values of a store, and its digest."""

    shape: tuple[int, ...]
    digest: str


class Store:
    """Values by key, in a folder of segments: tables with the columns `key` (string) and `value` (of one type)."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder  # None: nothing is stored
        self._shape: list[int] | None = None

    def find(self, keys: pa.Array) -> pa.Table:
        """Return the rows of those keys that are stored; a key may occur more than once."""
        tables = [table for path in self._paths() if (table := _read(path, keys)) is not None]
        return pa.concat_tables(tables) if tables else pa.table({"key": pa.array([], pa.string()), "value": []})

    def lookup(self, keys: Iterable[str | None]) -> dict[str, Any]:
        """Return the values of those keys that are stored."""
        rows = self.find(pa.array(sorted({key for key in keys if key}), pa.string()))
        return dict(zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True))

    def add(self, table: pa.Table) -> Path | None:
        """Write a segment, and return its path."""
        if self.folder is None:
            return None
        path = self.folder / f"{digest(table, COLUMNS)}.parquet"
        with whole_file(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")
        return path

    @property
    def shape(self) -> list[int] | None:
        """Return the shape of each value, as passed to `keep_shape`, if values are maps; they are stored flat."""
        if self._shape is None and self.folder is not None:
            with contextlib.suppress(InputError):  # if it is missing or damaged, the values are computed again
                stored: StoredShape = typed(read_json(self.folder / SHAPE_FILE, SHAPE_FILE) or {}, StoredShape)
                self._shape = list(stored.shape) if stored.digest == _shape_digest(stored.shape) else None
        return self._shape

    def keep_shape(self, shape: Sequence[int]) -> None:
        """Store the shape of all values."""
        self._shape = list(shape)
        if self.folder is not None:
            stored = StoredShape(tuple(shape), _shape_digest(shape))
            write_text(self.folder / SHAPE_FILE, json.dumps(asdict(stored)))

    def merge(self) -> None:
        """Merge small segments into large ones if there are many."""
        sizes: dict[Path, int] = {}
        for path in self._paths():
            with contextlib.suppress(FileNotFoundError):  # merged by another process
                sizes[path] = path.stat().st_size
        small = [path for path, size in sizes.items() if size < FULL_SEGMENT]
        if len(small) <= MANY_SEGMENTS:
            return
        group: list[Path] = []
        for path in small:
            group.append(path)
            if sum(sizes[member] for member in group) >= FULL_SEGMENT or path == small[-1]:
                self._merge(group)
                group = []

    def _merge(self, group: Sequence[Path]) -> None:
        tables = [table for path in group if (table := _read(path, None)) is not None]
        if not tables:
            return
        table = pa.concat_tables(tables)
        _, first = np.unique(table.column("key").to_numpy(), return_index=True)
        merged = self.add(table.take(pa.array(np.sort(first))))
        for path in group:
            if path != merged:
                path.unlink(missing_ok=True)

    def _paths(self) -> Iterator[Path]:
        """Yield all segments, including those that other processes add by merging in the meantime."""
        visited: set[Path] = set()
        while self.folder is not None and (new := set(self.folder.glob("*.parquet")) - visited):
            visited |= new
            yield from sorted(new)


class Writer:
    """Buffered writer of a store: it writes a segment every so many rows or seconds, and the rest at the end."""

    def __init__(self, store: Store, every: int) -> None:
        self.store = store
        self.every = every
        self._pending: list[pa.Table] = []
        self._rows = 0
        self._flushed = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def add(self, table: pa.Table) -> None:
        """Add rows of `key` and `value`."""
        self._pending.append(table)
        self._rows += table.num_rows
        if self._rows >= self.every or time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._flush()

    def add_value(self, key: str, value: str | float) -> None:
        """Add one value."""
        self.add(pa.table({"key": [key], "value": [value]}))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flush()
        if error is None:
            self.store.merge()

    def _flush(self) -> None:
        if self._rows:
            self.store.add(pa.concat_tables(self._pending).combine_chunks())
        self._pending = []
        self._rows = 0
        self._flushed = time.monotonic()


def feature_store(cache: Path | None, fingerprint: str) -> Store:
    """Return the store for one encoder's features; its fingerprint states everything that they depend on."""
    if cache is None:
        return Store(None)
    kind = "".join(re.findall(r"^\w+", fingerprint))[:40]
    return Store(cache / "features" / f"{kind}-{hashlib.sha256(fingerprint.encode()).hexdigest()[:32]}")


def file_digests(paths: Sequence[Path], runtime: Runtime, on_error: OnError = "raise") -> pa.Array:
    """Compute the SHA-256 of each file's content. Files that have not changed since they were last read are not read.

    Args:
        paths: the files
        runtime: runtime whose cache stores the digests
        on_error: what to do if a file cannot be read: `raise`, or `skip`, which leaves its digest null

    Returns:
        The digests, [n].

    Raises:
        UnreadableItem: a file cannot be read.
    """
    store = Store(runtime.cache / "digests" if runtime.cache else None)
    settled_before = time.time_ns() - 2 * 10**9
    infos = find_all(paths)
    keys = [_file_key(path, info) for path, info in zip(paths, infos, strict=True)]
    digests: dict[Any, str | None] = store.lookup(keys)
    unread = [row for row, key in enumerate(keys) if key is None or key not in digests]
    with Writer(store, every=16_384) as writer:
        results = runtime.map(
            _file_digest, [paths[row] for row in unread], title="reading files", chunk=FILES_PER_CHUNK
        )
        for row, result in zip(unread, results, strict=True):
            if isinstance(result, UnreadableItem) and on_error == "raise":
                raise result
            digests[keys[row]] = value = None if isinstance(result, UnreadableItem) else result
            # A file modified a moment ago may change again without a new time or size, so its key is not trusted.
            if (
                value
                and (key := keys[row])
                and (info := infos[row])
                and (info.modified or settled_before) < settled_before
            ):
                writer.add_value(key, value)
    return pa.array([digests[key] for key in keys], pa.string())


def _read(path: Path, keys: pa.Array | None) -> pa.Table | None:
    """Read a segment's rows, of these keys or all; None if there are none or the segment cannot be read."""
    require_headroom()
    try:
        with pq.ParquetFile(path, pre_buffer=False) as segment:
            segment_keys = segment.read(["key"], use_threads=False).column("key")
            is_requested = pc.is_in(segment_keys, value_set=keys) if keys is not None else None
            if is_requested is not None and not pc.any(is_requested).as_py():
                return None
            values = segment.read(["value"], use_threads=False).column("value")
            table = pa.table({"key": segment_keys, "value": values})
        types = {field.type for field in table.schema}
        if digest(table, COLUMNS) != path.stem or pa.binary() in types or table.schema.field("key").type != pa.string():
            raise ValueError("its content does not match its name")
        return table.filter(is_requested) if is_requested is not None else table
    except FileNotFoundError:
        return None  # merged by another process
    except (pa.ArrowException, KeyError, OSError, ValueError, MemoryError) as error:
        logger.warning("ignoring damaged cache segment %s; its values will be computed again: %s", path, error)
        with contextlib.suppress(OSError):
            path.unlink()
        return None


def _shape_digest(shape: Sequence[int]) -> str:
    """Compute the digest of a shape, which is stored with it."""
    return hashlib.sha256(json.dumps(list(shape)).encode()).hexdigest()


def _file_key(path: Path, info: FileInfo | None) -> str | None:
    if info is None:
        return None
    text = f"{url_of(path) or path.absolute()}\0{info.size}\0{info.modified}"
    return hashlib.sha256(os.fsencode(text)).hexdigest()


def _file_digest(path: Path) -> str | UnreadableItem:
    try:
        return file_sha256(path)
    except OSError as error:
        return UnreadableItem(f"file {path} cannot be read: {error.strerror}")
