"""State shared with workers: functions, the process state they depend on, and errors.

A worker process is a fresh interpreter that is reused across maps. State that has changed here since it started, e.g. a
method that was registered at run time, must be restored there before the function runs.
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
)  # environment of a worker, which shares the cores with other workers

# Variables that belong to a machine rather than to its user: a worker on another machine keeps its own.
_MACHINE_VARIABLES = re.compile(
    r"(RAY|SSH|XDG|SLURM|KUBERNETES|CONDA|NVIDIA)_.*|CUDA_VISIBLE_DEVICES|(LD_LIBRARY_|PYTHON)?PATH|PYTHONHOME|VIRTUAL_ENV"
    r"|HOME|USER|LOGNAME|HOSTNAME|SHELL|TERM|PWD|OLDPWD|TMPDIR|TMP|TEMP"
)

_shared: dict[str, tuple[Callable[[], State], SetState, SetState]] = {}
_imported: set[str] = set()  # environment variables that came from another machine


def share_state(
    name: str, get_state: Callable[[], State], set_state: SetState, set_elsewhere: SetState | None = None
) -> None:
    """Register a state of this process to be restored in each worker before a function runs there.

    Args:
        name: the name of the state; a second call with the same name replaces the first
        get_state: returns the state, which must be picklable; called once per map
        set_state: restores the state in a worker. It is pickled by its import path, so it must be a function of a
            module (or a method of an object that pickles to itself): it acts on that module as the worker imports it
        set_elsewhere: restores the state on another machine; None if it is the same as `set_state`

    Example:
        >>> share_state("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit)
    """
    _shared[name] = (get_state, set_state, set_elsewhere or set_state)


def shared_states(*, elsewhere: bool = False) -> list[tuple[SetState, State]]:
    """Return the current states, each with the function that restores it, in order of registration.

    Args:
        elsewhere: whether they are restored on other machines
    """
    return [(set_there if elsewhere else set_here, get_state()) for get_state, set_here, set_there in _shared.values()]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ONE_THREAD}


def _set_environment(variables: dict[str, str]) -> None:
    for name in _environment().keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)


def _add_to_environment(variables: dict[str, str]) -> None:
    """Add the variables that a user has set on another machine, except those that belong to a machine."""
    for name in _imported - variables.keys():
        os.environ.pop(name, None)
    imported = {name: value for name, value in variables.items() if not _MACHINE_VARIABLES.fullmatch(name)}
    _imported.clear()
    _imported.update(imported)
    os.environ.update(imported)


def _change_directory(folder: str) -> None:
    with contextlib.suppress(OSError):  # missing on this machine: reading a file there will say so
        os.chdir(folder)


def _add_to_search_path(paths: list[str]) -> None:
    existing = [path for path in paths if Path(path).exists()]
    sys.path[:] = [*existing, *(path for path in sys.path if path not in paths)]


def _set_search_path(paths: list[str]) -> None:
    sys.path[:] = paths


def _search_path() -> list[str]:
    return list(sys.path)


# A notebook may change these between two maps; relative paths and imports must mean the same in a worker.
share_state("working directory", os.getcwd, os.chdir, _change_directory)
share_state("environment", _environment, _set_environment, _add_to_environment)
share_state("search path", _search_path, _set_search_path, _add_to_search_path)


class CannotTravel(InputError):
    """Function that cannot be pickled, so it can only run in this process."""


def pack(work: Callable[[Any], Any], file: IO[bytes], *, elsewhere: bool = False) -> None:
    """Write the shared states and a function to a file.

    Args:
        work: a function, or a method of an object
        file: the file to write to
        elsewhere: whether workers may be on other machines

    Raises:
        CannotTravel: the function cannot be pickled.
    """
    import cloudpickle

    try:
        cloudpickle.dump(shared_states(elsewhere=elsewhere), file)
        cloudpickle.dump(work, file)
    except (pickle.PicklingError, TypeError, AttributeError, NotImplementedError, RecursionError) as error:
        reason = f"{first_line(error)}; use a picklable function, or workers=1"
        raise CannotTravel(f"the function cannot be sent to worker processes: {reason}") from error


def unpack(file: IO[bytes]) -> Callable[[Any], Any]:
    """Read what `pack` wrote: restore the states in this process, and return the function."""
    for set_state, state in pickle.load(file):
        set_state(state)
    work: Callable[[Any], Any] = pickle.load(file)
    return work


def compute_in_threads(count: int) -> None:
    """Set the number of threads that PyTorch uses for an operation, if PyTorch is loaded."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)


class WorkerTraceback(Exception):
    """Traceback of an error in a worker, as text; set as the cause of that error."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class Failure:
    """Error in a form that can always be unpickled."""

    pickled: bytes
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Pack an error with its message and attributes, whatever arguments its constructor takes."""
        return cls(_pickle(error), "".join(traceback.format_exception(error)))

    def error(self) -> BaseException:
        """Rebuild the error, with the worker's traceback as its cause."""
        error: BaseException = pickle.loads(self.pickled)
        error.__cause__ = WorkerTraceback(self.traceback)
        return error


def _pickle(error: BaseException) -> bytes:
    import cloudpickle

    # Python unpickles an error from its message alone, which fails or changes the message if the constructor takes
    # other arguments. The default comes first, as built-in errors keep more than their message.
    for candidate in (error, _Parts(error)):
        try:
            pickled: bytes = cloudpickle.dumps(candidate)
            copy = pickle.loads(pickled)
        except Exception:  # noqa: BLE001 - a foreign class may raise anything
            continue
        if type(copy) is type(error) and str(copy) == str(error):
            return pickled
    return pickle.dumps(ShotproofError(f"{type(error).__name__} in a worker process: {error}"))


class _Parts:
    """Wrapper that unpickles to an error without calling its constructor."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return _assemble, (type(self.error), self.error.args, vars(self.error))


def _assemble(kind: type[BaseException], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(attributes)
    return error
