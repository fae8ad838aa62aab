"""What travels between this process and workers: the work, state that it may lean on, and errors on their way back.

A worker process is a fresh interpreter that lives longer than one map. What was changed here since it started, e.g. a
method that was registered at run time, has to reach it before the work runs.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from shotproof.core.errors import InputError, ShotproofError, first_line

State = Any
SetState = Callable[[State], None]

ONE_THREAD = dict.fromkeys(
    ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"], "1"
)  # the environment of a worker, which shares the cores with the others

# What belongs to a machine and not to who works on it: a worker on another one keeps its own.
_OF_A_MACHINE = re.compile(
    r"(RAY|SSH|XDG|SLURM|KUBERNETES|CONDA|NVIDIA)_.*|CUDA_VISIBLE_DEVICES|(LD_LIBRARY_|PYTHON)?PATH|PYTHONHOME|VIRTUAL_ENV"
    r"|HOME|USER|LOGNAME|HOSTNAME|SHELL|TERM|PWD|OLDPWD|TMPDIR|TMP|TEMP"
)

_carried: dict[str, tuple[Callable[[], State], SetState, SetState]] = {}
_brought: set[str] = set()  # variables of the environment that came from another machine


def carry(
    name: str, get_state: Callable[[], State], set_state: SetState, set_elsewhere: SetState | None = None
) -> None:
    """Have a state of this process restored in each worker before any work runs there.

    Args:
        name: What it is; a second call with the same name replaces the first.
        get_state: Gives the state, which must be picklable; called once per map.
        set_state: Takes the state, in a worker. It travels by its import path, so it has to be a function of a module
            (or a method of an object that pickles to itself): it acts on that module as the worker imports it.
        set_elsewhere: The same on another machine, where it is something else; None: the same.

    Example:
        >>> carry("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit)
    """
    _carried[name] = (get_state, set_state, set_elsewhere or set_state)


def carried_states(*, elsewhere: bool = False) -> list[tuple[SetState, State]]:
    """The present states, each with the function that restores it, here or elsewhere, in order of registration."""
    return [(there if elsewhere else here, get_state()) for get_state, here, there in _carried.values()]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ONE_THREAD}


def _set_environment(wanted: dict[str, str]) -> None:
    for name in _environment().keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)


def _add_to_environment(wanted: dict[str, str]) -> None:
    """Have what another machine's user has set, besides what belongs to this machine."""
    for name in _brought - wanted.keys():
        os.environ.pop(name, None)
    brought = {name: value for name, value in wanted.items() if not _OF_A_MACHINE.fullmatch(name)}
    _brought.clear()
    _brought.update(brought)
    os.environ.update(brought)


def _change_directory(wanted: str) -> None:
    with contextlib.suppress(OSError):  # not on this machine: whoever needs a file of it says so
        os.chdir(wanted)


def _add_to_search_path(wanted: list[str]) -> None:
    there = [path for path in wanted if Path(path).exists()]
    sys.path[:] = [*there, *(path for path in sys.path if path not in wanted)]


def _set_search_path(wanted: list[str]) -> None:
    sys.path[:] = wanted


def _search_path() -> list[str]:
    return list(sys.path)


# A notebook changes these between two maps; relative paths and imports must mean the same in a worker.
carry("working directory", os.getcwd, os.chdir, _change_directory)
carry("environment", _environment, _set_environment, _add_to_environment)
carry("search path", _search_path, _set_search_path, _add_to_search_path)


class CannotTravel(InputError):
    """Work that cannot be pickled, so that it can be done in this process only."""


def pack(work: Callable[[Any], Any], file: IO[bytes], *, elsewhere: bool = False) -> None:
    """Write the carried states and the work.

    Args:
        work: A function or a method of an object.
        file: Where to.
        elsewhere: Whether workers may be on other machines.

    Raises:
        CannotTravel: It cannot be pickled.
    """
    import cloudpickle

    try:
        cloudpickle.dump(carried_states(elsewhere=elsewhere), file)
        cloudpickle.dump(work, file)
    except (pickle.PicklingError, TypeError, AttributeError, NotImplementedError, RecursionError) as error:
        reason = f"{first_line(error)}; expected what can be pickled, or workers=1"
        raise CannotTravel(f"this work cannot be sent to worker processes: {reason}") from error


def unpack(file: IO[bytes]) -> Callable[[Any], Any]:
    """The work, after the states that it leans on were restored in this process."""
    for set_state, state in pickle.load(file):
        set_state(state)
    work: Callable[[Any], Any] = pickle.load(file)
    return work


def compute_in_threads(count: int) -> None:
    """Have PyTorch, where it is loaded, compute an operation in so many threads."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)


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
