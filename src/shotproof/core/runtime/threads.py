"""Threads for work that shares memory; nobody waits for them where an error or Ctrl-C ends it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from shotproof.core.runtime.devices import one_thread_per_operation


@contextlib.contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """So many threads, each of which computes its operations by itself.

    Operations that several threads share make them wait for each other at every one, for long on a busy machine, and
    their results would depend on the number of threads.

    Args:
        count: how many

    Returns:
        The pool. Its threads are waited for where the block ends well; otherwise they end by themselves.
    """
    with one_thread_per_operation(), _pool(count) as pool:
        yield pool


@contextlib.contextmanager
def thread_beside() -> Iterator[ThreadPoolExecutor]:
    """A thread that computes as this one does, while this one waits for it and so answers Ctrl-C at once.

    Python answers Ctrl-C between steps of its own, and a gradient of seconds is one step.

    Returns:
        The pool of one thread, as `threads` gives it.
    """
    with _pool(1) as pool:
        yield pool


@contextlib.contextmanager
def _pool(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads whose operations use as many threads as those of this one."""
    import torch

    pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(torch.get_num_threads(),))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
