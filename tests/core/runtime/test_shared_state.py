import os
import sys
import threading
from pathlib import Path

import pytest

from shotproof.core.errors import ShotproofError, UnknownName
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.runtime.shared_state import Failure, WorkerTraceback, share_state
from tests.core.runtime.conftest import RunScript

_setting = "as imported"


def _get_setting() -> str:
    return _setting


def _set_setting(state: str) -> None:
    global _setting
    _setting = state


share_state("setting of the tests", _get_setting, _set_setting)


def _seen(_: int) -> tuple[str, str, str | None, bool]:
    return _setting, str(Path.cwd()), os.environ.get("A_VARIABLE"), "/a/folder" in sys.path


def test_workers_that_are_kept_see_the_state_of_each_map(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = str(Path.cwd())
    pair = Runtime(workers=2)
    assert set(pair.map(_seen, range(4), title="looking")) == {("as imported", here, None, False)}
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[__name__], "_setting", "changed")
        patch.chdir(tmp_path)
        patch.setenv("A_VARIABLE", "set")
        patch.syspath_prepend("/a/folder")
        assert set(pair.map(_seen, range(4), title="looking")) == {("changed", str(tmp_path), "set", True)}
    assert set(pair.map(_seen, range(4), title="looking")) == {("as imported", here, None, False)}


def test_what_a_script_registers_is_known_to_workers(run_script: RunScript, tmp_path: Path) -> None:
    (tmp_path / "heads.py").write_text(
        "from shotproof.core.runtime.shared_state import share_state\n"
        "registered = {}\n"
        "def get(): return registered\n"
        "def put(state): registered.update(state)\n"
        "share_state('heads', get, put)\n"
    )
    script = (
        "import heads\n"
        "from shotproof.core.runtime.runtime import runtime\n"
        "class Mine:\n"
        "    def answer(self, value): return value * 2\n"
        "heads.registered['mine'] = Mine\n"
        "def work(value): return heads.registered['mine']().answer(value)\n"
        "print(list(runtime(workers=2).map(work, range(4), title='asking')))\n"
    )
    assert run_script(script) == "[0, 2, 4, 6]\n"


class TwoParts(ShotproofError):
    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} in {where}")
        self.where = where


class Prefixed(ShotproofError):
    """Error whose message would be duplicated by a plain copy."""

    def __init__(self, what: str) -> None:
        super().__init__(f"broken: {what}")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("plain"),
        TwoParts("a hole", "the file"),
        Prefixed("a wheel"),
        UnknownName("method", "nc", ["ncc"]),
        FileNotFoundError(2, "No such file", "a.png"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        SystemExit(3),
    ],
)
def test_an_error_arrives_as_itself(error: BaseException) -> None:
    arrived = Failure.of(error).error()
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)


def test_its_cause_tells_where_it_happened() -> None:
    try:
        raise TwoParts("a hole", "the file")
    except TwoParts as error:
        cause = Failure.of(error).error().__cause__
    assert isinstance(cause, WorkerTraceback)
    assert "test_shared_state.py" in str(cause)


def test_an_error_that_holds_what_cannot_travel_keeps_its_message() -> None:
    error = ValueError("locked")
    error.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(ShotproofError, match="ValueError in a worker process: locked"):
        raise Failure.of(error).error()
