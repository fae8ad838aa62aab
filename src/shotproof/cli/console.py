"""All that the command line prints: lines, tables, CSV, JSON, questions and warnings."""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer

from shotproof.core.printable import printable, printable_json

WIDE = 500


def say(*lines: object, err: bool = False) -> None:
    """Print lines; all that the command line prints goes through this module.

    Args:
        lines: each is one line of output: line feeds within it are escaped, as is all else that could fool a terminal;
            an empty line without any
        err: print on the error stream
    """
    typer.echo("\n".join(printable(str(line)) for line in lines), err=err)


def say_text(text: str) -> None:
    """Print text that is laid out in lines already, such as a schema."""
    say(*text.removesuffix("\n").split("\n"))


def ask(question: str) -> bool:
    """Ask a question on the error stream, and return whether the answer is yes."""
    return typer.confirm(printable(question), err=True)


def annotate(annotation: str, *, err: bool = False) -> None:
    """Print an order to a workflow of GitHub, as `comparison.gate_formats.github_annotations` writes it, unescaped."""
    typer.echo(annotation, err=err)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """Print a table; the first `left` columns are left-aligned, the others right-aligned. Markup is not read."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    heading = Text(printable(title)) if title else None
    table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(Text(printable(column)), justify="left" if index < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    # In a pipe there is no width to keep to: a row stays on one line.
    Console(soft_wrap=False, width=None if sys.stdout.isatty() else WIDE).print(table)


def print_csv(text: str) -> None:
    """Print CSV with every cell on one line."""
    import csv
    import io

    written = io.StringIO()
    ends = {0: r"\x00", ord("\r"): r"\r"}  # a row, or the reader itself
    rows = csv.reader(io.StringIO(text.translate(ends)))
    csv.writer(written, lineterminator="\n").writerows([printable(cell) for cell in row] for row in rows)
    say_text(written.getvalue())


def print_records(records: Sequence[Mapping[str, Any]]) -> None:
    """Print records that all have the same keys as CSV, under a heading."""
    import csv
    import io

    written = io.StringIO()
    writer = csv.DictWriter(written, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    print_csv(written.getvalue())


def print_json(value: Any) -> None:
    """Print a JSON document."""
    typer.echo(printable_json(value))


@contextlib.contextmanager
def told_warnings() -> Iterator[None]:
    """Tell warnings as lines on the error stream, all of them."""
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        yield
    for warning in noted:
        _tell_warning(warning.message)


@contextlib.contextmanager
def told_notes() -> Iterator[None]:
    """Tell what is noted before costly work begins, such as how many requests it takes, on the error stream, once."""
    logger, handler = logging.getLogger("shotproof"), _TellingHandler(logging.INFO)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def tell_all_warnings() -> None:
    """From now on, tell warnings and logged warnings that nobody else takes as lines on the error stream."""
    warnings.showwarning = _tell_warning
    logging.lastResort = _TellingHandler(logging.WARNING)


class _TellingHandler(logging.Handler):
    """Tells each message once: two encoders leave out the same files."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self.told:
            self.told.add(message)
            say(message, err=True)


def _tell_warning(message: Warning | str, *where: object, **_: object) -> None:
    say(f"warning: {message}", err=True)
