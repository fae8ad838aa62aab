"""The worker processes of this process: started once, kept from one map to the next, ended with it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from multiprocessing import resource_tracker, util
from typing import ParamSpec, TypeVar

from shotproof.core.runtime.carried import ONE_THREAD
from shotproof.core.runtime.worker import begin

IDLE_SECONDS = 300  # after which a worker ends; the next map starts it again

Output = TypeVar("Output")
Arguments = ParamSpec("Arguments")


class WorkerPool:
    """Worker processes that are fresh interpreters: they never run the script of the user again."""

    def __init__(self, size: int) -> None:
        import loky

        if hasattr(signal, "pthread_sigmask"):
            resource_tracker.ensure_running()  # when it starts it lets interrupts through, which submit holds back
        self.size = size
        self.owner = os.getpid()
        self.users = 0
        self._executor = loky.ProcessPoolExecutor(
            size, timeout=IDLE_SECONDS, initializer=begin, initargs=(self.owner,), env=ONE_THREAD
        )

    def submit(
        self, function: Callable[Arguments, Output], *arguments: Arguments.args, **options: Arguments.kwargs
    ) -> Future[Output]:
        """Have a worker call a function."""
        with _interrupts_held_back():
            future: Future[Output] = self._executor.submit(function, *arguments, **options)
            return future

    def lives(self) -> bool:
        """Whether it belongs to this process (not to one that forked it) and takes work."""
        if self.owner != os.getpid():
            return False
        try:
            self.submit(os.getpid)
        except RuntimeError:  # it is broken, or shut down
            return False
        return True

    def kill(self) -> None:
        """End the workers at once, whatever they do."""
        self._executor.shutdown(wait=True, kill_workers=True)


_lock = threading.RLock()
_kept: WorkerPool | None = None
_ends_at_exit = False


@contextlib.contextmanager
def borrow_pool(fewest: int, most: int) -> Iterator[WorkerPool]:
    """Give the pool of this process, started anew where it has fewer or more workers than allowed.

    A pool that others use at the same time is shared as it is.
    """
    global _kept, _ends_at_exit
    with _lock:
        kept = _kept if _kept is not None and _kept.lives() else None
        if kept is not None and not kept.users and not fewest <= kept.size <= most:
            kept.kill()
            kept = None
        if kept is None:
            kept = WorkerPool(fewest)
            kept.submit(os.getpid)  # starts the workers, and has loky register what it does at exit: ours comes first
            if not _ends_at_exit:
                # Not atexit: by then Python has waited for threads, and loky's waits until all work is done.
                threading._register_atexit(_end)  # type: ignore[attr-defined]
                _ends_at_exit = True
        _kept = kept
        kept.users += 1
    try:
        yield kept
    finally:
        with _lock:
            kept.users -= 1


def discard(pool: WorkerPool, *, although_shared: bool = False) -> None:
    """Kill a pool whose workers do what nobody waits for; the next map starts a new one.

    Args:
        pool: One that was borrowed, and not given back yet.
        although_shared: Whether to kill it too where another map uses it.
    """
    global _kept
    with _lock:
        if pool.users > 1 and not although_shared:
            return
        if _kept is pool:
            _kept = None
        pool.kill()


def abandon_workers() -> None:
    """Remove what workers share, before a process ends at once: whoever watches over it would tell of each piece.

    Workers end by themselves after their parent.
    """
    util._run_finalizers(0)  # type: ignore[attr-defined]


def _end() -> None:
    if _kept is not None and _kept.owner == os.getpid():
        _kept.kill()


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes that start within it never see Ctrl-C, not even before they can ask not to."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
