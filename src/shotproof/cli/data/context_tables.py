"""Concepts and contexts on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shotproof.cli.console import print_table, say
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.catalog.contexts import ContextStatistics

SHOWN = 20  # contexts in a table
SHOWN_OF_A_CONCEPT = 4


def print_context_statistics(found: ContextStatistics, names: Mapping[str, str]) -> None:
    """Sizes, concepts (by their names) with their largest contexts, and contexts with how many concepts share them."""
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
    shared = [[row["context"], f"{row['concepts']:,}", f"{row['items']:,}"] for row in contexts[:SHOWN]]
    print_table("Contexts", ["context", "concepts", "items"], shared)
    if len(contexts) > SHOWN:
        say(f"... and {len(contexts) - SHOWN:,} more (--json)")
    if found.without_context:
        say(f"{counted(found.without_context, 'item')} without a context")
