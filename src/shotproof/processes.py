"""Work in several processes, with results in the order of the inputs, whatever the number of processes."""

from __future__ import annotations

import math
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from shotproof.errors import ShotproofError

Input = TypeVar("Input")
Output = TypeVar("Output")


def in_processes(
    work: Callable[[Input], Output], inputs: Sequence[Input], workers: int, chunk: int = 1
) -> Iterator[Output]:
    """`map` in worker processes, `chunk` inputs at a time; in this process where one would do.

    `work` is sent to each process once, so it may be a method of an object with much data.
    """
    workers = min(workers, math.ceil(len(inputs) / chunk))
    if workers <= 1:
        yield from map(work, inputs)
        return
    # Forking a process that has threads (Arrow's, PyTorch's) can hang it.
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(workers, context, _begin, (work,)) as pool:
            yield from pool.map(_do, inputs, chunksize=chunk)
    except BrokenProcessPool as error:
        raise ShotproofError("a worker process died, perhaps for want of memory: try fewer (--workers 1)") from error


_work: Callable[[Any], Any] | None = None  # of this worker process


def _begin(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work
    # An interrupt is for the process that waits; the workers end with it, without a traceback each.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # the processes share the cores already


def _do(value: Any) -> Any:
    assert _work is not None
    return _work(value)
