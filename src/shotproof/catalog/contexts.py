"""The context of each item, from any column of a catalog."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, did_you_mean


def contexts_of(catalog: Catalog, column: str) -> list[str | None]:
    """The context of each row of a catalog; None where it has none."""
    if column not in catalog.table.column_names:
        raise InputError(
            f"the catalog has no column '{column}' to take the contexts from"
            f"{did_you_mean(column, catalog.table.column_names)}"
        )
    values = catalog.table.column(column)
    if pa.types.is_nested(values.type):
        raise InputError(f"catalog, column '{column}': expected one context per item, found {values.type}")
    texts = pc.cast(values, pa.string())
    found: list[str | None] = [text or None for text in texts.to_pylist()]
    return found


def clean_context(catalog: Catalog, column: str = "context") -> str | None:
    """The context that means none, where the catalog says which: one by `mix` does."""
    return catalog.record.clean_value if column == "context" else None
