"""What travels to workers along with the work: state of this process that the work may lean on.

A worker process is a fresh interpreter that lives longer than one map. What was changed here since it started, e.g. a
method that was registered at run time, has to reach it before the work runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
