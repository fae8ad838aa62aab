"""Which columns of a catalog look like contexts."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import NAME, OPTIONAL, REQUIRED, Catalog

CONTEXT = "context"
MOST_VALUES = 200  # a column with more is a name or a measurement
_NEVER = {*REQUIRED, *OPTIONAL, NAME} - {CONTEXT}


def context_columns(catalog: Catalog) -> list[str]:
    """The columns that look like contexts, `context` first.

    A context is a word per item that has few values, is of several values in most classes, and of several classes in
    most values: a column that follows from the class, or that tells items apart, is none.

    Args:
        catalog: items of one split

    Returns:
        The names of the columns, those with the most classes per value first.
    """
    found = {}
    for name in catalog.table.column_names:
        if name not in _NEVER and name not in catalog.path_columns and _is_word(catalog.table.schema.field(name).type):
            shared = _classes_per_value(catalog, name)
            if shared is not None:
                found[name] = shared
    return sorted(found, key=lambda name: (name != CONTEXT, -found[name], name))


def _is_word(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_dictionary(kind) or pa.types.is_integer(kind))


def _classes_per_value(catalog: Catalog, name: str) -> float | None:
    """The mean number of classes that a value is in; None where the column is no context."""
    values = pc.cast(catalog.table.column(name), pa.string())
    table = pa.table({"label": catalog.table.column("label"), "value": values}).filter(
        pc.and_(pc.is_valid(values), pc.not_equal(values, ""))
    )
    cells = table.group_by(["label", "value"], use_threads=False).aggregate([])
    if not len(cells):
        return None
    classes, distinct = (pc.count_distinct(cells.column(one)).as_py() for one in ("label", "value"))
    if not 2 <= distinct <= MOST_VALUES or len(cells) < 1.5 * classes or len(cells) < 1.5 * distinct:
        return None
    return float(len(cells) / distinct)
