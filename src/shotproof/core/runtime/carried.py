"""What travels to workers along with the work: state of this process that the work may lean on.

A worker process is a fresh interpreter that lives longer than one map. What was changed here since it started, e.g. a
method that was registered at run time, has to reach it before the work runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

State = Any
SetState = Callable[[State], None]

ONE_THREAD = dict.fromkeys(
    ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"], "1"
)  # the environment of a worker, which shares the cores with the others

_carried: dict[str, tuple[Callable[[], State], SetState]] = {}


def carry(name: str, get_state: Callable[[], State], set_state: SetState) -> None:
    """Have a state of this process restored in each worker before any work runs there.

    Args:
        name: What it is; a second call with the same name replaces the first.
        get_state: Gives the state, which must be picklable; called once per map.
        set_state: Takes the state, in a worker. It travels by its import path, so it has to be a function of a module
            (or a method of an object that pickles to itself): it acts on that module as the worker imports it.

    Example:
        >>> carry("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit)
    """
    _carried[name] = (get_state, set_state)


def carried_states() -> list[tuple[SetState, State]]:
    """The present states, each with the function that restores it, in order of registration."""
    return [(set_state, get_state()) for get_state, set_state in _carried.values()]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ONE_THREAD}


def _set_environment(wanted: dict[str, str]) -> None:
    for name in _environment().keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)


def _set_search_path(wanted: list[str]) -> None:
    sys.path[:] = wanted


def _search_path() -> list[str]:
    return list(sys.path)


# A notebook changes these between two maps; relative paths and imports must mean the same in a worker.
carry("working directory", os.getcwd, os.chdir)
carry("environment", _environment, _set_environment)
carry("search path", _search_path, _set_search_path)
