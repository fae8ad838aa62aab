"""Progress on a terminal and in a notebook; silence in a pipe and in worker processes."""

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
def progress_bar(what: str, total: int | None, shown: bool | None = None) -> Iterator[Advance]:
    """Give a function that advances a bar by so many steps; bars may be nested, and go on in several threads.

    Args:
        what: The title of the bar.
        total: How many steps there are; None where nobody knows.
        shown: Whether to show it; None is on a terminal and in a notebook.

    Example:
        >>> with progress_bar("reading", total=10, shown=False) as advance:
        ...     advance(10)
    """
    what, notebook = printable(what), _notebook()
    if shown is None:
        shown = notebook or sys.stderr.isatty()
    if in_worker() or not shown:
        yield lambda steps: None
    elif notebook:
        with _notebook_bar(what, total) as advance:
            yield advance
    else:
        with _terminal.bar(what, total) as advance:
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
    def bar(self, what: str, total: int | None) -> Iterator[Advance]:
        with self._lock:
            if not self._bars:
                self._display = _display()
            self._bars += 1
            display = self._display
            task = display.add_task(what, total=total)
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
def _notebook_bar(what: str, total: int | None) -> Iterator[Advance]:
    """A bar of plain HTML: rich would need ipywidgets."""
    display = importlib.import_module("IPython.display").display
    lock = threading.Lock()
    done, updated = 0, time.monotonic()
    handle = display(_bar_of_html(what, 0, total), raw=True, display_id=True)

    def advance(steps: int) -> None:
        nonlocal done, updated
        with lock:
            done += steps
            if time.monotonic() - updated >= _SECONDS_BETWEEN_UPDATES:
                updated = time.monotonic()
                handle.update(_bar_of_html(what, done, total), raw=True)

    try:
        yield advance
    finally:
        handle.update({"text/html": "", "text/plain": ""}, raw=True)


def _bar_of_html(what: str, done: int, total: int | None) -> dict[str, str]:
    count = f"{done}/{total}" if total is not None else f"{done}"
    value = f' value="{done}" max="{total}"' if total is not None else ""
    return {
        "text/html": f"<div>{html.escape(what)} <progress{value}></progress> {count}</div>",
        "text/plain": f"{what} {count}",
    }
