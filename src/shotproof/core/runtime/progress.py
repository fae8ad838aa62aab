"""Progress bars on a terminal and in a notebook, none in a pipe or a worker process; time estimates for long work."""

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

_SECONDS_BETWEEN_UPDATES = 0.2  # of a notebook's bar: each update is a message to the browser


@contextlib.contextmanager
def progress_bar(title: str, total: int | None, visible: bool | None = None) -> Iterator[Advance]:
    """Show a progress bar, and yield the function that advances it; bars may be nested and used in several threads.

    Args:
        title: the title of the bar
        total: the number of steps; None if it is unknown
        visible: whether to show it; None: if on a terminal or in a notebook

    Example:
        >>> with progress_bar("reading", total=10, visible=False) as advance:
        ...     advance(10)
    """
    title, in_notebook = printable(title), _in_notebook()
    if visible is None:
        visible = in_notebook or sys.stderr.isatty()
    if in_worker() or not visible:
        yield lambda steps: None
    elif in_notebook:
        with _notebook_bar(title, total) as advance:
            yield advance
    else:
        with _terminal.bar(title, total) as advance:
            yield advance


def _in_notebook() -> bool:
    """Return whether this runs in a Jupyter kernel, without importing IPython."""
    ipython = sys.modules.get("IPython")
    return getattr(getattr(ipython, "get_ipython", lambda: None)(), "kernel", None) is not None


class _Terminal:
    """Bars on standard error, which share one display, as rich allows only one."""

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
        # Bars requested without a terminal look the same as on one.
        console=Console(stderr=True, force_terminal=True),
        transient=True,
    )
    with contextlib.suppress(LiveError):  # the user already shows a display of rich: ours stays hidden
        display.start()
    return display


@contextlib.contextmanager
def _notebook_bar(title: str, total: int | None) -> Iterator[Advance]:
    """Show a bar in plain HTML, as rich would need ipywidgets."""
    display = importlib.import_module("IPython.display").display
    lock = threading.Lock()
    done, updated = 0, time.monotonic()
    handle = display(_format_html_bar(title, 0, total), raw=True, display_id=True)

    def advance(steps: int) -> None:
        nonlocal done, updated
        with lock:
            done += steps
            if time.monotonic() - updated >= _SECONDS_BETWEEN_UPDATES:
                updated = time.monotonic()
                handle.update(_format_html_bar(title, done, total), raw=True)

    try:
        yield advance
    finally:
        handle.update({"text/html": "", "text/plain": ""}, raw=True)


def _format_html_bar(title: str, done: int, total: int | None) -> dict[str, str]:
    count = f"{done}/{total}" if total is not None else f"{done}"
    value = f' value="{done}" max="{total}"' if total is not None else ""
    return {
        "text/html": f"<div>{html.escape(title)} <progress{value}></progress> {count}</div>",
        "text/plain": f"{title} {count}",
    }


TRIAL_SECONDS = 5.0  # of work that are timed before an estimate
WORTH_REPORTING = 30.0  # seconds of remaining work from which the estimate is reported

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def duration(seconds: float) -> str:
    """Format a rounded duration.

    Example:
        >>> duration(34), duration(2_380), duration(5_000), duration(200_000)
        ('30 seconds', '40 minutes', '83 minutes', '56 hours')
    """
    for name, length in _UNITS:
        if seconds >= 1.5 * length and (name != "day" or seconds >= 3 * length):
            return f"{seconds / length:.0f} {name}s"
    return f"{max(10, 10 * round(seconds / 10))} seconds"


def cost_note(title: str, seconds: float, device: str, amount: str) -> str:
    """Format a note on how long work will take.

    Args:
        title: the work
        seconds: its estimated duration
        device: the type of the device, as PyTorch names it
        amount: the amount of work, e.g. `30 epochs`

    Example:
        >>> cost_note("training protonet", 2_400, "cpu", "30 epochs")
        'training protonet: about 40 minutes on this CPU for 30 epochs'
    """
    device_name = {"cpu": "CPU", "cuda": "GPU"}.get(device, "device")
    return f"{title}: about {duration(seconds)} on this {device_name} for {amount}"


def timed(
    advance: Advance, steps: float, report: Callable[[float], None], clock: Callable[[], float] = time.monotonic
) -> Advance:
    """Wrap a function that advances a bar, so that it also estimates the total duration after a few seconds.

    Args:
        advance: advances the bar
        steps: the total number of steps, including those that do not advance the bar
        report: called at most once, with the estimated total seconds, if much is left
        clock: returns the time in seconds
    """
    start, done, has_reported = clock(), 0, False

    def step(count: int) -> None:
        nonlocal done, has_reported
        advance(count)
        done += count
        spent = clock() - start
        if has_reported or spent < TRIAL_SECONDS:
            return
        has_reported = True
        total = spent / done * steps
        if total - spent >= WORTH_REPORTING:
            report(total)

    return step
