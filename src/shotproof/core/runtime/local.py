"""The engine that uses the cores of this machine: worker processes that load the work once and are kept."""

from __future__ import annotations

import contextlib
import math
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from shotproof.core.errors import ShotproofError, WriteFailed, first_line
from shotproof.core.options import option
from shotproof.core.runtime.carried import CannotTravel, Failure, pack
from shotproof.core.runtime.engine import Engine, Needs
from shotproof.core.runtime.worker import do_block, in_worker
from shotproof.core.runtime.worker_pool import borrow_pool, discard

GRACE_SECONDS = 0.5  # for blocks under way that nobody waits for any more; then their processes are killed
BLOCKS_AHEAD = 2  # per worker: enough to keep it busy, few enough for the memory of one who is slow to take results

Input = TypeVar("Input")
Output = TypeVar("Output")
Done = tuple[list[Any], Failure | None]  # the outputs of a block, and what ended them


@dataclass(frozen=True)
class LocalEngine(Engine):
    """Worker processes on this machine, by loky. A script that uses them needs no `__main__` guard.

    Example:
        >>> list(LocalEngine().map(str.upper, ["a", "b"], workers=1, chunk=1))
        ['A', 'B']
    """

    about = "worker processes on this machine"

    trial_seconds: float = option(1.0, "seconds of work in this process before it is known whether workers pay off")
    worth_seconds: float = option(4.0, "seconds of work left from which on they do: to start them takes one or two")
    cores: int | None = option(None, "workers where nobody says how many; None: one per core that may be used", least=1)

    def map(
        self,
        work: Callable[[Input], Output],
        inputs: Sequence[Input],
        workers: int | None = None,
        chunk: int = 1,
        needs: Needs = "core",
    ) -> Generator[Output, None, None]:
        """Do the work on each input, as `Engine.map` says.

        With `workers` None it begins in this process, and goes on in one worker per core where that pays off. What
        needs a whole device is done in this process.
        """
        if in_worker() or needs == "device":
            workers = 1  # the others have the cores already, or the work takes them
        if workers is None:
            return self._as_many_as_pay_off(work, inputs, chunk)
        if min(workers, _blocks(inputs, chunk)) <= 1:
            return _here(work, inputs)
        return _in_workers(work, inputs, workers, chunk)

    def _as_many_as_pay_off(
        self, work: Callable[[Input], Output], inputs: Sequence[Input], chunk: int
    ) -> Generator[Output, None, None]:
        spent = 0.0
        for done, value in enumerate(inputs, 1):
            began = time.perf_counter()
            output = work(value)
            spent += time.perf_counter() - began
            yield output
            left = len(inputs) - done
            if spent >= self.trial_seconds and spent / done * left > self.worth_seconds and left > chunk:
                yield from self._in_workers_if_possible(work, inputs[done:], chunk)
                return

    def _in_workers_if_possible(
        self, work: Callable[[Input], Output], inputs: Sequence[Input], chunk: int
    ) -> Generator[Output, None, None]:
        cores = self.cores or usable_cores()
        try:
            yield from _in_workers(work, inputs, cores, chunk) if cores > 1 else _here(work, inputs)
        except CannotTravel:
            yield from _here(work, inputs)


def usable_cores() -> int:
    """How many cores this process may use, by its affinity and the limits of its container."""
    import loky

    cores: int = loky.cpu_count()
    return cores


def _blocks(inputs: Sequence[Input], chunk: int) -> int:
    return math.ceil(len(inputs) / chunk)


def _here(work: Callable[[Input], Output], inputs: Sequence[Input]) -> Generator[Output, None, None]:
    yield from map(work, inputs)


def _in_workers(
    work: Callable[[Input], Output], inputs: Sequence[Input], workers: int, chunk: int
) -> Generator[Output, None, None]:
    import cloudpickle

    workers_needed = min(workers, _blocks(inputs, chunk))
    begun: deque[Future[Done]] = deque()
    with _file_of(work) as file, borrow_pool(workers_needed, workers) as pool:
        try:
            for start in range(0, len(inputs), chunk):
                block = cloudpickle.dumps(list(inputs[start : start + chunk]))
                begun.append(pool.submit(do_block, str(file), block))
                if len(begun) >= BLOCKS_AHEAD * workers_needed:
                    yield from _outputs(begun.popleft())
            while begun:
                yield from _outputs(begun.popleft())
        except KeyboardInterrupt:
            discard(pool, although_shared=True)
            raise
        except BrokenProcessPool as error:
            discard(pool, although_shared=True)
            raise ShotproofError(_what_broke(error)) from error
        finally:
            file.unlink(missing_ok=True)  # workers see that and stop before their next input
            if wait(begun, timeout=GRACE_SECONDS if begun else 0).not_done:
                discard(pool)


def _outputs(future: Future[Done]) -> Iterator[Any]:
    outputs, failure = future.result()
    yield from outputs
    if failure is not None:
        raise failure.error()


def _what_broke(error: BrokenProcessPool) -> str:
    from loky.process_executor import TerminatedWorkerError

    if isinstance(error, TerminatedWorkerError):
        return "a worker process died, perhaps for want of memory: try fewer workers"
    reason = str(error.__cause__ or error).strip(' \n"').splitlines()[-1]
    return f"an output of a worker process cannot be unpickled here: {reason}; expected one that can, or workers=1"


@contextlib.contextmanager
def _file_of(work: Callable[[Input], Output]) -> Iterator[Path]:
    """Give a private file that holds the carried states and the work, for any number of workers to load."""
    from loky.backend import resource_tracker

    try:
        with tempfile.NamedTemporaryFile(prefix="shotproof-work-", delete=False) as file:
            path = Path(file.name)
            try:
                pack(work, file)
            except BaseException:
                path.unlink()
                raise
    except OSError as error:
        folder = tempfile.gettempdir()
        reason = f"{first_line(error)}; expected room for it there, or in a folder that TMPDIR names"
        raise WriteFailed(f"the work for worker processes cannot be written to {folder}: {reason}") from error
    resource_tracker.register(str(path), "file")  # removes it should this process be killed
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        resource_tracker.unregister(str(path), "file")
