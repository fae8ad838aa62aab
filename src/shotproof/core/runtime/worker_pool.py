"""Worker processes of this process: started once, reused across maps, and ended with it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from multiprocessing import resource_tracker, util
from typing import ParamSpec, TypeVar

from shotproof.core.runtime.shared_state import ONE_THREAD
from shotproof.core.runtime.worker import begin

IDLE_SECONDS = 300  # after which an idle worker ends; the next map restarts it

Output = TypeVar("Output")
Arguments = ParamSpec("Arguments")


class WorkerPool:
    """Pool of worker processes that are fresh interpreters, and never run the user's script again."""

    def __init__(self, size: int) -> None:
        import loky

        if hasattr(signal, "pthread_sigmask"):
            resource_tracker.ensure_running()  # starting it unblocks interrupts, which `submit` blocks
        self.size = size
        self.owner = os.getpid()
        self.users = 0
        self._executor = loky.ProcessPoolExecutor(
            size, timeout=IDLE_SECONDS, initializer=begin, initargs=(self.owner,), env=ONE_THREAD
        )

    def submit(
        self, function: Callable[Arguments, Output], *arguments: Arguments.args, **options: Arguments.kwargs
    ) -> Future[Output]:
        """Call a function in a worker."""
        with _interrupts_blocked():
            future: Future[Output] = self._executor.submit(function, *arguments, **options)
            return future

    def is_alive(self) -> bool:
        """Return whether the pool belongs to this process, not to a parent that forked it, and accepts work."""
        if self.owner != os.getpid():
            return False
        try:
            self.submit(os.getpid)
        except RuntimeError:  # broken or shut down
            return False
        return True

    def kill(self) -> None:
        """Kill all workers immediately."""
        self._executor.shutdown(wait=True, kill_workers=True)


_lock = threading.RLock()
_pool: WorkerPool | None = None
_ends_at_exit = False


@contextlib.contextmanager
def borrow_pool(fewest: int, most: int) -> Iterator[WorkerPool]:
    """Yield the pool of this process, restarted if it has fewer or more workers than allowed.

    A pool in use by another map is shared as it is.

    Args:
        fewest: the minimum number of workers, with which a new pool starts
        most: the maximum number of workers
    """
    global _pool, _ends_at_exit
    with _lock:
        pool = _pool if _pool is not None and _pool.is_alive() else None
        if pool is not None and not pool.users and not fewest <= pool.size <= most:
            pool.kill()
            pool = None
        if pool is None:
            pool = WorkerPool(fewest)
            pool.submit(os.getpid)  # starts the workers; loky now registers its exit hook, so ours runs first
            if not _ends_at_exit:
                # Not atexit: it runs after Python has joined all threads, and loky's thread waits for all work.
                threading._register_atexit(_end)  # type: ignore[attr-defined]
                _ends_at_exit = True
        _pool = pool
        pool.users += 1
    try:
        yield pool
    finally:
        with _lock:
            pool.users -= 1


def discard(pool: WorkerPool, *, although_shared: bool = False) -> None:
    """Kill a pool whose results are no longer needed; the next map starts a new one.

    Args:
        pool: a pool that is currently borrowed
        although_shared: whether to kill it even if another map uses it
    """
    global _pool
    with _lock:
        if pool.users > 1 and not although_shared:
            return
        if _pool is pool:
            _pool = None
        pool.kill()


def abandon_workers() -> None:
    """Remove shared resources before the process exits abruptly; otherwise the resource tracker would warn of each.

    Workers end by themselves after their parent.
    """
    util._run_finalizers(0)  # type: ignore[attr-defined]


def _end() -> None:
    if _pool is not None and _pool.owner == os.getpid():
        _pool.kill()


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block interrupts, so that processes started in the block never receive Ctrl-C, not even during startup."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
