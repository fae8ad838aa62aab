"""Settings that never change a result, passed as `runtime=` or set for a `with` block."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from shotproof.core.errors import InputError
from shotproof.core.limits import BATCH, WORKERS
from shotproof.core.options import Checked, option
from shotproof.core.runtime.engine import Engine, Needs, engines
from shotproof.core.runtime.progress import Advance, progress_bar

Input = TypeVar("Input")
Output = TypeVar("Output")

_entered: ContextVar[tuple[Runtime, ...]] = ContextVar("runtimes", default=())


def default_cache() -> Path:
    """Return the cache folder: $SHOTPROOF_CACHE, or shotproof/ in $XDG_CACHE_HOME, or shotproof/ in ~/.cache.

    Returns:
        The folder, which may not exist yet.

    Example:
        >>> os.environ["SHOTPROOF_CACHE"] = "/data/cache"
        >>> default_cache().as_posix()
        '/data/cache'
        >>> del os.environ["SHOTPROOF_CACHE"]
    """
    if folder := os.environ.get("SHOTPROOF_CACHE"):
        return Path(folder)
    cache_home = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache_home) if cache_home else Path.home() / ".cache") / "shotproof"


@dataclass(frozen=True)
class Runtime(Checked):
    """Settings of computation that do not affect results. As a context manager, it is the current runtime in its block.

    Attributes:
        engine: the engine that runs work: a spelling such as `local(cores=4)`, or an engine
        workers: the number of processes; None for as many as pay off, 1 for this process only
        device: the device of networks, as in PyTorch; None for a GPU if there is one
        cache: the folder in which features are cached; None for no cache
        batch_size: the number of items in a batch of a network; None for one that suits the device
        progress: whether to show progress bars; None: if on a terminal or in a notebook

    Raises:
        InputError: a value is invalid.

    Example:
        >>> with Runtime(workers=2):
        ...     current_runtime().workers
        2
    """

    engine: str | Engine = option("local", "where work runs: processes of this machine, or a cluster")
    workers: int | None = option(None, "number of processes; default: as many as pay off", within=WORKERS)
    device: str | None = option(None, "cpu, cuda:0, or cuda for all GPUs; default: a GPU if there is one")
    cache: Path | None = option(default_cache, "folder in which features are cached")
    batch_size: int | None = option(None, "items in a batch of a network", within=BATCH)
    progress: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        engines.make(self.engine)  # raises if it is unknown

    def __enter__(self) -> Runtime:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _entered.set(_entered.get()[:-1])

    def map(
        self,
        work: Callable[[Input], Output],
        inputs: Sequence[Input],
        *,
        title: str | None,
        steps: Callable[[Input], int] | None = None,
        chunk: int = 1,
        needs: Needs = "core",
    ) -> Generator[Output, None, None]:
        """Apply a function to each input, with a progress bar. This runtime is the current one inside the function.

        Args:
            work: a function or a method; it is sent once to each worker, so its object may be large
            inputs: the inputs, which should be small
            title: the title of the bar; None for no bar, if the function shows its own
            steps: returns the number of steps by which an input advances the bar; None for one step each
            chunk: the number of inputs sent at a time
            needs: the resources that one input needs: a `core`, a core and a `share` of a GPU, or a whole `device`

        Returns:
            The outputs in the order of the inputs, for any number of workers, computed as they are consumed.

        Raises:
            ShotproofError: a worker died. An error raised by the function itself is raised unchanged.

        Example:
            >>> list(Runtime(workers=1).map(abs, [-1, 2, -3], title="absolute values"))
            [1, 2, 3]
        """
        if chunk < 1:
            raise InputError(f"chunk={chunk!r}: expected a whole number from 1")
        needs = "core" if needs == "share" and self.device == "cpu" else needs
        return self._map(work, inputs, title, steps or (lambda _: 1), chunk, needs)

    def _map(
        self,
        work: Callable[[Input], Output],
        inputs: Sequence[Input],
        title: str | None,
        steps: Callable[[Input], int],
        chunk: int,
        needs: Needs,
    ) -> Generator[Output, None, None]:
        outputs = engines.make(self.engine).map(_UnderRuntime(self, work, needs), inputs, self.workers, chunk, needs)
        visible = False if title is None else self.progress
        with contextlib.closing(outputs), progress_bar(title or "", sum(map(steps, inputs)), visible) as advance:
            for value, output in zip(inputs, outputs, strict=True):
                advance(steps(value))
                yield output

    def map_ranges(
        self, work: Callable[[range], Output], count: int, *, title: str, undivided: bool = False
    ) -> Generator[Output, None, None]:
        """Apply a function that needs a whole device to ranges of inputs: one range here, several on a cluster.

        Args:
            work: as in `map`; on this machine, it shows its own progress bar
            count: the number of inputs, at least 1
            title: the title of the bar
            undivided: whether the inputs must stay in one range

        Returns:
            The outputs, in the order of the ranges.

        Example:
            >>> list(Runtime().map_ranges(len, 600, title="counting"))
            [600]
        """
        ranges = [range(count)] if undivided else engines.make(self.engine).shards(count)
        return self.map(work, ranges, title=title if len(ranges) > 1 else None, steps=len, needs="device")

    @property
    def remote(self) -> bool:
        """Return whether work is sent to other machines, with networks, to the devices there."""
        return engines.make(self.engine).remote

    def progress_bar(self, title: str, total: int | None) -> AbstractContextManager[Advance]:
        """Show a progress bar, and yield the function that advances it.

        Args:
            title: the title of the bar
            total: the number of steps; None if it is unknown

        Example:
            >>> with Runtime(progress=False).progress_bar("reading", total=10) as advance:
            ...     advance(10)
        """
        return progress_bar(title, total, self.progress)


class _UnderRuntime(Generic[Input, Output]):
    """Function that runs under a runtime; in a worker, under one that uses only that process and shows no bars."""

    def __init__(self, runtime: Runtime, work: Callable[[Input], Output], needs: Needs) -> None:
        self.runtime = runtime
        self.work = work
        self.needs = needs

    def __call__(self, value: Input) -> Output:
        with self.runtime:
            return self.work(value)

    def __reduce__(self) -> tuple[Any, ...]:
        remote_runtime = replace(
            self.runtime, engine="local", workers=None if self.needs == "device" else 1, progress=False
        )
        if self.runtime.remote and (remote_runtime.device or "").startswith("cuda:"):
            remote_runtime = replace(remote_runtime, device="cuda")  # the engine knows which one is free
        return _UnderRuntime, (remote_runtime, self.work, self.needs)


def current_runtime() -> Runtime:
    """Return the runtime of the innermost `with`, or the default one.

    Example:
        >>> current_runtime().engine
        'local'
    """
    return _entered.get()[-1] if _entered.get() else Runtime()


def runtime(**changes: Any) -> Runtime:
    """Return the current runtime with changes, for a `with` or as an argument `runtime=`.

    Args:
        changes: fields of `Runtime`

    Returns:
        A new runtime.

    Raises:
        InputError: there is no such field, or its value is invalid.

    Example:
        >>> with runtime(workers=4), runtime(device="cpu"):
        ...     current_runtime().workers, current_runtime().device
        (4, 'cpu')
    """
    Runtime.require_known(changes, "a runtime has no")
    return replace(current_runtime(), **changes)


def resolve(runtime: Runtime | None) -> Runtime:
    """Return the runtime passed to a function, or the current one if it is None.

    Example:
        >>> resolve(Runtime(workers=3)).workers
        3
    """
    return current_runtime() if runtime is None else runtime
