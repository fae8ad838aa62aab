"""The items that tasks are drawn from, class by class, in an order that depends on nothing but their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, Starved
from shotproof.tasks.taskset import SCHEMA

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Design:
    """The shape of a task: classes a task, support items a class, query items a class."""

    way: int = 5
    shot: int = 5
    query: int = 15

    def __post_init__(self) -> None:
        for name, least in (("way", 2), ("shot", 1), ("query", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, not {getattr(self, name)}")


@dataclass(frozen=True)
class Pool:
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
    def of(cls, catalog: Catalog) -> Pool:
        """All items of a catalog; an item without a label is an error."""
        labels = catalog.table.column("label")
        if labels.null_count or pc.any(pc.equal(labels, "")).as_py():
            raise InputError("the catalog has items without a label: see shotproof catalog --check")
        order = pc.sort_indices(catalog.table, [("label", "ascending"), ("item", "ascending")])
        encoded = labels.combine_chunks().take(order).dictionary_encode()
        counts = np.bincount(encoded.indices.to_numpy(zero_copy_only=False), minlength=len(encoded.dictionary))
        return cls(
            items=catalog.items.take(order),
            rows=order.to_numpy(zero_copy_only=False).astype(np.int64),
            classes=encoded.dictionary.to_pylist(),
            offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            sources=_source_codes(catalog, order),
        )

    @property
    def sizes(self) -> IntArray:
        """The number of items of each class."""
        return np.diff(self.offsets)

    @property
    def class_of(self) -> IntArray:
        """The class of each position."""
        return np.repeat(np.arange(len(self.classes)), self.sizes)

    def kept(self, keep: npt.NDArray[np.bool_]) -> Pool:
        """Only some positions; every class stays, if need be empty."""
        sizes = np.bincount(self.class_of[keep], minlength=len(self.classes))
        return Pool(
            items=self.items.filter(pa.array(keep)),
            rows=self.rows[keep],
            classes=self.classes,
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            sources=None if self.sources is None else self.sources[keep],
        )

    def require(self, design: Design) -> None:
        """Refuse a pool with too few classes for the design, or with a class that is too small for it."""
        if len(self.classes) < design.way:
            raise Starved(
                f"{design.way} ways need at least {design.way} classes, the data has {len(self.classes)}: "
                f"lower --way to {len(self.classes)} or choose another split"
            )
        need = design.shot + design.query
        small = np.flatnonzero(self.sizes < need)
        if len(small):
            worst = int(small[np.argmin(self.sizes[small])])
            raise Starved(
                f"class '{self.classes[worst]}' has {self.sizes[worst]} items, a task needs {need} of each class "
                f"({design.shot} support + {design.query} query); {len(small)} of {len(self.classes)} classes are too "
                "small: lower --shot or --query, or leave such classes out with --skip-small-classes"
            )

    def without_small_classes(self, design: Design) -> Pool:
        """Only the classes with enough items for the design."""
        large = self.sizes >= design.shot + design.query
        keep = large[self.class_of]
        return Pool(
            items=self.items.filter(pa.array(keep)),
            rows=self.rows[keep],
            classes=[name for name, kept in zip(self.classes, large, strict=True) if kept],
            offsets=np.concatenate([[0], np.cumsum(self.sizes[large])]).astype(np.int64),
            sources=None if self.sources is None else self.sources[keep],
        )

    def task_rows(
        self,
        tasks: range,
        classes: IntArray,
        support: IntArray,
        query: IntArray,
        attributes: list[str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> pa.Table:
        """Drawn positions as rows of a task set: classes [t, way], support [t, way, shot], query [t, way, query]."""
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
        """Tasks of unequal sizes as rows of a task set: ways [t], and a class a row, task by task.

        Support and query are pairs: positions end to end, and how many of them each row has.
        """
        rows = len(classes)
        slot = np.arange(rows) - np.repeat(np.cumsum(ways) - ways, ways)
        columns = {
            "task": pa.array(np.repeat(np.arange(tasks.start, tasks.stop), ways), pa.int32()),
            "slot": pa.array(slot, pa.int16()),
            "label": pa.array(self.classes, pa.string()).take(pa.array(classes)),
            "attribute": pa.nulls(rows, pa.string()) if attributes is None else pa.array(attributes, pa.string()),
            "support": self._lists(*support),
            "query": self._lists(*query),
        }
        return pa.table(columns, SCHEMA) if not extra else _extended(pa.table(columns, SCHEMA), extra)

    def _lists(self, positions: IntArray, counts: IntArray) -> pa.Array:
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), self.items.take(pa.array(positions)))


def _extended(table: pa.Table, extra: Mapping[str, Any]) -> pa.Table:
    for name, values in extra.items():
        table = table.append_column(name, pa.array(values))
    return table


def _source_codes(catalog: Catalog, order: pa.Array) -> IntArray | None:
    """Codes of the sources in the given order, None where all sources differ; an item without one is its own source."""
    if "source" not in catalog.table.column_names:
        return None
    sources = catalog.table.column("source").combine_chunks().take(order)
    codes: IntArray = pc.fill_null(sources.dictionary_encode().indices.cast(pa.int64()), -1).to_numpy(
        zero_copy_only=False
    )
    alone = codes < 0
    codes = np.where(alone, codes.max(initial=-1) + 1 + np.cumsum(alone), codes)
    return None if len(np.unique(codes)) == len(codes) else codes
