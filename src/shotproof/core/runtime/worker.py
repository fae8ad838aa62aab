"""Worker side of the local engine: a process loads a function once, then processes one block of inputs after another.

The function is in a file that exists as long as results are needed; a worker stops when the file is gone.
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

from shotproof.core.runtime.shared_state import Failure, compute_in_threads, unpack

_SECONDS_BETWEEN_CHECKS = 0.5  # of whether the parent is alive

_is_worker = False
_works: dict[str, Callable[[Any], Any]] = {}  # by file; maps may run concurrently


def in_worker() -> bool:
    """Return whether this process is a worker; its maps use no further processes, and it shows no progress bars."""
    return _is_worker


def become_worker() -> None:
    """Mark this process as a worker."""
    global _is_worker
    _is_worker = True


def begin(parent: int) -> None:
    """Initialize this process as a worker that ends with its parent.

    Args:
        parent: the id of the parent process
    """
    become_worker()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts, and ends its workers
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    import loky.process_executor

    # loky would restart a worker that grew by 300 MB, as loading a function may do.
    loky.process_executor._MEMORY_LEAK_CHECK_DELAY = math.inf


def do_block(work_file: str, block: bytes) -> tuple[list[Any], Failure | None]:
    """Apply the function to a block of inputs.

    Args:
        work_file: the file with the packed function
        block: the inputs, pickled

    Returns:
        The outputs so far, and the failure that ended the block, if any.
    """
    outputs: list[Any] = []
    try:
        work = _load(work_file)
        for value in pickle.loads(block):
            if not Path(work_file).exists():
                break
            outputs.append(work(value))
    except BaseException as error:  # noqa: BLE001 - raised again by the process that waits for the result
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
        time.sleep(_SECONDS_BETWEEN_CHECKS)
    os._exit(1)
