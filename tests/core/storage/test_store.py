from __future__ import annotations

import hashlib
import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shotproof.core.errors import UnreadableItem, WriteFailed
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import MANY_SEGMENTS, SHAPE_FILE, Store, Writer, file_digests
from tests.drawn_images import draw_image


def rows(*numbers: int) -> pa.Table:
    """Return rows whose values are computed from their keys."""
    values = pa.array([[float(n), float(n) / 2] for n in numbers], pa.list_(pa.float32(), 2))
    return pa.table({"key": pa.array([f"k{n}" for n in numbers]), "value": values})


def stored_values(store: Store, *numbers: int) -> dict[str, list[float]]:
    table = store.find(rows(*numbers)["key"].combine_chunks())
    return dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


def test_only_the_known_keys_are_found(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert stored_values(store, 1, 2) == {}
    store.add(rows(1, 2))
    store.add(rows(3))
    assert stored_values(store, 2, 3, 4) == {"k2": [2.0, 1.0], "k3": [3.0, 1.5]}


def test_without_a_folder_nothing_is_kept() -> None:
    store = Store(None)
    store.add(rows(1))
    store.merge()
    assert stored_values(store, 1) == {}


def test_many_segments_become_few_and_nothing_is_lost(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(MANY_SEGMENTS + 5):
        store.add(rows(number, number + 1))
    store.merge()
    assert len(list(tmp_path.iterdir())) == 1
    assert stored_values(store, *range(MANY_SEGMENTS + 6)) == {
        f"k{n}": [float(n), n / 2] for n in range(MANY_SEGMENTS + 6)
    }


def test_a_store_merged_meanwhile_is_still_found(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(MANY_SEGMENTS + 1):
        store.add(rows(number))
    reading = store._paths()
    next(reading)  # another process has listed the segments, and reads the first
    store.merge()
    assert [path for path in reading if path.exists()] == list(tmp_path.iterdir())


def test_a_writer_keeps_what_it_has_when_the_work_fails(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def work() -> None:
        with Writer(store, every=2) as writer:
            writer.add(rows(1))
            assert stored_values(store, 1) == {}
            writer.add(rows(2))
            assert set(stored_values(store, 1, 2)) == {"k1", "k2"}
            writer.add(rows(3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert set(stored_values(store, 1, 2, 3)) == {"k1", "k2", "k3"}


@pytest.mark.parametrize("bit", [1, 128])
def test_no_altered_byte_gives_another_value(tmp_path: Path, bit: int) -> None:
    """Damage any single byte of a segment, including its header, footer and column names."""
    store = Store(tmp_path)
    path = store.add(rows(1, 2))
    assert path is not None
    content = path.read_bytes()
    rejected = 0
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ bit]) + content[position + 1 :])
        values = stored_values(store, 1, 2)
        assert values in ({"k1": [1.0, 0.5], "k2": [2.0, 1.0]}, {})
        rejected += not values
    assert rejected > len(content) / 4


def test_a_shape_with_an_altered_byte_is_none(tmp_path: Path) -> None:
    Store(tmp_path).keep_shape([64, 7, 7])
    (file,) = tmp_path.iterdir()
    assert Store(tmp_path).shape == [64, 7, 7]
    file.write_text(file.read_text().replace("64", "65"))
    assert Store(tmp_path).shape is None


def test_a_shape_that_holds_nothing_is_none(tmp_path: Path) -> None:
    (tmp_path / SHAPE_FILE).write_text("null")
    assert Store(tmp_path).shape is None


@pytest.mark.parametrize("damage", ["truncated", "empty", "text", "other columns", "flipped"])
def test_a_broken_segment_is_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    store = Store(tmp_path)
    store.add(rows(1))
    broken = store.add(rows(2))
    assert broken is not None
    content = broken.read_bytes()
    flipped = bytearray(content)
    flipped[20] ^= 0xFF
    if damage == "other columns":
        pq.write_table(pa.table({"key": ["k2"]}), broken)
    else:
        damaged = {"truncated": content[:-9], "empty": b"", "text": b"hello" * 99, "flipped": bytes(flipped)}
        broken.write_bytes(damaged[damage])
    assert stored_values(store, 1, 2) == {"k1": [1.0, 0.5]}
    assert broken.name in caplog.text
    store.add(rows(2))
    assert stored_values(store, 1, 2) == {"k1": [1.0, 0.5], "k2": [2.0, 1.0]}


def fill(folder: Path, start: int) -> None:
    store = Store(folder)
    for number in range(start, start + 60):
        with Writer(store, every=1) as writer:
            writer.add(rows(number))


def test_two_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(fill, [tmp_path, tmp_path], [0, 30]))
    assert set(stored_values(Store(tmp_path), *range(90))) == {f"k{n}" for n in range(90)}


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(WriteFailed, match="cannot write"):
        Store(tmp_path / "file").add(rows(1))


def test_digests_are_sha256_and_equal_for_copies(tmp_path: Path) -> None:
    contents = [b"one", b"", b"one", os.urandom(100_000)]
    paths = [tmp_path / f"{number}" for number in range(4)]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    expected = [hashlib.sha256(content).hexdigest() for content in contents]
    assert file_digests(paths, Runtime(cache=None)).to_pylist() == expected
    assert file_digests(paths, Runtime(cache=tmp_path / "cache")).to_pylist() == expected


def test_a_file_that_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    draw_image(path, seed=0)
    before = path.stat()
    first = file_digests([path], Runtime(cache=tmp_path / "cache"))
    path.write_bytes(b"x" * before.st_size)
    os.utime(path, ns=(before.st_mtime_ns, before.st_mtime_ns))  # same size and time: taken for unchanged
    assert file_digests([path], Runtime(cache=tmp_path / "cache")) == first
    os.utime(path, ns=(before.st_mtime_ns + 1, before.st_mtime_ns + 1))
    assert file_digests([path], Runtime(cache=tmp_path / "cache")).to_pylist() == [
        hashlib.sha256(path.read_bytes()).hexdigest()
    ]


def test_a_file_changed_a_moment_ago_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "fresh"
    path.write_bytes(b"old")
    now = time.time_ns()
    os.utime(path, ns=(now, now))
    file_digests([path], Runtime(cache=tmp_path / "cache"))
    path.write_bytes(b"new")
    os.utime(path, ns=(now, now))
    assert file_digests([path], Runtime(cache=tmp_path / "cache")).to_pylist() == [hashlib.sha256(b"new").hexdigest()]


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    with pytest.raises(UnreadableItem, match=r"here cannot be read: .*found a folder"):
        file_digests([tmp_path / "here"], Runtime(cache=None))
    (tmp_path / "there").write_bytes(b"x")
    skipped = file_digests([tmp_path / "here", tmp_path / "there"], Runtime(cache=tmp_path / "cache"), on_error="skip")
    assert skipped.to_pylist() == [None, hashlib.sha256(b"x").hexdigest()]
