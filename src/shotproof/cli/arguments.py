"""Arguments that several commands share: files in any order, settings, and consent to what files name."""

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
        help="Run folders, or results and what they were computed from (task sets, catalogs, features, attributes), in "
        "any order. With all of these, placebos and the images interval can be computed.",
    ),
]
WAY = typer.Option(min=2, max=limits.WAY.most, help="Classes per task.")
SHOT = typer.Option(min=1, max=limits.SHOT.most, help="Support items per class.")
QUERY = typer.Option(min=1, max=limits.QUERY.most, help="Query items per class.")
Seed = Annotated[int, typer.Option(min=0, max=limits.SEED.most, help="Random seed.")]
OutputPage = Annotated[Path | None, typer.Option("--output", "-o", help="Page to write.")]
Level = Annotated[float, typer.Option(help="Confidence level of the intervals.")]
MetricName = Annotated[str, typer.Option(help="Metric of statements, ranks and pairs: acc or wacc.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print everything as CSV.")]
Trusted = Annotated[
    bool,
    typer.Option("--trust", help="Allow the code, servers and files elsewhere that the input files name."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="List every file that is written or up to date.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out unreadable files.")]
Split = Annotated[str | None, typer.Option(help="Only the items of this split. Default: all.")]
ContextColumn = Annotated[str, typer.Option(help="Column with the contexts.")]
BatchSize = Annotated[
    int | None, typer.Option(min=limits.BATCH.least, max=limits.BATCH.most, help="Items per batch of a network.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Another setting, NAME=VALUE, as in an experiment file; repeatable."),
]

_NAMES = {"catalog": "a catalog", "tasks": "a task set"}


def sort_files(
    paths: Sequence[Path], kinds: Collection[str], *, several: Collection[str] = ()
) -> dict[str, list[Path]]:
    """Sort files by their kind, which is in their metadata.

    Args:
        paths: Parquet files, in any order
        kinds: accepted kinds, at most one file each
        several: kinds with any number of files

    Returns:
        The files of each kind, in the given order.

    Raises:
        InputError: a file cannot be read or is of another kind, or there are several of a kind that takes one.
    """
    from shotproof.pipeline.file_kinds import kind_of

    sorted_files: dict[str, list[Path]] = {kind: [] for kind in kinds}
    for path in paths:
        kind = kind_of(path)
        expected = " or ".join(", ".join(_NAMES.get(kind, kind) for kind in kinds).rsplit(", ", 1))
        if kind not in sorted_files:
            raise InputError(f"{path}: expected {expected}, found {_NAMES.get(kind, kind)}")
        if sorted_files[kind] and kind not in several:
            raise InputError(
                f"{path} and {sorted_files[kind][0]} both hold {_NAMES.get(kind, kind)}: expected only one of them"
            )
        sorted_files[kind].append(path)
    return sorted_files


def files_of_kind(paths: Sequence[Path], kind: str) -> list[Path]:
    """Return the files of one kind; run folders are skipped."""
    from shotproof.pipeline.file_kinds import holds_files, kind_of

    return [path for path in paths if not holds_files(path) and kind_of(path) == kind]


def read_one(files: Sequence[Path], kind: str) -> Any:
    """Read the first of some files of one kind; None if there are none."""
    return read_all(files[:1], kind)[0] if files else None


def read_all(files: Sequence[Path], kind: str) -> list[Any]:
    """Read files of one kind."""
    from shotproof.pipeline.file_kinds import read_kind

    return [read_kind(file, kind) for file in files]


def read_settings(assignments: Sequence[str]) -> dict[str, Any]:
    """Parse settings of the form `NAME=VALUE`, with values as in a spelling.

    Raises:
        InputError: a setting is not of this form.
    """
    from shotproof.core.spelling import parse_call

    settings: dict[str, Any] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise InputError(f"--set {text}: expected NAME=VALUE, e.g. weight_decay=0.001")
        try:
            settings |= parse_call(f"set({text})")[1]
        except InputError:
            settings[name.strip()] = value  # text without quotes
    return settings


def with_trust(file: Path, trust: bool, action: Callable[[Trust], T]) -> T:
    """Call a function, asking a user at a terminal to agree to each piece of code and server that a file names.

    Raises:
        NotTrusted: the user does not agree, or there is no terminal.
    """
    from shotproof.core.trust import NotTrusted

    agreed: list[str] = []
    while True:
        try:
            return action(trust or agreed)
        except NotTrusted as error:
            if not sys.stdin.isatty() or not ask(f"{file}: {error.description}. Continue?"):
                raise
            agreed.append(error.description)
