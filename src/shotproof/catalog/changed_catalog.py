"""Catalogs with changed items beside those that they are made of, so that both are encoded alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import CHANGE, MASK, MIXTURE_COLUMNS, UNCHANGED, Catalog
from shotproof.changes.change import BackgroundChange, Change
from shotproof.core.arrays import BoolArray
from shotproof.core.errors import InputError
from shotproof.core.tables import conform

if TYPE_CHECKING:
    from collections.abc import Iterable

# Columns that a catalog needs so that its items can be taken apart, by medium, and what gives them.
LAYER_COLUMNS = {"image": (MASK,), "sound": MIXTURE_COLUMNS}
LAYERS_HINT = (
    "images need masks (a column 'mask', a folder, by `shotproof mix CATALOG --masks FOLDER`, or `shotproof mix "
    "CATALOG --cutter grabcut`, which cuts them out, best by boxes in the columns box_x, box_y, box_width, box_height) "
    "and sounds need to be mixtures (`shotproof mix CATALOG --mapping FILE`)"
)

CHANGED = " @ "  # between the name of an item and its change


def changed_names(items: pa.Array | pa.ChunkedArray, changes: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Name changed items: `bird.jpg @ blur(severity=3)`."""
    return pc.binary_join_element_wise(items, changes, CHANGED)


def unchanged_names(catalog: Catalog, items: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Name the item that each item is made of: itself if it is not changed, null if the catalog has neither, [n].

    A changed item need not be in the catalog: `bird.jpg @ blur` is made of `bird.jpg` if the catalog has that.
    """
    rows = pc.index_in(items, value_set=catalog.item_column)
    names = catalog.item_column
    if is_changed(catalog):
        names = pc.coalesce(catalog.table.column(UNCHANGED).cast(pa.string()), names)
    unchanged = pc.take(names, rows).to_pylist()
    known = set(catalog.items) if rows.null_count else set()
    for place in np.flatnonzero(pc.is_null(rows).to_numpy(zero_copy_only=False)):
        unchanged[place] = _beginning(items[int(place)].as_py(), known)
    return pa.array(unchanged, pa.string())


def _beginning(name: str, known: set[str]) -> str | None:
    """Return the known item of which this is the name after a change; None if there is none."""
    parts = name.split(CHANGED)
    beginnings = (CHANGED.join(parts[:length]) for length in range(len(parts) - 1, 0, -1))
    return next((beginning for beginning in beginnings if beginning in known), None)


def can_be_changed(catalog: Catalog, change: Change) -> BoolArray:
    """Return whether each item has what a change needs, [n].

    Raises:
        InputError: no item has it.
    """
    if not isinstance(change, BackgroundChange):
        return np.ones(len(catalog), bool)
    is_layered = has_layers(catalog)
    if not is_layered.any():
        raise InputError(
            f"change '{change.name}' needs the foreground of each item, and no item has one: {LAYERS_HINT}"
        )
    return is_layered


def has_layers(catalog: Catalog) -> BoolArray:
    """Return whether each item can be taken apart into foreground and background, [n], without reading any file.

    Raises:
        InputError: a column that names masks or recordings does not hold text.
    """
    known = np.zeros(len(catalog), bool)
    for medium, names in LAYER_COLUMNS.items():
        if catalog.medium not in (medium, None) or not set(names) <= set(catalog.table.column_names):
            continue
        table = conform(catalog.table, dict.fromkeys(names, "string"), "catalog")
        filled = [pc.not_equal(pc.fill_null(table.column(name), ""), "").to_numpy() for name in names]
        known |= np.logical_and.reduce(filled)
    return known


def is_changed(catalog: Catalog) -> bool:
    """Return whether a catalog has changed items. One of the two columns alone is its user's, whatever it holds."""
    return {UNCHANGED, CHANGE} <= set(catalog.table.column_names)


def with_changes(catalog: Catalog, pairs: Iterable[tuple[pa.Array, pa.Array]]) -> Catalog:
    """Add changed items to a catalog.

    Args:
        catalog: the items as they are
        pairs: names of items and the spellings of their changes, [n] each

    Returns:
        A catalog of all items of the first and then of the changed ones, each once, sorted by name. The columns
        `unchanged` and `change` say what a changed item is made of; columns of these names of the user's own are left
        out.

    Raises:
        InputError: a changed item has the name of an item of the catalog.
        Mismatch: the catalog lacks an item.
    """
    tables = [pa.table({UNCHANGED: items, CHANGE: changes}) for items, changes in pairs]
    columns = [UNCHANGED, CHANGE]
    distinct = pa.concat_tables(tables).group_by(columns, use_threads=False).aggregate([])
    distinct = distinct.sort_by([(name, "ascending") for name in columns])
    rows = catalog.rows_of(distinct.column(UNCHANGED), "the changes")
    unchanged = catalog.table.drop_columns([name for name in columns if name in catalog.table.column_names])
    changed = unchanged.take(pa.array(rows))
    names = changed_names(distinct.column(UNCHANGED), distinct.column(CHANGE))
    is_taken = pc.is_in(names, value_set=catalog.item_column)
    if pc.any(is_taken).as_py():
        taken = pc.index(is_taken, True).as_py()
        item, change = (distinct.column(name)[taken].as_py() for name in columns)
        raise InputError(
            f"catalog, column 'item': '{names[taken].as_py()}' is also the name of item '{item}' with the change "
            f"'{change}': rename it, e.g. without ' @ '"
        )
    changed = changed.set_column(changed.column_names.index("item"), "item", names)
    for name in columns:
        changed = changed.append_column(name, distinct.column(name))
    return Catalog(pa.concat_tables([unchanged, changed], promote_options="default"), catalog.root, catalog.record)
