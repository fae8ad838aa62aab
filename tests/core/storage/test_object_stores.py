"""Number of requests to an object store, counted by a file system in memory that replaces the store in Arrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.fs
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from shotproof.catalog.catalog import Catalog
from shotproof.core.storage import object_stores
from shotproof.core.storage.files import find, find_all


class Counted(MemoryFileSystem):  # type: ignore[misc]
    """File system that counts its requests, by kind and path."""

    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.requests: Counter[tuple[str, str]] = Counter()

    def info(self, path: str, **options: Any) -> Any:
        self.requests["info", path.strip("/")] += 1
        return super().info(path, **options)

    def find(self, path: str, *args: Any, **options: Any) -> Any:
        self.requests["list", path.strip("/")] += 1
        return super().find(path, *args, **options)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    """Create a bucket of two folders with three images each."""
    counted = Counted()
    for label in ("jay", "owl"):
        for number in range(3):
            counted.pipe_file(f"/birds/{label}/{number}.png", bytes(number))
    monkeypatch.setattr(pa.fs, "S3FileSystem", lambda **options: pa.fs.PyFileSystem(pa.fs.FSSpecHandler(counted)))
    object_stores._create_system.cache_clear()
    yield counted
    object_stores._create_system.cache_clear()


def test_files_of_a_store_are_found_by_one_listing_of_each_folder(bucket: Counted) -> None:
    names = [f"{label}/{number}.png" for label in ("jay", "owl") for number in range(3)]
    places = [Path("s3://birds") / name for name in (*names, "jay/missing.png")]
    bucket.requests.clear()
    found = find_all(places)
    assert [request for request in bucket.requests if request[0] == "list"] == [
        ("list", "birds/jay"),
        ("list", "birds/owl"),
    ]
    assert not [path for _, path in bucket.requests if path.endswith(".png")]
    assert [file and (file.kind, file.size) for file in found] == [*(("file", n) for n in (0, 1, 2, 0, 1, 2)), None]
    assert found[:-1] == [find(place) for place in places[:-1]]


def test_the_stamp_of_a_catalog_asks_for_no_single_file(bucket: Counted) -> None:
    names = [f"{label}/{number}.png" for label in ("jay", "owl") for number in range(3)]
    columns = {"item": names, "path": names, "label": [name[:3] for name in names], "split": ["test"] * 6}
    catalog = Catalog(pa.table(columns), Path("s3://birds"))
    bucket.requests.clear()
    before = catalog.stamp
    assert catalog.stamp == before
    assert sum(bucket.requests[request] for request in bucket.requests if request[0] == "list") == 2
    assert not [path for _, path in bucket.requests if path.endswith(".png")]
    bucket.pipe_file("/birds/owl/2.png", b"another")
    assert Catalog(catalog.table, catalog.root).stamp != before
