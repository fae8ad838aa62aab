"""Changed items of a page: a small catalog that has them, and what was done to them in words."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import CHANGE, Catalog
from shotproof.catalog.changed_catalog import changed_names, with_changes
from shotproof.changes.change import BackgroundChange, changes
from shotproof.tasks.taskset import UNCHANGED_ITEM


def changed_name(item: str, spelling: str) -> str:
    """Name a changed item."""
    name: str = changed_names(pa.array([item]), pa.array([spelling]))[0].as_py()
    return name


def with_shown_changes(catalog: Catalog, pairs: Collection[tuple[str, str]]) -> Catalog:
    """Return a catalog of some items only, with and without their changes, and of those whose backgrounds are shown.

    Args:
        catalog: all items
        pairs: items to show, with the spellings of their changes; empty for items that are shown as they are
    """
    plates = {plate for _, spelling in pairs if (plate := plate_of(spelling)) is not None}
    needed = pa.array(sorted({item for item, _ in pairs} | plates), pa.string())
    rows = catalog.table.filter(pc.is_in(catalog.table.column("item"), value_set=needed))
    changed = sorted({pair for pair in pairs if pair[1] != UNCHANGED_ITEM})
    items, spellings = (pa.array([pair[side] for pair in changed], pa.string()) for side in (0, 1))
    return with_changes(Catalog(rows, catalog.root, catalog.record), [(items, spellings)])


def change_at(catalog: Catalog, row: int) -> str | None:
    """Return the spelling of the change of an item; None if it is shown as it is."""
    if CHANGE not in catalog.table.column_names:
        return None
    spelling: str | None = catalog.table.column(CHANGE)[row].as_py()
    return spelling


def plate_of(spelling: str) -> str | None:
    """Return the item whose background a change shows; None if it shows no other item's."""
    change = None if spelling == UNCHANGED_ITEM else changes.make(spelling)
    return change.plate if isinstance(change, BackgroundChange) else None


def change_words(spelling: str) -> str:
    """Name a change without the item whose background it shows.

    Example:
        >>> change_words("mixed-rival(plate='a.jpg')"), change_words("blur(severity=5)")
        ('mixed-rival', 'blur(severity=5)')
    """
    change = changes.make(spelling)
    return replace(change, plate=None).spelling if isinstance(change, BackgroundChange) else change.spelling
