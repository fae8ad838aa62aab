"""`shotproof catalog`: from data on disk to a catalog, and what would go wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import QUERY, SHOT, WAY, AsJson, ContextColumn
from shotproof.cli.console import print_json, print_table, say
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.catalog.catalog import Catalog
    from shotproof.catalog.catalog_check import Problem
    from shotproof.catalog.contexts import ContextStatistics

SHOWN_PER_KIND = 10
SHOWN_CONTEXTS = 20
SHOWN_OF_A_CONCEPT = 4


def catalog(
    root: Annotated[
        Path | None,
        typer.Argument(
            help="The data: a folder, a URL of one, an archive, or a table; with --check also a catalog.parquet. "
            "None with --layout hf:NAME."
        ),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            help="How the data lies, e.g. folder, cub, \"table(label='species')\"; shotproof show layouts has all."
        ),
    ] = "folder",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The catalog file to write.")] = None,
    splits: Annotated[
        Path | None, typer.Option(help="CSV with the columns label and split: assigns splits by class.")
    ] = None,
    names: Annotated[
        Path | None, typer.Option(help="CSV with the columns label and name: what people call the classes.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The data set's name. Default: its own, or the folder's.")] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Report what would go wrong with such tasks; exit status 1 if anything would."),
    ] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Print how many items of which class are in which context.")
    ] = False,
    context_column: ContextColumn = "context",
    way: Annotated[int, WAY] = 5,
    shot: Annotated[int, SHOT] = 5,
    query: Annotated[int, QUERY] = 15,
    as_json: AsJson = False,
) -> None:
    """Make the table of items: what exists, with its label and split.

    Example: shotproof catalog birds/ --layout folder -o catalog.parquet
    """
    from shotproof.catalog.catalog import Catalog
    from shotproof.catalog.catalog_check import check_catalog
    from shotproof.catalog.class_files import apply_names, apply_splits
    from shotproof.catalog.contexts import context_statistics
    from shotproof.catalog.layout import read_layout
    from shotproof.core.storage.files import is_regular
    from shotproof.core.storage.places import ARCHIVES

    if output is None and not check and not stats:
        raise InputError("nothing to do: give --output FILE, --check, or --stats")
    # The layout 'folder' cannot read a file, so a file is a catalog that exists already.
    if layout == "folder" and root is not None and is_regular(root) and root.suffix not in ARCHIVES:
        made = Catalog.read(root)
        made = made if splits is None else apply_splits(made, splits)
        made = made if names is None else apply_names(made, names)
        made = made if name is None else replace(made, record=replace(made.record, name=name))
    else:
        made = read_layout(root, layout, splits=splits, names=names, name=name)
    problems = check_catalog(made, way=way, shot=shot, query=query) if check else []
    if stats and context_column not in made.table.column_names:
        raise InputError(
            f"--stats counts contexts, and the catalog has no column '{context_column}': name the one that holds them "
            f"with --context-column{did_you_mean(context_column, made.table.column_names)}"
        )
    found = context_statistics(made, context_column) if stats else None
    if output is not None:
        made.write(output)
    if as_json:
        told = {} if found is None else {"contexts": found.to_json()}
        print_json(_as_json(made, problems if check else None) | told)
    else:
        _print_summary(made)
        if found is not None:
            _print_contexts(found, made.class_names)
        if check:
            _print_problems(problems)
    if problems:
        raise typer.Exit(1)


def _split_sizes(made: Catalog) -> list[dict[str, Any]]:
    """One record per split: split, classes, items, smallest_class, smallest_class_items."""
    from shotproof.catalog.catalog_check import class_sizes

    sizes: dict[str, dict[str, int]] = {}
    for row in class_sizes(made).to_pylist():
        sizes.setdefault(row["split"], {})[row["label"]] = row["items"]
    return [
        {
            "split": split,
            "classes": len(labels),
            "items": sum(labels.values()),
            "smallest_class": min(labels, key=lambda label: labels[label]),
            "smallest_class_items": min(labels.values()),
        }
        for split, labels in sizes.items()
    ]


def _as_json(made: Catalog, problems: list[Problem] | None) -> dict[str, Any]:
    document: dict[str, Any] = {"items": len(made), "digest": made.digest, "splits": _split_sizes(made)}
    if problems is not None:
        document["problems"] = [asdict(problem) for problem in problems]
    return document


def _print_summary(made: Catalog) -> None:
    rows = [
        [
            size["split"],
            f"{size['classes']:,}",
            f"{size['items']:,}",
            f"{size['smallest_class_items']:,} ({made.class_names[size['smallest_class']]})",
        ]
        for size in _split_sizes(made)
    ]
    print_table(counted(len(made), "item"), ["split", "classes", "items", "smallest class"], rows)


def _print_contexts(found: ContextStatistics, names: Mapping[str, str]) -> None:
    """Print sizes, concepts with their largest contexts, and contexts with how many concepts share them."""
    sizes = [
        [row["split"], *(f"{row[name]:,}" for name in ("concepts", "contexts", "items"))]
        for row in found.sizes.to_pylist()
    ]
    print_table("Sizes", ["split", "concepts", "contexts", "items"], sizes)
    of_concept: dict[str, list[str]] = {}
    for cell in found.cells.to_pylist():
        of_concept.setdefault(cell["concept"], []).append(f"{cell['context']} {cell['items']}")
    rows = []
    for row in found.concepts.to_pylist():
        largest = of_concept.get(row["concept"], [])
        listed = ", ".join(largest[:SHOWN_OF_A_CONCEPT]) + (", ..." if len(largest) > SHOWN_OF_A_CONCEPT else "")
        rows.append(
            [
                f"{row['split']}  {names.get(row['concept'], row['concept'])}",
                f"{row['items']:,}",
                f"{row['contexts']:,}",
                listed,
            ]
        )
    print_table("Concepts", ["concept", "items", "contexts", "largest contexts"], rows)
    contexts = found.contexts.to_pylist()
    shared = [[row["context"], f"{row['concepts']:,}", f"{row['items']:,}"] for row in contexts[:SHOWN_CONTEXTS]]
    print_table("Contexts", ["context", "concepts", "items"], shared)
    if len(contexts) > SHOWN_CONTEXTS:
        say(f"... and {len(contexts) - SHOWN_CONTEXTS:,} more (--json)")
    if found.without_context:
        say(f"{counted(found.without_context, 'item')} without a context")


def _print_problems(problems: list[Problem]) -> None:
    """One line per problem, the first few of each kind."""
    say("", f"{counted(len(problems), 'problem')} found")
    count_of = Counter(problem.kind for problem in problems)
    width = max(map(len, count_of), default=0)
    shown: Counter[str] = Counter()
    for problem in problems:
        shown[problem.kind] += 1
        if shown[problem.kind] <= SHOWN_PER_KIND:
            say(f"{problem.kind:<{width}}  {problem.where}: {problem.message}")
        elif shown[problem.kind] == count_of[problem.kind]:
            say(f"{problem.kind:<{width}}  ... and {count_of[problem.kind] - SHOWN_PER_KIND:,} more (--json)")
