"""Tables, JSON and warnings on the terminal."""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from shotproof.core.printable import printable

WIDE = 500


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text with what could fool a terminal escaped; every line of output goes through here.

    Args:
        text: what to print; line feeds are kept
        err: print on the error stream
        nl: end with a line feed
    """
    typer.echo(printable(str(text), keep="\n"), err=err, nl=nl)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """Print a table; the first `left` columns are left-aligned, the others right-aligned. Markup is not read."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(Text(printable(column)), justify="left" if index < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    # In a pipe there is no width to keep to: a row stays on one line.
    Console(soft_wrap=False, width=None if sys.stdout.isatty() else WIDE).print(table)


@contextlib.contextmanager
def told_warnings() -> Iterator[None]:
    """Tell warnings as lines on the error stream."""
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        yield
    for warning in noted:
        say(f"warning: {warning.message}", err=True)


@contextlib.contextmanager
def told_notes() -> Iterator[None]:
    """Tell what is noted before costly work begins, such as how many requests it takes, on the error stream, once."""
    import logging

    said: set[str] = set()  # two encoders leave out the same files

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if message not in said:
                said.add(message)
                say(message, err=True)

    logger, handler = logging.getLogger("shotproof"), Told(logging.INFO)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def print_json(value: Any) -> None:
    """Print a JSON document."""
    say(json.dumps(value, indent=2, ensure_ascii=False))
