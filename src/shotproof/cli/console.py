"""Output of the command line: lines, tables, CSV, JSON, questions and warnings; nothing else prints."""

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
    """Print lines, with characters escaped that could deceive a terminal.

    Args:
        lines: one line of output each, in which line feeds are escaped as well; none for an empty line
        err: whether to print on the error stream
    """
    typer.echo("\n".join(printable(str(line)) for line in lines), err=err)


def say_text(text: str) -> None:
    """Print text of several lines, such as a schema."""
    say(*text.removesuffix("\n").split("\n"))


def ask(question: str) -> bool:
    """Ask a question on the error stream, and return whether the answer is yes."""
    return typer.confirm(printable(question), err=True)


def annotate(annotation: str, *, err: bool = False) -> None:
    """Print a GitHub workflow command from `comparison.gate_formats.github_annotations`, unescaped."""
    typer.echo(annotation, err=err)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """Print a table; the first `left` columns are left-aligned, the others right-aligned. Markup is not interpreted."""
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
    # A pipe has no width: rows stay on one line.
    Console(soft_wrap=False, width=None if sys.stdout.isatty() else WIDE).print(table)


def print_csv(text: str) -> None:
    """Print CSV, with line feeds in cells escaped."""
    import csv
    import io

    buffer = io.StringIO()
    ends = {0: r"\x00", ord("\r"): r"\r"}  # each would end a row, or stop the reader
    rows = csv.reader(io.StringIO(text.translate(ends)))
    csv.writer(buffer, lineterminator="\n").writerows([printable(cell) for cell in row] for row in rows)
    say_text(buffer.getvalue())


def print_records(records: Sequence[Mapping[str, Any]]) -> None:
    """Print records with the same keys as CSV, with a header row."""
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    print_csv(buffer.getvalue())


def print_json(value: Any) -> None:
    """Print a JSON document."""
    typer.echo(printable_json(value))


@contextlib.contextmanager
def printed_warnings() -> Iterator[None]:
    """Print all warnings raised in the block as lines on the error stream, at its end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        _print_warning(warning.message)


@contextlib.contextmanager
def printed_notes() -> Iterator[None]:
    """Print log messages of the block, such as the number of requests that costly work needs, on the error stream."""
    logger, handler = logging.getLogger("shotproof"), _PrintingHandler(logging.INFO)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def print_all_warnings() -> None:
    """Print warnings, and logged warnings without another handler, as lines on the error stream from now on."""
    warnings.showwarning = _print_warning
    logging.lastResort = _PrintingHandler(logging.WARNING)


class _PrintingHandler(logging.Handler):
    """Log handler that prints each message once: two encoders may leave out the same files."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message, unless it was printed before."""
        message = record.getMessage()
        if message not in self.printed:
            self.printed.add(message)
            say(message, err=True)


def _print_warning(message: Warning | str, *where: object, **_: object) -> None:
    say(f"warning: {message}", err=True)
