"""An error on its way from a worker to the process that asked for the work, where it arrives as itself."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass
from typing import Any

from shotproof.core.errors import ShotproofError


class WorkerTraceback(Exception):
    """The cause of an error from a worker: where it happened there, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class Failure:
    """An error in a form that surely arrives."""

    pickled: bytes
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Pack an error, with what it says and what it holds, whatever its constructor takes."""
        return cls(_pickle(error), "".join(traceback.format_exception(error)))

    def error(self) -> BaseException:
        """The error again, with the worker's traceback as its cause."""
        error: BaseException = pickle.loads(self.pickled)
        error.__cause__ = WorkerTraceback(self.traceback)
        return error


def _pickle(error: BaseException) -> bytes:
    import cloudpickle

    # Python makes an error anew from its message alone, which fails, or changes the message, where the constructor
    # takes something else. The plain way comes first as built-in errors keep more than their message.
    for form in (error, _Parts(error)):
        try:
            pickled: bytes = cloudpickle.dumps(form)
            copy = pickle.loads(pickled)
        except Exception:  # noqa: BLE001 - a class of somebody else's: anything may go wrong
            continue
        if type(copy) is type(error) and str(copy) == str(error):
            return pickled
    return pickle.dumps(ShotproofError(f"{type(error).__name__} in a worker process: {error}"))


class _Parts:
    """Pickles to an error that is made without its constructor."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return _assemble, (type(self.error), self.error.args, vars(self.error))


def _assemble(kind: type[BaseException], arguments: tuple[Any, ...], held: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(held)
    return error
