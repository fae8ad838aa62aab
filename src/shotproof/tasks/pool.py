"""Pool of the items that tasks are drawn from, by class, in an order that depends only on their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core.arrays import BoolArray, IntArray
from shotproof.core.errors import InputError, InsufficientData
from shotproof.tasks.taskset import SCHEMA, TaskShape


@dataclass(frozen=True)
class ItemPool:
    """Items sorted by label, then by name: class c has the positions offsets[c] to offsets[c + 1].

    `rows` are the items' rows in the catalog. `sources` are codes of the items' sources, None where the catalog has
    no two items of one source.
    """

    items: pa.Array
    rows: IntArray
    classes: list[str]
    offsets: IntArray
    sources: IntArray | None

    @classmethod
    def of(cls, catalog: Catalog) -> ItemPool:
        """Build the pool of all items of a catalog. Raise InputError if an item has no label."""
        labels = catalog.table.column("label")
        if labels.null_count or pc.any(pc.equal(labels, "")).as_py():
            raise InputError("the catalog has items without a label: check_catalog names them")
        order = pc.sort_indices(catalog.table, [("label", "ascending"), ("item", "ascending")])
        encoded = labels.combine_chunks().take(order).dictionary_encode()
        counts = np.bincount(encoded.indices.to_numpy(zero_copy_only=False), minlength=len(encoded.dictionary))
        return cls(
            items=catalog.item_column.take(order),
            rows=order.to_numpy(zero_copy_only=False).astype(np.int64),
            classes=encoded.dictionary.to_pylist(),
            offsets=_offsets(counts),
            sources=_source_codes(catalog, order),
        )

    @property
    def sizes(self) -> IntArray:
        """Return the number of items of each class."""
        return np.diff(self.offsets)

    @property
    def class_of(self) -> IntArray:
        """Return the class of each position."""
        return np.repeat(np.arange(len(self.classes)), self.sizes)

    def keep_only(self, keep: BoolArray) -> ItemPool:
        """Keep only the positions of the mask `keep`; every class stays, even if it becomes empty."""
        sizes = np.bincount(self.class_of[keep], minlength=len(self.classes))
        return ItemPool(
            items=self.items.filter(pa.array(keep)),
            rows=self.rows[keep],
            classes=self.classes,
            offsets=_offsets(sizes),
            sources=None if self.sources is None else self.sources[keep],
        )

    def fitting(self, shape: TaskShape, skip_small_classes: bool = False) -> ItemPool:
        """Return a pool that has enough classes and items for tasks of this shape.

        Args:
            shape: the classes and items that a task needs
            skip_small_classes: leave out classes with too few items instead of raising an error

        Raises:
            InsufficientData: a class has too few items, or there are too few classes.
        """
        pool = self.without_small_classes(shape.items_per_class) if skip_small_classes else self
        if len(pool.classes) < shape.way:
            raise InsufficientData(
                f"{shape.way} ways need at least {shape.way} classes, the data has {len(pool.classes)}: "
                f"lower the ways to {len(pool.classes)} or choose another split"
            )
        small = np.flatnonzero(pool.sizes < shape.items_per_class)
        if len(small):
            worst = int(small[np.argmin(pool.sizes[small])])
            raise InsufficientData(
                f"class '{pool.classes[worst]}' has {pool.sizes[worst]} items, a task needs {shape.items_per_class} of "
                f"each class ({shape.shot} support + {shape.query} query); {len(small)} of {len(pool.classes)} classes "
                "are too small: lower the shots or the queries, or leave such classes out (skip_small_classes=True)"
            )
        return pool

    def without_small_classes(self, items: int) -> ItemPool:
        """Keep only the classes with at least this number of items."""
        large = self.sizes >= items
        classes = [self.classes[c] for c in np.flatnonzero(large)]
        return replace(self.keep_only(large[self.class_of]), classes=classes, offsets=_offsets(self.sizes[large]))

    def task_rows(
        self,
        tasks: range,
        classes: IntArray,
        support: IntArray,
        query: IntArray,
        attributes: list[str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> pa.Table:
        """Build task set rows from positions: classes [t, way], support [t, way, shot], query [t, way, query]."""
        shots, queries = (np.full(classes.size, side.shape[-1]) for side in (support, query))
        ways = np.full(len(classes), classes.shape[1])
        sides = (support.ravel(), shots), (query.ravel(), queries)
        return self.ragged_rows(tasks, ways, classes.ravel(), *sides, attributes, extra)

    def ragged_rows(
        self,
        tasks: range,
        ways: IntArray,
        classes: IntArray,
        support: tuple[IntArray, IntArray],
        query: tuple[IntArray, IntArray],
        attributes: list[str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> pa.Table:
        """Build task set rows from tasks of unequal sizes: ways [t], and one row per class, task by task.

        Support and query are pairs: the concatenated positions of all rows, and the number of positions of each row.
        """
        rows = len(classes)
        slot = np.arange(rows) - np.repeat(np.cumsum(ways) - ways, ways)
        columns = {
            "task": pa.array(np.repeat(np.arange(tasks.start, tasks.stop), ways), pa.int32()),
            "slot": pa.array(slot, pa.int16()),
            "label": pa.array(self.classes, pa.string()).take(pa.array(classes)),
            "attribute": pa.nulls(rows, pa.string()) if attributes is None else pa.array(attributes, pa.string()),
            "support": self._item_lists(*support),
            "query": self._item_lists(*query),
        }
        table = pa.table(columns, SCHEMA)
        for name, values in (extra or {}).items():
            table = table.append_column(name, pa.array(values))
        return table

    def with_side(self, table: pa.Table, side: str, positions: IntArray, counts: IntArray) -> pa.Table:
        """Replace the `support` or `query` of task set rows, given concatenated positions and their count per row."""
        column = SCHEMA.get_field_index(side)
        return table.set_column(column, SCHEMA.field(column), self._item_lists(positions, counts))

    def _item_lists(self, positions: IntArray, counts: IntArray) -> pa.Array:
        offsets = pa.array(_offsets(counts), pa.int32())
        return pa.ListArray.from_arrays(offsets, self.items.take(pa.array(positions)))


def _offsets(sizes: IntArray) -> IntArray:
    """Compute the start of each of consecutive parts of these sizes, and the end of the last."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _source_codes(catalog: Catalog, order: pa.Array) -> IntArray | None:
    """Encode the sources of the items, in this order, as integers; None if all sources differ.

    An item without a source counts as a source of its own.
    """
    if "source" not in catalog.table.column_names:
        return None
    sources = catalog.table.column("source").combine_chunks().take(order)
    indices = sources.dictionary_encode().indices.cast(pa.int64())
    codes: IntArray = pc.fill_null(indices, -1).to_numpy(zero_copy_only=False)
    has_no_source = codes < 0
    codes = np.where(has_no_source, codes.max(initial=-1) + 1 + np.cumsum(has_no_source), codes)
    return None if len(np.unique(codes)) == len(codes) else codes
