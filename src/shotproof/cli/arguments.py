"""What commands are given: files in any order, settings, and consent to what a file names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from shotproof.cli.console import ask
from shotproof.core import limits
from shotproof.core.errors import InputError

if TYPE_CHECKING:
    from shotproof.core.trust import Trust

T = TypeVar("T")

Compared = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILES",
        help="Folders of runs, or results and whatever they were made from: task sets, catalogs, features, attributes, "
        "in any order. With all of these there are placebos and intervals over new images.",
    ),
]
WAY = typer.Option(min=2, max=limits.WAY.most, help="Classes per task.")
SHOT = typer.Option(min=1, max=limits.SHOT.most, help="Support items per class.")
QUERY = typer.Option(min=1, max=limits.QUERY.most, help="Query items per class.")
Seed = Annotated[
    int, typer.Option(min=0, max=limits.SEED.most, help="Of all that is drawn: tasks, and by methods that draw.")
]
OutputPage = Annotated[Path | None, typer.Option("--output", "-o", help="A page to write.")]
Level = Annotated[float, typer.Option(help="The level of the intervals.")]
MetricName = Annotated[str, typer.Option(help="What statements, ranks and pairs are by: acc or wacc.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print everything as CSV.")]
Trusted = Annotated[
    bool,
    typer.Option("--trust", help="Agree to code, files elsewhere and servers that files name."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Name every file that is made or up to date.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out files that cannot be read.")]
Split = Annotated[str | None, typer.Option(help="Only the items of this split. Default: all.")]
ContextColumn = Annotated[str, typer.Option(help="The column with the contexts.")]
BatchSize = Annotated[
    int | None, typer.Option(min=limits.BATCH.least, max=limits.BATCH.most, help="Items that a network takes at once.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any other setting, NAME=VALUE, as in an experiment file; may be repeated."),
]

_NAMES = {"catalog": "a catalog", "tasks": "a task set"}


def sort_files(
    paths: Sequence[Path], kinds: Collection[str], *, several: Collection[str] = ()
) -> dict[str, list[Path]]:
    """Sort files by what they hold, as each says by itself.

    Args:
        paths: Parquet files, in any order
        kinds: those of use, at most one each
        several: those of which there may be more

    Returns:
        The files of every kind, in their order.

    Raises:
        InputError: a file cannot be read, is of another kind, or is one too many.
    """
    from shotproof.pipeline.file_kinds import kind_of

    sorted_files: dict[str, list[Path]] = {kind: [] for kind in kinds}
    for path in paths:
        kind = kind_of(path)
        expected = ", ".join(_NAMES.get(kind, kind) for kind in kinds)
        if kind not in sorted_files:
            raise InputError(f"{path} holds {_NAMES.get(kind, kind)}, expected {expected}")
        if sorted_files[kind] and kind not in several:
            raise InputError(f"{path} and {sorted_files[kind][0]} both hold {_NAMES.get(kind, kind)}, expected one")
        sorted_files[kind].append(path)
    return sorted_files


def files_of_kind(paths: Sequence[Path], kind: str) -> list[Path]:
    """Give those of the files, beside which there may be folders of runs, that hold this."""
    from shotproof.pipeline.file_kinds import holds_files, kind_of

    return [path for path in paths if not holds_files(path) and kind_of(path) == kind]


def read_one(files: Sequence[Path], kind: str) -> Any:
    """Read the first of the files, all of one kind; None if there is none."""
    return read_all(files[:1], kind)[0] if files else None


def read_all(files: Sequence[Path], kind: str) -> list[Any]:
    """Read files that all are of one kind."""
    from shotproof.pipeline.file_kinds import read_kind

    return [read_kind(file, kind) for file in files]


def read_settings(given: Sequence[str]) -> dict[str, Any]:
    """Read `NAME=VALUE` each, with values as in a spelling.

    Raises:
        InputError: one of them is not of this form.
    """
    from shotproof.core.spelling import parse_call

    settings: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise InputError(f"--set {text}: expected NAME=VALUE, e.g. weight_decay=0.001")
        try:
            settings |= parse_call(f"set({text})")[1]
        except InputError:
            settings[name.strip()] = value  # text without quotes
    return settings


def with_trust(file: Path, trust: bool, act: Callable[[Trust], T]) -> T:
    """Do something with what a user at a terminal agrees to of the code and servers that a file names, one by one.

    Raises:
        NotTrusted: the answer is no, or nobody can be asked.
    """
    from shotproof.core.trust import NotTrusted

    agreed: list[str] = []
    while True:
        try:
            return act(trust or agreed)
        except NotTrusted as refused:
            if not sys.stdin.isatty() or not ask(f"{file}: {refused.what}. Go on?"):
                raise
            agreed.append(refused.what)
