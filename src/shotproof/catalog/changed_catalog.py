"""Catalogs with changed items beside those that they are made of, so that both are encoded alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import CHANGE, MASK, UNCHANGED, Catalog
from shotproof.changes.change import BackgroundChange, Change
from shotproof.core.arrays import BoolArray
from shotproof.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

# What a catalog needs so that its items can be taken apart, by medium, and what gives it.
LAYERS = {"image": MASK, "sound": "background"}
LAYERS_HINT = (
    "images need masks (a column 'mask', or `shotproof mix CATALOG --cutter grabcut`, which cuts them out) and sounds "
    "need to be mixtures (`shotproof mix CATALOG --mapping FILE`)"
)


def changed_names(items: pa.Array | pa.ChunkedArray, changes: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Name changed items: `bird.jpg @ blur(severity=3)`."""
    return pc.binary_join_element_wise(items, changes, " @ ")


def can_be_changed(catalog: Catalog, change: Change) -> BoolArray:
    """Return whether each item has what a change needs, [n].

    Raises:
        InputError: no item has it.
    """
    if not isinstance(change, BackgroundChange):
        return np.ones(len(catalog), bool)
    columns = [name for name in LAYERS.values() if name in catalog.table.column_names]
    has_layers = np.zeros(len(catalog), bool)
    for name in columns:
        filled = pc.not_equal(pc.fill_null(catalog.table.column(name), ""), "")
        has_layers |= filled.to_numpy()
    if not has_layers.any():
        raise InputError(f"change '{change.name}' takes items apart, and none has a foreground: {LAYERS_HINT}")
    return has_layers


def with_changes(catalog: Catalog, pairs: Iterable[tuple[pa.Array, pa.Array]]) -> Catalog:
    """Add changed items to a catalog.

    Args:
        catalog: the items as they are
        pairs: names of items and the spellings of their changes, [n] each

    Returns:
        A catalog of all items of the first and then of the changed ones, each once, sorted by name. The columns
        `unchanged` and `change` say what a changed item is made of.
    """
    tables = [pa.table({UNCHANGED: items, CHANGE: changes}) for items, changes in pairs]
    columns = [UNCHANGED, CHANGE]
    distinct = pa.concat_tables(tables).group_by(columns, use_threads=False).aggregate([])
    distinct = distinct.sort_by([(name, "ascending") for name in columns])
    rows = catalog.rows_of(distinct.column(UNCHANGED), "the changes")
    changed = catalog.table.take(pa.array(rows))
    names = changed_names(distinct.column(UNCHANGED), distinct.column(CHANGE))
    changed = changed.set_column(changed.column_names.index("item"), "item", names)
    for name in columns:
        changed = changed.append_column(name, distinct.column(name))
    return Catalog(pa.concat_tables([catalog.table, changed], promote_options="default"), catalog.root, catalog.record)
