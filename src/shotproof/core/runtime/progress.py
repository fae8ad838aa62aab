"""Progress on a terminal and in a notebook, silence in a pipe and in worker processes; what long work will cost."""

from __future__ import annotations

import contextlib
import html
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from shotproof.core.printable import printable
from shotproof.core.runtime.worker import in_worker

Advance = Callable[[int], None]

_SECONDS_BETWEEN_UPDATES = 0.2  # of a notebook's bar: each is a message to the browser


@contextlib.contextmanager
def progress_bar(title: str, total: int | None, shown: bool | None = None) -> Iterator[Advance]:
    """Give a function that advances a bar by so many steps; bars may be nested, and go on in several threads.

    Args:
        title: The title of the bar.
        total: How many steps there are; None where nobody knows.
        shown: Whether to show it; None is on a terminal and in a notebook.

    Example:
        >>> with progress_bar("reading", total=10, shown=False) as advance:
        ...     advance(10)
    """
    title, notebook = printable(title), _notebook()
    if shown is None:
        shown = notebook or sys.stderr.isatty()
    if in_worker() or not shown:
        yield lambda steps: None
    elif notebook:
        with _notebook_bar(title, total) as advance:
            yield advance
    else:
        with _terminal.bar(title, total) as advance:
            yield advance


def _notebook() -> bool:
    """Whether a Jupyter kernel runs this, told without an import of IPython."""
    ipython = sys.modules.get("IPython")
    return getattr(getattr(ipython, "get_ipython", lambda: None)(), "kernel", None) is not None


class _Terminal:
    """The bars on standard error, which share one display: rich allows no second one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bars = 0
        self._display: Any = None

    @contextlib.contextmanager
    def bar(self, title: str, total: int | None) -> Iterator[Advance]:
        with self._lock:
            if not self._bars:
                self._display = _display()
            self._bars += 1
            display = self._display
            task = display.add_task(title, total=total)
        try:
            yield lambda steps: display.advance(task, steps)
        finally:
            with self._lock:
                self._bars -= 1
                if self._bars:
                    display.remove_task(task)
                else:
                    display.stop()


_terminal = _Terminal()


def _display() -> Any:
    from rich.console import Console
    from rich.errors import LiveError
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    display = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        # Whoever asks for bars off a terminal gets them as on one.
        console=Console(stderr=True, force_terminal=True),
        transient=True,
    )
    with contextlib.suppress(LiveError):  # a display of the user's own goes on: ours stays hidden
        display.start()
    return display


@contextlib.contextmanager
def _notebook_bar(title: str, total: int | None) -> Iterator[Advance]:
    """A bar of plain HTML: rich would need ipywidgets."""
    display = importlib.import_module("IPython.display").display
    lock = threading.Lock()
    done, updated = 0, time.monotonic()
    handle = display(_bar_of_html(title, 0, total), raw=True, display_id=True)

    def advance(steps: int) -> None:
        nonlocal done, updated
        with lock:
            done += steps
            if time.monotonic() - updated >= _SECONDS_BETWEEN_UPDATES:
                updated = time.monotonic()
                handle.update(_bar_of_html(title, done, total), raw=True)

    try:
        yield advance
    finally:
        handle.update({"text/html": "", "text/plain": ""}, raw=True)


def _bar_of_html(title: str, done: int, total: int | None) -> dict[str, str]:
    count = f"{done}/{total}" if total is not None else f"{done}"
    value = f' value="{done}" max="{total}"' if total is not None else ""
    return {
        "text/html": f"<div>{html.escape(title)} <progress{value}></progress> {count}</div>",
        "text/plain": f"{title} {count}",
    }


TRIAL_SECONDS = 5.0  # of work that are timed
WORTH_TELLING = 30.0  # seconds of work left from which on it is told

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def duration(seconds: float) -> str:
    """Say about how long something takes.

    Example:
        >>> duration(34), duration(2_380), duration(5_000), duration(200_000)
        ('30 seconds', '40 minutes', '83 minutes', '56 hours')
    """
    for name, length in _UNITS:
        if seconds >= 1.5 * length and (name != "day" or seconds >= 3 * length):
            return f"{seconds / length:.0f} {name}s"
    return f"{max(10, 10 * round(seconds / 10))} seconds"


def cost_note(title: str, seconds: float, device: str, amount: str) -> str:
    """Say what work will cost.

    Args:
        title: the work
        seconds: how long it takes
        device: the type of the device, as PyTorch names it
        amount: how much of it there is, e.g. `30 epochs`

    Example:
        >>> cost_note("training protonet", 2_400, "cpu", "30 epochs")
        'training protonet: about 40 minutes on this CPU for 30 epochs'
    """
    place = {"cpu": "CPU", "cuda": "GPU"}.get(device, "device")
    return f"{title}: about {duration(seconds)} on this {place} for {amount}"


def timed(
    advance: Advance, steps: float, tell: Callable[[float], None], clock: Callable[[], float] = time.monotonic
) -> Advance:
    """Give a function that advances a bar and, once some seconds are timed, tells how long all steps will take.

    Args:
        advance: what advances the bar
        steps: how many there are in all, those between which nothing advances the bar counted too
        tell: is called once at most, with seconds, if much is left
        clock: gives the time in seconds
    """
    began, done, told = clock(), 0, False

    def step(count: int) -> None:
        nonlocal done, told
        advance(count)
        done += count
        spent = clock() - began
        if told or spent < TRIAL_SECONDS:
            return
        told = True
        whole = spent / done * steps
        if whole - spent >= WORTH_TELLING:
            tell(whole)

    return step
