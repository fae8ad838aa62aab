import os
from pathlib import Path

import pytest

from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime, current_runtime, default_cache, resolve, runtime


def test_the_innermost_runtime_is_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOTPROOF_CACHE", "/mine")
    assert current_runtime() == Runtime() == Runtime("local", None, None, Path("/mine"), None, None)
    with runtime(workers=4):
        with runtime(device="cpu"):
            assert (current_runtime().workers, current_runtime().device) == (4, "cpu")
        with pytest.raises(ValueError, match="an error"), runtime(device="cpu"):
            raise ValueError("an error")
        assert (current_runtime().workers, current_runtime().device) == (4, None)
    assert current_runtime() == Runtime()


def test_one_runtime_may_be_entered_again() -> None:
    two = Runtime(workers=2)
    with two, Runtime(workers=3), two:
        assert current_runtime() is two
    assert current_runtime().workers is None


def test_what_is_given_goes_before_what_is_current() -> None:
    three = Runtime(workers=3)
    with runtime(workers=2) as two:
        assert resolve(three) is three
        assert resolve(None) is two


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workers": 0}, "Runtime: workers: expected a whole number from 1 to 10,000 or None, found 0"),
        ({"workers": "4"}, "workers: expected a whole number from 1 to 10,000 or None, found '4'"),
        ({"workers": True}, "workers: expected a whole number from 1 to 10,000 or None, found True"),
        ({"batch_size": -1}, "batch_size: expected a whole number from 1 to 1,000,000 or None, found -1"),
        ({"cache": True}, "cache: expected a path or None, found True"),
        ({"device": 1}, "device: expected text or None, found 1"),
        ({"progress": "yes"}, "progress: expected True or False or None, found 'yes'"),
        ({"engine": "lokal"}, r"unknown engine 'lokal': did you mean 'local'\?"),
        ({"engine": 1}, "engine: expected text or an engine, found 1"),
        ({"worker": 1}, r"a runtime has no 'worker': did you mean 'workers'\?"),
    ],
)
def test_what_cannot_be_used_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        runtime(**changes)


def test_a_cache_may_be_a_string() -> None:
    assert Runtime(cache="here").cache == Path("here")  # type: ignore[arg-type]
    assert Runtime(cache=None).cache is None


def test_a_chunk_is_one_at_least() -> None:
    with pytest.raises(InputError, match="chunk=0: expected a whole number from 1"):
        Runtime().map(abs, [1], title="counting", chunk=0)


def _here_and_workers(_: int) -> tuple[int, Runtime]:
    return os.getpid(), current_runtime()


def _nested(value: int) -> tuple[int, set[int]]:
    inner = Runtime(workers=2).map(_here_and_workers, range(4), title="inside")
    return os.getpid(), {process for process, _ in inner}


def test_work_sees_the_runtime_it_runs_under() -> None:
    given = Runtime(workers=1, device="cpu", progress=False)
    assert list(given.map(_here_and_workers, [0], title="looking")) == [(os.getpid(), given)]
    of_workers = list(Runtime(workers=2, device="cpu").map(_here_and_workers, range(4), title="looking"))
    assert os.getpid() not in {process for process, _ in of_workers}
    assert {seen for _, seen in of_workers} == {given}


def test_a_map_within_a_worker_stays_in_it() -> None:
    for process, inner in Runtime(workers=2).map(_nested, range(4), title="outside"):
        assert inner == {process} != {os.getpid()}


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOTPROOF_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_cache() == Path.home() / ".cache" / "shotproof"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_cache() == Path("/xdg/shotproof")
    monkeypatch.setenv("SHOTPROOF_CACHE", "/mine")
    assert default_cache() == Path("/mine")
