"""Engine that uses the cores of this machine: worker processes that load a function once and are reused."""

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
from shotproof.core.runtime.engine import Engine, Needs
from shotproof.core.runtime.shared_state import CannotTravel, Failure, pack
from shotproof.core.runtime.worker import do_block, in_worker
from shotproof.core.runtime.worker_pool import borrow_pool, discard

GRACE_SECONDS = 0.5  # for running blocks whose results are no longer needed; then their processes are killed
BLOCKS_AHEAD = 2  # per worker: enough to keep it busy, few enough to bound memory if results are consumed slowly

Input = TypeVar("Input")
Output = TypeVar("Output")
BlockResult = tuple[list[Any], Failure | None]  # the outputs of a block, and the error that ended it


@dataclass(frozen=True)
class LocalEngine(Engine):
    """Worker processes on this machine, by loky. A script that uses them needs no `__main__` guard.

    Example:
        >>> list(LocalEngine().map(str.upper, ["a", "b"], workers=1, chunk=1))
        ['A', 'B']
    """

    about = "worker processes on this machine"

    trial_seconds: float = option(1.0, "seconds of work in this process before deciding whether workers pay off")
    worth_seconds: float = option(4.0, "seconds of remaining work from which they do: starting them takes one or two")
    cores: int | None = option(None, "workers, if no number is given; None: one per available core", least=1)

    def map(
        self,
        work: Callable[[Input], Output],
        inputs: Sequence[Input],
        workers: int | None = None,
        chunk: int = 1,
        needs: Needs = "core",
    ) -> Generator[Output, None, None]:
        """Apply a function to each input, as in `Engine.map`.

        If `workers` is None, it starts in this process, and continues in one worker per core if that pays off. Work
        that needs a whole device runs in this process.
        """
        if in_worker() or needs == "device":
            workers = 1  # other workers already use the cores, or the work itself does
        if workers is None:
            return self._workers_if_they_pay_off(work, inputs, chunk)
        if min(workers, _count_blocks(inputs, chunk)) <= 1:
            return _in_this_process(work, inputs)
        return _in_workers(work, inputs, workers, chunk)

    def _workers_if_they_pay_off(
        self, work: Callable[[Input], Output], inputs: Sequence[Input], chunk: int
    ) -> Generator[Output, None, None]:
        spent = 0.0
        for done, value in enumerate(inputs, 1):
            start = time.perf_counter()
            output = work(value)
            spent += time.perf_counter() - start
            yield output
            remaining = len(inputs) - done
            if spent >= self.trial_seconds and spent / done * remaining > self.worth_seconds and remaining > chunk:
                yield from self._in_workers_if_possible(work, inputs[done:], chunk)
                return

    def _in_workers_if_possible(
        self, work: Callable[[Input], Output], inputs: Sequence[Input], chunk: int
    ) -> Generator[Output, None, None]:
        cores = self.cores or usable_cores()
        try:
            yield from _in_workers(work, inputs, cores, chunk) if cores > 1 else _in_this_process(work, inputs)
        except CannotTravel:
            yield from _in_this_process(work, inputs)


def usable_cores() -> int:
    """Return the number of cores that this process may use, given its affinity and its container's limits."""
    import loky

    cores: int = loky.cpu_count()
    return cores


def _count_blocks(inputs: Sequence[Input], chunk: int) -> int:
    return math.ceil(len(inputs) / chunk)


def _in_this_process(work: Callable[[Input], Output], inputs: Sequence[Input]) -> Generator[Output, None, None]:
    yield from map(work, inputs)


def _in_workers(
    work: Callable[[Input], Output], inputs: Sequence[Input], workers: int, chunk: int
) -> Generator[Output, None, None]:
    import cloudpickle

    workers_needed = min(workers, _count_blocks(inputs, chunk))
    pending: deque[Future[BlockResult]] = deque()
    with _packed_file(work) as file, borrow_pool(workers_needed, workers) as pool:
        try:
            for start in range(0, len(inputs), chunk):
                block = cloudpickle.dumps(list(inputs[start : start + chunk]))
                pending.append(pool.submit(do_block, str(file), block))
                if len(pending) >= BLOCKS_AHEAD * workers_needed:
                    yield from _outputs(pending.popleft())
            while pending:
                yield from _outputs(pending.popleft())
        except KeyboardInterrupt:
            discard(pool, although_shared=True)
            raise
        except BrokenProcessPool as error:
            discard(pool, although_shared=True)
            raise ShotproofError(_describe_broken_pool(error)) from error
        finally:
            file.unlink(missing_ok=True)  # workers check for it, and stop before their next input
            if wait(pending, timeout=GRACE_SECONDS if pending else 0).not_done:
                discard(pool)


def _outputs(future: Future[BlockResult]) -> Iterator[Any]:
    outputs, failure = future.result()
    yield from outputs
    if failure is not None:
        raise failure.error()


def _describe_broken_pool(error: BrokenProcessPool) -> str:
    from loky.process_executor import TerminatedWorkerError

    if isinstance(error, TerminatedWorkerError):
        return "a worker process died, possibly out of memory: try fewer workers"
    reason = str(error.__cause__ or error).strip(' \n"').splitlines()[-1]
    return (
        f"an output of a worker process cannot be unpickled in this process: {reason}; "
        "return a picklable object, or use workers=1"
    )


@contextlib.contextmanager
def _packed_file(work: Callable[[Input], Output]) -> Iterator[Path]:
    """Write the shared states and the function to a temporary file, for any number of workers to load."""
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
        reason = f"{first_line(error)}; free some space there, or set TMPDIR to another folder"
        raise WriteFailed(f"cannot write the data for worker processes to {folder}: {reason}") from error
    resource_tracker.register(str(path), "file")  # removes it if this process is killed
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        resource_tracker.unregister(str(path), "file")
