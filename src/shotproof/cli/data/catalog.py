"""`shotproof catalog`: catalogs of data on disk, and checks of them."""

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

MAX_PER_KIND = 10
MAX_CONTEXTS = 20
MAX_PER_CONCEPT = 4


def catalog(
    root: Annotated[
        Path | None,
        typer.Argument(
            help="The data: a folder, a URL of a folder, an archive, a table, or a catalog.parquet to check. "
            "Not needed with --layout hf:NAME."
        ),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            help="Layout of the data: folder, cub, \"table(label='species')\", ...; shotproof show layouts lists all."
        ),
    ] = "folder",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Catalog file to write.")] = None,
    splits: Annotated[
        Path | None, typer.Option(help="CSV file with the columns label and split, which assigns classes to splits.")
    ] = None,
    names: Annotated[
        Path | None, typer.Option(help="CSV file with the columns label and name, for readable class names.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the data set. Default: its own name, or that of the folder.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Report problems with tasks of this size; exit status 1 if there are any."),
    ] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Print the number of items per class and context.")] = False,
    context_column: ContextColumn = "context",
    way: Annotated[int, WAY] = 5,
    shot: Annotated[int, SHOT] = 5,
    query: Annotated[int, QUERY] = 15,
    as_json: AsJson = False,
) -> None:
    """Create a catalog: the table of items with their labels and splits.

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
        raise InputError("nothing to do: use --output FILE, --check, or --stats")
    # The layout 'folder' cannot read files, so that a file is an existing catalog.
    if layout == "folder" and root is not None and is_regular(root) and root.suffix not in ARCHIVES:
        content = Catalog.read(root)
        content = content if splits is None else apply_splits(content, splits)
        content = content if names is None else apply_names(content, names)
        content = content if name is None else replace(content, record=replace(content.record, name=name))
    else:
        content = read_layout(root, layout, splits=splits, names=names, name=name)
    problems = check_catalog(content, way=way, shot=shot, query=query) if check else []
    if stats and context_column not in content.table.column_names:
        raise InputError(
            f"--stats counts contexts, but the catalog has no column '{context_column}': name the column of contexts "
            f"with --context-column{did_you_mean(context_column, content.table.column_names)}"
        )
    statistics = context_statistics(content, context_column) if stats else None
    if output is not None:
        content.write(output)
    if as_json:
        contexts = {} if statistics is None else {"contexts": statistics.to_json()}
        print_json(_to_json(content, problems if check else None) | contexts)
    else:
        _print_summary(content)
        if statistics is not None:
            _print_contexts(statistics, content.class_names)
        if check:
            _print_problems(problems)
    if problems:
        raise typer.Exit(1)


def _split_sizes(catalog: Catalog) -> list[dict[str, Any]]:
    """Return one record per split: split, classes, items, smallest_class, smallest_class_items."""
    from shotproof.catalog.catalog_check import class_sizes

    sizes: dict[str, dict[str, int]] = {}
    for row in class_sizes(catalog).to_pylist():
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


def _to_json(catalog: Catalog, problems: list[Problem] | None) -> dict[str, Any]:
    """Return the size, splits and problems of a catalog."""
    document: dict[str, Any] = {"items": len(catalog), "digest": catalog.digest, "splits": _split_sizes(catalog)}
    if problems is not None:
        document["problems"] = [asdict(problem) for problem in problems]
    return document


def _print_summary(catalog: Catalog) -> None:
    """Print the size of each split."""
    rows = [
        [
            size["split"],
            f"{size['classes']:,}",
            f"{size['items']:,}",
            f"{size['smallest_class_items']:,} ({catalog.class_names[size['smallest_class']]})",
        ]
        for size in _split_sizes(catalog)
    ]
    print_table(counted(len(catalog), "item"), ["split", "classes", "items", "smallest class"], rows)


def _print_contexts(statistics: ContextStatistics, names: Mapping[str, str]) -> None:
    """Print the sizes, each concept with its largest contexts, and each context with its number of concepts."""
    sizes = [
        [row["split"], *(f"{row[name]:,}" for name in ("concepts", "contexts", "items"))]
        for row in statistics.sizes.to_pylist()
    ]
    print_table("Sizes", ["split", "concepts", "contexts", "items"], sizes)
    contexts_by_concept: dict[str, list[str]] = {}
    for cell in statistics.cells.to_pylist():
        contexts_by_concept.setdefault(cell["concept"], []).append(f"{cell['context']} {cell['items']}")
    rows = []
    for row in statistics.concepts.to_pylist():
        largest = contexts_by_concept.get(row["concept"], [])
        listed = ", ".join(largest[:MAX_PER_CONCEPT]) + (", ..." if len(largest) > MAX_PER_CONCEPT else "")
        rows.append(
            [
                f"{row['split']}  {names.get(row['concept'], row['concept'])}",
                f"{row['items']:,}",
                f"{row['contexts']:,}",
                listed,
            ]
        )
    print_table("Concepts", ["concept", "items", "contexts", "largest contexts"], rows)
    contexts = statistics.contexts.to_pylist()
    shared = [[row["context"], f"{row['concepts']:,}", f"{row['items']:,}"] for row in contexts[:MAX_CONTEXTS]]
    print_table("Contexts", ["context", "concepts", "items"], shared)
    if len(contexts) > MAX_CONTEXTS:
        say(f"... and {len(contexts) - MAX_CONTEXTS:,} more (--json)")
    if statistics.without_context:
        say(f"{counted(statistics.without_context, 'item')} without a context")


def _print_problems(problems: list[Problem]) -> None:
    """Print one line per problem, for the first few of each kind."""
    say("", f"{counted(len(problems), 'problem')} found")
    totals = Counter(problem.kind for problem in problems)
    width = max(map(len, totals), default=0)
    counts: Counter[str] = Counter()
    for problem in problems:
        counts[problem.kind] += 1
        if counts[problem.kind] <= MAX_PER_KIND:
            say(f"{problem.kind:<{width}}  {problem.where}: {problem.message}")
        elif counts[problem.kind] == totals[problem.kind]:
            say(f"{problem.kind:<{width}}  ... and {totals[problem.kind] - MAX_PER_KIND:,} more (--json)")
