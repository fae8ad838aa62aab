"""Contexts of items, and MetaCoCo's tables: 1 (sizes), 4 (samples per concept), 5 (concept by context)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, did_you_mean


def contexts_of(catalog: Catalog, column: str) -> list[str | None]:
    """Return the context of each row of a catalog; None if a row has none."""
    if column not in catalog.table.column_names:
        raise InputError(
            f"the catalog has no column '{column}' to take the contexts from"
            f"{did_you_mean(column, catalog.table.column_names)}"
        )
    values = catalog.table.column(column)
    if pa.types.is_nested(values.type):
        raise InputError(f"catalog, column '{column}': expected one context per item, found {values.type}")
    texts = pc.cast(values, pa.string())
    contexts: list[str | None] = [text or None for text in texts.to_pylist()]
    return contexts


def clean_context(catalog: Catalog, column: str = "context") -> str | None:
    """Return the context that stands for a clean item, if the catalog's record names one, as that of `mix` does."""
    return catalog.record.clean_value if column == "context" else None


@dataclass(frozen=True)
class ContextStatistics:
    """Numbers of items per concept (label) and context.

    sizes: one row per split, and one for `all`: `split`, `concepts`, `contexts`, `items` (Table 1)
    concepts: one row per concept of a split, the largest first: `split`, `concept`, `contexts`, `items` (Table 4)
    contexts: one row per context, the largest first: `context`, `concepts` that share it, `items`
    cells: one row per concept in a context: `concept`, `context`, `items` (Table 5, without its zeros)
    without_context: number of items without a context
    """

    sizes: pa.Table
    concepts: pa.Table
    contexts: pa.Table
    cells: pa.Table
    without_context: int

    def to_json(self) -> dict[str, Any]:
        """Return the tables as lists of records."""
        tables = {name: getattr(self, name).to_pylist() for name in ("sizes", "concepts", "contexts", "cells")}
        return {**tables, "without_context": self.without_context}


def context_statistics(catalog: Catalog, context_column: str = "context") -> ContextStatistics:
    """Count the items of each class in each context.

    Args:
        catalog: items with contexts
        context_column: the column with the contexts

    Returns:
        The tables of MetaCoCo's paper.

    Raises:
        InputError: the catalog has no such column.

    Example:
        >>> columns = {"item": ["a", "b"], "path": ["a", "b"], "label": ["jay", "jay"], "split": ["test", "test"]}
        >>> catalog = Catalog(pa.table({**columns, "context": ["snow", "water"]}))
        >>> context_statistics(catalog).sizes.to_pylist()
        [{'split': 'all', 'concepts': 1, 'contexts': 2, 'items': 2}]
    """
    contexts = pa.array(contexts_of(catalog, context_column), pa.string())
    columns = {name: catalog.table.column(name) for name in ("split", "label")}
    table = pa.table({**columns, "context": contexts}).rename_columns(["split", "concept", "context"])
    all_splits = table.set_column(0, "split", pa.array(["all"] * len(table), pa.string()))
    sizes = [_count_by(all_splits, ["split"]), _count_by(table, ["split"]).sort_by("split")]
    concepts = _count_by(table, ["split", "concept"]).select(["split", "concept", "contexts", "items"])
    with_context = table.filter(pc.is_valid(contexts))
    cells = with_context.group_by(["concept", "context"], use_threads=False).aggregate([([], "count_all")])
    return ContextStatistics(
        sizes=pa.concat_tables(sizes[: 2 if len(catalog.splits) > 1 else 1]),
        concepts=concepts.sort_by([("split", "ascending"), ("items", "descending"), ("concept", "ascending")]),
        contexts=_count_by(with_context, ["context"]).sort_by([("items", "descending"), ("context", "ascending")]),
        cells=cells.rename_columns(["concept", "context", "items"]).sort_by(
            [("concept", "ascending"), ("items", "descending"), ("context", "ascending")]
        ),
        without_context=len(table) - len(with_context),
    )


def _count_by(table: pa.Table, by: list[str]) -> pa.Table:
    """Count the concepts, contexts and items of each group, except for the columns that it is grouped by."""
    others = [name for name in ("concept", "context") if name not in by]
    grouped = table.group_by(by, use_threads=False).aggregate(
        [*((name, "count_distinct") for name in others), ([], "count_all")]
    )
    return grouped.select([*by, *(f"{name}_count_distinct" for name in others), "count_all"]).rename_columns(
        [*by, *(f"{name}s" for name in others), "items"]
    )
