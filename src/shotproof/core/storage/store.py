"""What was computed once is kept: values by key, in immutable Parquet files that appear whole or not at all.

Features are kept by the digest of the file that they were made from, so that a moved, renamed or copied file
is known again, in a folder for each encoder. The digests themselves are kept by a file's path, size and time.

Processes need not wait for each other. A segment is named after its content, which is held against the name whenever
it is read, and never changes; merging writes the new segment before it removes the old ones. At worst, something is
computed twice.
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
from shotproof.core.storage.places import Found, url_of
from shotproof.core.storage.whole_files import whole_file, write_text
from shotproof.core.tables import digest

logger = logging.getLogger("shotproof")

MANY_SEGMENTS = 32
FULL_SEGMENT = 32 * 2**20  # bytes; segments of this size are not merged any more
FLUSH_SECONDS = 20.0
SHAPE_FILE = "shape.json"
COLUMNS = ("key", "value")
FILES_PER_CHUNK = 64

OnError = Literal["raise", "skip"]


@dataclass(frozen=True)
class KeptShape:
    """The shape of all values of a store, as its file has it, and a digest of it."""

    shape: tuple[int, ...]
    digest: str


class Store:
    """Values by key, in a folder of segments: tables of `key` (string) and `value` (any one type)."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder  # None: nothing is kept
        self._shape: list[int] | None = None

    def find(self, keys: pa.Array) -> pa.Table:
        """The rows of those keys that are known; a key may occur more than once."""
        tables = [table for path in self._paths() if (table := _read(path, keys)) is not None]
        return pa.concat_tables(tables) if tables else pa.table({"key": pa.array([], pa.string()), "value": []})

    def known(self, keys: Iterable[str | None]) -> dict[str, Any]:
        """The values of those keys that are known."""
        found = self.find(pa.array(sorted({key for key in keys if key}), pa.string()))
        return dict(zip(found["key"].to_pylist(), found["value"].to_pylist(), strict=True))

    def add(self, table: pa.Table) -> Path | None:
        """Keep a segment."""
        if self.folder is None:
            return None
        path = self.folder / f"{digest(table, COLUMNS)}.parquet"
        with whole_file(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")
        return path

    @property
    def shape(self) -> list[int] | None:
        """The shape of each value where they are maps, as `keep_shape` was told; the lists themselves are flat."""
        if self._shape is None and self.folder is not None:
            with contextlib.suppress(InputError):  # without it, or damaged, the values are made anew
                kept: KeptShape = typed(read_json(self.folder / SHAPE_FILE, SHAPE_FILE) or {}, KeptShape)
                self._shape = list(kept.shape) if kept.digest == _told(kept.shape) else None
        return self._shape

    def keep_shape(self, shape: Sequence[int]) -> None:
        """Note the shape of all values."""
        self._shape = list(shape)
        if self.folder is not None:
            kept = KeptShape(tuple(shape), _told(shape))
            write_text(self.folder / SHAPE_FILE, json.dumps(asdict(kept)))

    def merge(self) -> None:
        """Where there are many small segments, make few large ones of them."""
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
        """All segments, also those that another process adds meanwhile by merging some of them."""
        seen: set[Path] = set()
        while self.folder is not None and (new := set(self.folder.glob("*.parquet")) - seen):
            seen |= new
            yield from sorted(new)


class Writer:
    """Adds to a store as the work goes on: a segment every so many rows or seconds, the rest at the end."""

    def __init__(self, store: Store, every: int) -> None:
        self.store = store
        self.every = every
        self._pending: list[pa.Table] = []
        self._rows = 0
        self._flushed = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def add(self, table: pa.Table) -> None:
        """Take rows of `key` and `value`."""
        self._pending.append(table)
        self._rows += table.num_rows
        if self._rows >= self.every or time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._flush()

    def add_value(self, key: str, value: str | float) -> None:
        """Take one value."""
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
    """Where the features of one encoder are kept; its fingerprint names all that they depend on."""
    if cache is None:
        return Store(None)
    kind = "".join(re.findall(r"^\w+", fingerprint))[:40]
    return Store(cache / "features" / f"{kind}-{hashlib.sha256(fingerprint.encode()).hexdigest()[:32]}")


def file_digests(paths: Sequence[Path], runtime: Runtime, on_error: OnError = "raise") -> pa.Array:
    """SHA-256 of each file's content; a file that has not changed since it was last read is not read.

    Args:
        paths: files
        runtime: whose cache keeps the digests
        on_error: what to do about a file that cannot be read: `raise`, or `skip`, which leaves its digest null

    Returns:
        The digests, [n].

    Raises:
        UnreadableItem: a file cannot be read.
    """
    store = Store(runtime.cache / "digests" if runtime.cache else None)
    settled = time.time_ns() - 2 * 10**9
    files = find_all(paths)
    keys = [_file_key(path, file) for path, file in zip(paths, files, strict=True)]
    digests: dict[Any, str | None] = store.known(keys)
    unread = [row for row, key in enumerate(keys) if key is None or key not in digests]
    with Writer(store, every=16_384) as writer:
        read = runtime.map(_file_digest, [paths[row] for row in unread], what="reading files", chunk=FILES_PER_CHUNK)
        for row, found in zip(unread, read, strict=True):
            if isinstance(found, UnreadableItem) and on_error == "raise":
                raise found
            digests[keys[row]] = value = None if isinstance(found, UnreadableItem) else found
            # A file changed a moment ago may change again without a new time or size: do not trust its key.
            if value and (key := keys[row]) and (file := files[row]) and (file.changed or settled) < settled:
                writer.add_value(key, value)
    return pa.array([digests[key] for key in keys], pa.string())


def _read(path: Path, keys: pa.Array | None) -> pa.Table | None:
    """A segment's rows, of these keys or of all; None where there are none or the segment cannot be read."""
    require_headroom()
    try:
        with pq.ParquetFile(path, pre_buffer=False) as segment:
            found = segment.read(["key"], use_threads=False).column("key")
            wanted = pc.is_in(found, value_set=keys) if keys is not None else None
            if wanted is not None and not pc.any(wanted).as_py():
                return None
            table = pa.table({"key": found, "value": segment.read(["value"], use_threads=False).column("value")})
        types = {field.type for field in table.schema}
        if digest(table, COLUMNS) != path.stem or pa.binary() in types or table.schema.field("key").type != pa.string():
            raise ValueError("its content is not what its name says")
        return table.filter(wanted) if wanted is not None else table
    except FileNotFoundError:
        return None  # merged by another process
    except (pa.ArrowException, KeyError, OSError, ValueError, MemoryError) as error:
        logger.warning("cache segment %s is broken and ignored, its items are made anew: %s", path, error)
        with contextlib.suppress(OSError):
            path.unlink()
        return None


def _told(shape: Sequence[int]) -> str:
    """A digest of a shape, beside it in its file."""
    return hashlib.sha256(json.dumps(list(shape)).encode()).hexdigest()


def _file_key(path: Path, found: Found | None) -> str | None:
    if found is None:
        return None
    text = f"{url_of(path) or path.absolute()}\0{found.size}\0{found.changed}"
    return hashlib.sha256(os.fsencode(text)).hexdigest()


def _file_digest(path: Path) -> str | UnreadableItem:
    try:
        return file_sha256(path)
    except OSError as error:
        return UnreadableItem(f"file {path} cannot be read: {error.strerror}")
