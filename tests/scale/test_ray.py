"""The Ray engine: which worker does what, and what is sent how often."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from shotproof.core.runtime.engine import engines
from shotproof.core.runtime.runtime import Runtime, current_runtime
from tests.core.runtime.test_local import Adder
from tests.scale.conftest import Nodes


def where(_: int) -> tuple[str, int, str | None, str | None]:
    import ray
    import torch

    node = ray.get_runtime_context().get_node_id()
    return node, torch.get_num_threads(), os.environ.get("CUDA_VISIBLE_DEVICES"), current_runtime().device


@pytest.fixture(autouse=True)
def machines_are_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shotproof.core.runtime.ray_cluster.NODES_MAX_AGE", 0.0)


@pytest.mark.parametrize("chunk", [1, 7, 100])
@pytest.mark.parametrize("workers", [1, 2, None])
def test_outputs_come_in_order(nodes: Nodes, workers: int | None, chunk: int) -> None:
    runtime = Runtime(engine=nodes.engine, workers=workers)
    assert list(runtime.map(Adder(5), range(20), title=None, chunk=chunk)) == list(range(5, 25))
    assert list(runtime.map(Adder(5), [], title=None, chunk=chunk)) == []


class WaitingForOthers:
    """Function whose first input finishes only after the next two, which another worker must process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, value: int) -> int:
        (self.folder / str(value)).touch()
        ends = time.monotonic() + 60
        while value == 0 and not (self.folder / "2").exists() and time.monotonic() < ends:
            time.sleep(0.01)
        return value if (self.folder / "2").exists() else -1


def test_a_slow_block_does_not_keep_the_other_workers_waiting(nodes: Nodes, tmp_path: Path) -> None:
    found = Runtime(engine=nodes.engine, workers=2).map(WaitingForOthers(tmp_path), range(3), title=None)
    assert next(iter(found)) == 0
    found.close()


def test_all_machines_work_and_get_the_work_once_per_process(nodes: Nodes, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert len(list(Runtime(engine=nodes.engine).map(Adder(1, log), range(60), title=None))) == 60
    unpickled = [line for line in log.read_text().splitlines() if line.startswith("unpickled")]
    assert len(unpickled) == len(set(unpickled)) <= 3
    found = {node for node, *_ in Runtime(engine=nodes.engine).map(where, range(12), title=None)}
    assert len(found) == 3


def test_work_that_cannot_travel_is_done_here(nodes: Nodes) -> None:
    lock = threading.Lock()

    def locked(_: int) -> int:
        with lock:
            return os.getpid()

    assert set(Runtime(engine=nodes.engine).map(locked, range(4), title=None)) == {os.getpid()}


def test_work_is_cut_for_machines(nodes: Nodes) -> None:
    ranges = engines.make(nodes.engine).shards(600)
    assert [value for one in ranges for value in one] == list(range(600))
    assert len(ranges) >= 3 * 8
    assert engines.make(nodes.engine).shards(5) == [range(5)]


def test_a_gpu_is_shared_by_what_needs_one(nodes: Nodes) -> None:
    node = nodes.add(num_cpus=2, num_gpus=1)
    try:
        runtime = Runtime(engine=nodes.engine, device="cuda:3")
        cores = [*runtime.map(where, range(8), title=None)]
        shares = [*runtime.map(where, range(4), title=None, needs="share")]
        devices = [*runtime.map(where, range(2), title=None, needs="device")]
        assert {device for *_, device in cores + shares + devices} == {"cuda"}  # which one, the cluster knows
        assert {place[:3] for place in shares} == {(node.node_id, 1, "0")}
        assert {place[:3] for place in devices} == {(node.node_id, 2, "0")}
        assert not {place[2] for place in cores} - {None, ""}
    finally:
        nodes.remove(node)
