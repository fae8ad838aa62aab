"""Death of a machine or a worker during work, and interrupts: nothing is lost, and outputs have the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import ShotproofError, UnreadableItem
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.store import OnError, feature_store
from shotproof.features.encoder import encoders
from shotproof.features.encoders.pixels import Pixels
from shotproof.learners.method import methods
from shotproof.worlds.shapes import ShapesWorld
from tests.scale.conftest import Nodes, shotproof
from tests.scale.slow_work import LOG, SlowCentroids, SlowPixels


@pytest.fixture
def data(tmp_path: Path) -> Path:
    ShapesWorld(classes=6, items=60, size=16).write(tmp_path / "world").write(tmp_path / "catalog.parquet")
    return tmp_path


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    return tmp_path / "log"


@pytest.fixture
def slow_work() -> Iterator[None]:
    encoders.register("slow-pixels", SlowPixels)
    methods.register("slow-ncc", SlowCentroids)
    yield
    encoders.unregister("slow-pixels")
    methods.unregister("slow-ncc")


@pytest.mark.usefixtures("slow_work")
def test_a_machine_dies_in_the_middle_and_the_bytes_are_the_same(data: Path, log: Path, nodes: Nodes) -> None:
    tasks, catalog = data / "tasks.parquet", data / "catalog.parquet"

    def encode(name: str, *runtime: str) -> bytes:
        shotproof("encode", catalog, "--encoder", "slow-pixels", "-o", data / name, "--cache", "none", *runtime)
        return (data / name).read_bytes()

    def evaluate(name: str, *runtime: str) -> bytes:
        shotproof("evaluate", tasks, data / "f.parquet", "--method", "slow-ncc", "-o", data / name, *runtime)
        return (data / name).read_bytes()

    expected = encode("f.parquet", "--workers", "1")
    shotproof("sample", catalog, "--sampler", "random", "--shot", "1", "--query", "5", "--tasks", "400", "-o", tasks)
    counts = evaluate("r.parquet", "--workers", "1")
    for command, same in ((encode, expected), (evaluate, counts)):
        log.unlink(missing_ok=True)
        killed = nodes.kill_once_at_work(node := nodes.add(), log)
        assert command("again.parquet", "--engine", nodes.engine) == same
        killed.join(timeout=60)  # until all have noticed
        assert not killed.is_alive()
        at_work = log.read_text().split()
        assert {node.node_id} < set(at_work)
        assert at_work[-1] != node.node_id


def die_once(marked: tuple[Path, int]) -> int:
    """Kill this process the first time, as the kernel does when memory runs out."""
    mark, value = marked
    if value == 7 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return value * value


def die(value: int) -> int:
    if value == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def test_a_block_whose_worker_died_is_done_again(nodes: Nodes, tmp_path: Path) -> None:
    inputs = [(tmp_path / "mark", value) for value in range(20)]
    done = Runtime(engine=nodes.engine).map(die_once, inputs, title=None, chunk=2)
    assert list(done) == [value * value for value in range(20)]
    assert (tmp_path / "mark").exists()


def test_a_block_that_ends_every_worker_fails_the_run_by_its_name(nodes: Nodes) -> None:
    done = Runtime(engine=f"{nodes.engine}(retries=1)").map(die, range(20), title=None, chunk=2)
    assert [next(done) for _ in range(6)] == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ShotproofError, match=r"worker of the cluster died, .*memory, 2 times .* same block \('6' and"):
        next(done)


def refuse_five(value: int) -> int:
    if value == 5:
        raise UnreadableItem("item 'five' cannot be read")
    return value


def test_what_fails_by_its_own_content_is_not_done_again(nodes: Nodes) -> None:
    done = Runtime(engine=nodes.engine).map(refuse_five, range(20), title=None, chunk=2)
    assert [next(done) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(UnreadableItem, match="item 'five' cannot be read"):
        next(done)


class ListedBefore(Pixels):
    """Pixels of files that may vanish after they were listed."""

    def digests(self, files: Sequence[Any], runtime: Runtime, on_error: OnError) -> pa.Array:
        return pa.array([f"digest {number}" for number in range(len(files))])


def test_a_file_that_vanishes_is_named_and_what_came_before_is_kept(data: Path, nodes: Nodes) -> None:
    catalog, encoder = Catalog.read(data / "catalog.parquet"), ListedBefore()
    catalog.paths[200].unlink()
    with pytest.raises(UnreadableItem, match=catalog.paths[200].name):
        encoder.encode(catalog, Runtime(engine=nodes.engine, cache=data / "cache"), "raise")
    every = encoder.digests(catalog.paths, Runtime(), "raise")
    kept = feature_store(data / "cache", encoder.stored).find(every)
    assert kept["key"].to_pylist() == every[:200].to_pylist()


INTERRUPTED = """
from tests.scale.slow_work import SlowPixels
from shotproof.features.encoder import encoders
encoders.register("slow-pixels", SlowPixels)
from shotproof.cli.app import main
main()
"""


def test_an_interrupt_ends_the_work_and_keeps_what_is_done(data: Path, log: Path, nodes: Nodes) -> None:
    arguments = ["encode", data / "catalog.parquet", "--encoder", "slow-pixels", "-o", data / "features.parquet"]
    arguments += ["--cache", data / "cache", "--engine", nodes.engine]
    command = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # ignored where tests run unseen
    )
    while not log.is_file() or log.read_text().count("\n") < 270:
        time.sleep(0.05)
    command.send_signal(signal.SIGINT)
    _, message = command.communicate(timeout=60)
    assert command.returncode == 130
    assert message.startswith("error: interrupted; ")
    assert "cache" in message
    assert "same command" in message
    assert not (data / "features.parquet").exists()
    assert list((data / "cache" / "features").rglob("*.parquet"))
    before = log.read_text().count("\n")
    time.sleep(1)
    assert log.read_text().count("\n") == before  # nobody works on
