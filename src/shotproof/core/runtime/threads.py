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
    with one_thread_per_operation():
        pool = ThreadPoolExecutor(count, initializer=_one_thread)
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
