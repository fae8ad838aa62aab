"""One object for what never changes a result, passed down as `runtime=` or set for all that happens in a `with`."""

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
    """The folder of the cache: $SHOTPROOF_CACHE, else shotproof/ in $XDG_CACHE_HOME, else in ~/.cache.

    Returns:
        The folder, which need not exist yet.

    Example:
        >>> os.environ["SHOTPROOF_CACHE"] = "/data/cache"
        >>> default_cache().as_posix()
        '/data/cache'
        >>> del os.environ["SHOTPROOF_CACHE"]
    """
    if chosen := os.environ.get("SHOTPROOF_CACHE"):
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "shotproof"


@dataclass(frozen=True)
class Runtime(Checked):
    """How things are computed, without a say in what comes out. As a context manager, it is the current one within.

    Attributes:
        engine: Where work is done: a spelling such as `local(cores=4)`, or an engine.
        workers: How many processes; None is as many as pay off, 1 is this one alone.
        device: Where networks run, as PyTorch spells it; None is a GPU if there is one.
        cache: The folder that keeps features; None keeps nothing.
        batch_size: How many items a network takes at a time; None is what suits the device.
        progress: Whether bars are shown; None is on a terminal and in a notebook.

    Raises:
        InputError: A value that cannot be used.

    Example:
        >>> with Runtime(workers=2):
        ...     current_runtime().workers
        2
    """

    engine: str | Engine = option("local", "where work is done: processes of this machine, or a cluster")
    workers: int | None = option(None, "processes; as many as pay off unless given", within=WORKERS)
    device: str | None = option(None, "cpu, cuda:0, or cuda for all GPUs; a GPU, if there is one, unless given")
    cache: Path | None = option(default_cache, "the folder that keeps features")
    batch_size: int | None = option(None, "items that a network takes at a time", within=BATCH)
    progress: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        engines.make(self.engine)  # refuses one that there is not

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
        """Do the work on each input, with a progress bar. Within the work, this runtime is the current one.

        Args:
            work: A function or a method; it travels once to each worker, so it may hold much data.
            inputs: Small ones.
            title: The title of the bar; None shows none, where the work shows its own.
            steps: By how much an input advances the bar; None is by one.
            chunk: How many inputs travel at a time.
            needs: What one input takes of a machine: a `core`, a core and a `share` of a GPU, or a whole `device`.

        Returns:
            The outputs in order of the inputs, whatever the number of workers. What nobody takes is not computed.

        Raises:
            ShotproofError: A worker died. An error of the work itself is raised as it is.

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
        outputs = engines.make(self.engine).map(_Within(self, work, needs), inputs, self.workers, chunk, needs)
        shown = False if title is None else self.progress
        with contextlib.closing(outputs), progress_bar(title or "", sum(map(steps, inputs)), shown) as advance:
            for value, output in zip(inputs, outputs, strict=True):
                advance(steps(value))
                yield output

    def map_ranges(
        self, work: Callable[[range], Output], count: int, *, title: str, whole: bool = False
    ) -> Generator[Output, None, None]:
        """Do work that takes a whole device on ranges of so many inputs: on all at once, or cut for many machines.

        Args:
            work: As in `map`; done here, it shows its own bar.
            count: How many inputs there are, at least 1.
            title: The title of the bar.
            whole: Whether it must not be cut.

        Returns:
            The outputs, in order of the ranges.

        Example:
            >>> list(Runtime().map_ranges(len, 600, title="counting"))
            [600]
        """
        ranges = [range(count)] if whole else engines.make(self.engine).shards(count)
        return self.map(work, ranges, title=title if len(ranges) > 1 else None, steps=len, needs="device")

    @property
    def remote(self) -> bool:
        """Whether work goes to other machines: then networks go along, to the devices there."""
        return engines.make(self.engine).remote

    def progress_bar(self, title: str, total: int | None) -> AbstractContextManager[Advance]:
        """Give a function that advances a bar by so many steps.

        Args:
            title: The title of the bar.
            total: How many steps there are; None where nobody knows.

        Example:
            >>> with Runtime(progress=False).progress_bar("reading", total=10) as advance:
            ...     advance(10)
        """
        return progress_bar(title, total, self.progress)


class _Within(Generic[Input, Output]):
    """Work under a runtime; in a worker, under one that stays in its process and shows nothing."""

    def __init__(self, runtime: Runtime, work: Callable[[Input], Output], needs: Needs) -> None:
        self.runtime = runtime
        self.work = work
        self.needs = needs

    def __call__(self, value: Input) -> Output:
        with self.runtime:
            return self.work(value)

    def __reduce__(self) -> tuple[Any, ...]:
        there = replace(self.runtime, engine="local", workers=None if self.needs == "device" else 1, progress=False)
        if self.runtime.remote and (there.device or "").startswith("cuda:"):
            there = replace(there, device="cuda")  # which of them is free, the engine knows
        return _Within, (there, self.work, self.needs)


def current_runtime() -> Runtime:
    """The runtime of the innermost `with`, else one of defaults.

    Example:
        >>> current_runtime().engine
        'local'
    """
    return _entered.get()[-1] if _entered.get() else Runtime()


def runtime(**changes: Any) -> Runtime:
    """The current runtime with changes, for a `with` or as an argument `runtime=`.

    Args:
        changes: Fields of `Runtime`.

    Returns:
        A new runtime.

    Raises:
        InputError: There is no such field, or its value cannot be used.

    Example:
        >>> with runtime(workers=4), runtime(device="cpu"):
        ...     current_runtime().workers, current_runtime().device
        (4, 'cpu')
    """
    Runtime.require_known(changes, "a runtime has no")
    return replace(current_runtime(), **changes)


def resolve(runtime: Runtime | None) -> Runtime:
    """The runtime that was given, else the current one.

    Example:
        >>> resolve(Runtime(workers=3)).workers
        3
    """
    return current_runtime() if runtime is None else runtime
