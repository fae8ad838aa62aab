"""The local engine: order, errors, what is sent, and what is left behind."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shotproof.core.errors import ShotproofError, UnknownName
from shotproof.core.runtime.local import LocalEngine

engine = LocalEngine()


class Adder:
    """Function with data, which logs when it is unpickled, and the inputs that it is called with."""

    def __init__(self, number: int, log: Path | None = None) -> None:
        self.number = number
        self.log = log

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._write(f"unpickled by {os.getpid()}")

    def __call__(self, value: int) -> int:
        self._write(f"called with {value}")
        return self.number + value

    def _write(self, line: str) -> None:
        if self.log:
            with self.log.open("a") as file:
                file.write(f"{line}\n")


class Unreadable:
    def __reduce__(self) -> Any:
        return refuse, ()


def refuse() -> None:
    raise ValueError("no")


def process(_: int) -> int:
    return os.getpid()


def die(_: int) -> None:
    os._exit(1)


def refuse_five(value: int) -> int:
    if value == 5:
        raise UnknownName("number", "5", ["4", "6"])
    return value


def seconds(value: float) -> float:
    time.sleep(value)
    return value


def threads(_: int) -> tuple[int, str]:
    import torch

    return torch.get_num_threads(), os.environ["OMP_NUM_THREADS"]


@pytest.fixture
def no_files_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], bool]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return lambda: not list(tmp_path.iterdir())


@pytest.mark.parametrize("workers", [1, 2, None])
@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_outputs_come_in_order_whatever_the_number_of_workers(workers: int | None, chunk: int) -> None:
    assert list(engine.map(Adder(5), range(20), workers, chunk)) == list(range(5, 25))
    assert list(engine.map(Adder(5), [], workers, chunk)) == []


def test_order_does_not_depend_on_who_is_first() -> None:
    waits = [0.2, 0.0, 0.1, 0.0]
    assert list(engine.map(seconds, waits, 2)) == waits


def test_one_worker_is_this_process_and_two_are_others() -> None:
    assert set(engine.map(process, range(4), 1)) == {os.getpid()}
    assert os.getpid() not in set(engine.map(process, range(20), 2))


def test_workers_are_kept_from_one_map_to_the_next() -> None:
    assert len(set(engine.map(process, range(20), 2)) | set(engine.map(process, range(20), 2))) <= 2


@pytest.mark.parametrize("worth_seconds", [0.0, 3600.0])
def test_work_is_handed_over_where_workers_pay_off(worth_seconds: float) -> None:
    first, *rest = LocalEngine(trial_seconds=0.0, worth_seconds=worth_seconds, cores=2).map(process, range(10))
    assert first == os.getpid()
    assert (os.getpid() in rest) == (worth_seconds > 0)


def test_work_that_cannot_travel_is_done_here_or_refused() -> None:
    lock = threading.Lock()

    def locked(value: int) -> int:
        with lock:
            return value

    assert list(LocalEngine(trial_seconds=0.0, worth_seconds=0.0, cores=2).map(locked, range(4))) == [0, 1, 2, 3]
    with pytest.raises(ShotproofError, match=r"cannot be sent .*lock.*workers=1"):
        list(engine.map(locked, range(4), 2))


def test_work_is_sent_once_to_each_worker(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert len(list(engine.map(Adder(1, log), range(30), 2))) == 30
    unpickled = [line for line in log.read_text().splitlines() if line.startswith("unpickled")]
    assert len(unpickled) == len(set(unpickled)) <= 2


def test_two_maps_may_go_on_side_by_side(tmp_path: Path) -> None:
    log = tmp_path / "log"
    pairs = zip(engine.map(Adder(1, log), range(20), 2), engine.map(Adder(2), range(20), 2), strict=True)
    assert list(pairs) == [(value + 1, value + 2) for value in range(20)]
    assert log.read_text().count("unpickled") <= 2


def test_no_more_is_computed_than_the_consumer_is_ready_for(tmp_path: Path) -> None:
    log = tmp_path / "log"
    outputs = engine.map(Adder(1, log), range(1000), 2)
    assert next(outputs) == 1
    time.sleep(0.3)  # in which two idle workers would do all of it
    outputs.close()
    assert log.read_text().count("called") <= 4  # two blocks per worker


def test_an_error_arrives_as_itself_after_the_outputs_before_it(no_files_left: Callable[[], bool]) -> None:
    outputs = engine.map(refuse_five, range(100), 2, 4)
    assert [next(outputs) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(UnknownName, match=r"unknown number '5' .known: 4, 6."):
        next(outputs)
    assert no_files_left()


def is_there(process: int) -> bool:
    """Return whether a process exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_work_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    def sleep(value: float) -> float:
        if value:
            begun.touch()
        return seconds(value)

    before = set(engine.map(process, range(20), 2))
    outputs = engine.map(sleep, [0.0, 3600.0, 3600.0, 3600.0], 2)
    assert next(outputs) == 0.0
    while not begun.exists():  # what has not begun is given up, and needs nobody killed
        time.sleep(0.01)
    outputs.close()
    after = set(engine.map(process, range(20), 2))
    assert not before & after
    deadline = time.monotonic() + 30  # what was killed may take a moment to be gone
    while (left := [worker for worker in before if is_there(worker)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left


def test_a_worker_that_dies_is_told_in_one_line_and_the_next_map_works(no_files_left: Callable[[], bool]) -> None:
    with pytest.raises(ShotproofError, match=r"worker process died.*fewer workers"):
        list(engine.map(die, range(4), 2))
    assert no_files_left()
    assert list(engine.map(Adder(5), range(4), 2)) == [5, 6, 7, 8]


def test_an_output_that_cannot_travel_is_an_error() -> None:
    with pytest.raises(TypeError, match="pickle"):
        list(engine.map(lambda _: threading.Lock(), range(4), 2))


def test_an_output_that_does_not_arrive_is_told_apart_from_a_death() -> None:
    with pytest.raises(ShotproofError, match=r"output .* cannot be unpickled .*: ValueError: no"):
        list(engine.map(lambda _: Unreadable(), range(4), 2))
    assert list(engine.map(Adder(5), range(4), 2)) == [5, 6, 7, 8]


def test_workers_compute_in_one_thread() -> None:
    assert set(engine.map(threads, range(4), 2)) == {(1, "1")}


def test_the_number_of_workers_may_change() -> None:
    for workers in (2, 3, 2):
        assert len(set(engine.map(process, range(60), workers))) <= workers
