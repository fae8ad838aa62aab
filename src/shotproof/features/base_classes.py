"""The items of a base set with their classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import unchanged_names
from shotproof.catalog.contexts import contexts_of
from shotproof.core.arrays import BoolArray, FloatArray, IntArray
from shotproof.core.errors import InputError
from shotproof.core.nouns import counted
from shotproof.features.features import Features


@dataclass(frozen=True)
class BaseClasses:
    """Labeled items of a base set.

    values: the features, float64 [n, d]; for maps, the mean over their locations
    rows: the row in the catalog of each item, or of the item that a changed item is made of, [n]
    changed: whether each item is changed, [n]
    """

    catalog: Catalog
    values: FloatArray
    rows: IntArray
    changed: BoolArray

    @classmethod
    def of(cls, base: Features, catalog: Catalog, split: str | None = None, *, changed: bool = False) -> BaseClasses:
        """Select the items of a base set that have a class.

        Args:
            base: features of the base set
            catalog: the classes of its items
            split: the only split to use; None for all items
            changed: whether to include changed items

        Raises:
            Mismatch: the catalog lacks items.
            InputError: there are fewer than two classes, or the split does not exist.
        """
        items = base.table.column("item")
        unchanged = unchanged_names(catalog, items)
        rows = catalog.rows_of(pc.coalesce(unchanged, items), f"the base set '{base.name}'")
        is_changed = pc.not_equal(unchanged, items).to_numpy(zero_copy_only=False)
        table = catalog.table.select(["label", "split"]).take(pa.array(rows))
        is_used = pc.not_equal(table.column("label"), "").to_numpy()
        if split is not None:
            catalog.in_split(split)  # or an error with the splits that exist
            is_used = is_used & pc.equal(table.column("split"), split).to_numpy()
        if not changed:
            is_used = is_used & ~is_changed
        selected = cls(catalog, base.array[is_used].astype(np.float64), rows[is_used], is_changed[is_used])
        if len(selected.labels) < 2:
            names = f" ('{selected.labels[0]}')" if selected.labels else ""
            in_split = "" if split is None else f" in split '{split}'"
            raise InputError(
                f"the base set '{base.name}' has {counted(len(selected.labels), 'class', 'classes')}{names}{in_split}, "
                "expected at least 2"
            )
        return selected

    @cached_property
    def labels(self) -> list[str]:
        """Return the classes, sorted."""
        return sorted(set(self._item_labels))

    @cached_property
    def classes(self) -> IntArray:
        """Return the class of each item, as its place in `labels`, [n]."""
        return np.searchsorted(self.labels, self._item_labels).astype(np.int64)

    @cached_property
    def originals(self) -> IntArray:
        """Return the number of the unchanged item of each item, [n]."""
        return np.unique(self.rows, return_inverse=True)[1].astype(np.int64)

    @property
    def items(self) -> pa.Array:
        """Return the names of the items, those of changed items without their changes."""
        return self.catalog.item_column.take(pa.array(self.rows))

    def contexts(self, column: str) -> list[str | None]:
        """Return the context of each item; None if it has none.

        Raises:
            InputError: the catalog has no such column, or no item has a context.
        """
        contexts_by_row = contexts_of(self.catalog, column)
        contexts = [contexts_by_row[row] for row in self.rows]
        if not any(contexts):
            raise InputError(f"catalog, column '{column}': none of the {len(contexts):,} base items has a context")
        return contexts

    def select(self, condition: BoolArray) -> BaseClasses:
        """Select some of the items, [n]."""
        return BaseClasses(self.catalog, self.values[condition], self.rows[condition], self.changed[condition])

    @cached_property
    def _item_labels(self) -> list[str]:
        labels: list[str] = self.catalog.table.column("label").take(pa.array(self.rows)).to_pylist()
        return labels
