import threading

import pytest

from shotproof.core.errors import ShotproofError, UnknownName
from shotproof.core.runtime.failure import Failure, WorkerTraceback


class TwoParts(ShotproofError):
    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} in {where}")
        self.where = where


class Prefixed(ShotproofError):
    """A plain copy would say it twice."""

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
    assert "test_failure.py" in str(cause)


def test_an_error_that_holds_what_cannot_travel_keeps_its_message() -> None:
    error = ValueError("locked")
    error.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(ShotproofError, match="ValueError in a worker process: locked"):
        raise Failure.of(error).error()
