"""What happens in a worker process: it loads the work once, then does block after block of inputs.

The work lies in a file that exists as long as somebody waits for results: a worker that finds it gone stops.
"""

from __future__ import annotations

import math
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shotproof.core.runtime.carried import Failure, compute_in_threads, unpack

_SECONDS_BETWEEN_LOOKS = 0.5  # at whether the parent lives

_begun = False
_works: dict[str, Callable[[Any], Any]] = {}  # by the file, those of maps that go on side by side


def in_worker() -> bool:
    """Whether this process is a worker: maps stay in it, and it shows no progress."""
    return _begun


def become_worker() -> None:
    """Note that this process is a worker."""
    global _begun
    _begun = True


def begin(parent: int) -> None:
    """Prepare this process as a worker of another one, which it does not outlive.

    Args:
        parent: The id of the process that it works for.
    """
    become_worker()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent, which ends its workers
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    import loky.process_executor

    # It would restart a worker that grew by 300 MB, which is what loading the work does.
    loky.process_executor._MEMORY_LEAK_CHECK_DELAY = math.inf


def do_block(work_file: str, block: bytes) -> tuple[list[Any], Failure | None]:
    """Do a block of inputs.

    Args:
        work_file: Where the work lies.
        block: The inputs, pickled.

    Returns:
        The outputs as far as they got, and the failure that ended them.
    """
    outputs: list[Any] = []
    try:
        work = _load(work_file)
        for value in pickle.loads(block):
            if not Path(work_file).exists():
                break
            outputs.append(work(value))
    except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
        return outputs, Failure.of(error)
    return outputs, None


def _load(work_file: str) -> Callable[[Any], Any]:
    if work_file not in _works:
        for other in list(_works):
            if not Path(other).exists():
                del _works[other]
        with Path(work_file).open("rb") as file:
            _works[work_file] = unpack(file)
    compute_in_threads(1)
    return _works[work_file]


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(1)
