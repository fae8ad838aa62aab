"""Attributes: the words that hold for each item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from shotproof.catalog.catalog import Catalog
from shotproof.core.nouns import counted
from shotproof.core.records import AttributesRecord
from shotproof.core.tables import (
    Tabular,
    conform,
    find_rows,
    require_no_nulls,
    require_unique,
)

REQUIRED = {"item": "string", "attributes": "strings"}


@dataclass(frozen=True, repr=False)
class Attributes(Tabular):
    """Table with one row per item: `item`, and `attributes`, its list of words.

    A null list means that nothing is known about the item, e.g. because its image is broken; an empty list, that it
    has no words.

    Example:
        >>> Attributes.from_words({"a": ["tree", "sky"], "b": []})
        <Attributes: 2 words of 2 items, by unknown>
    """

    KIND, REQUIRED, RECORD = "attributes", REQUIRED, AttributesRecord

    table: pa.Table
    record: AttributesRecord = field(default_factory=AttributesRecord)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", conform(self.table, REQUIRED, "attributes"))
        require_unique(self.table.column("item"), "attributes, column 'item'")
        require_no_nulls(self.table.column("attributes"), "attributes, column 'attributes'")

    @classmethod
    def from_words(
        cls, words: Mapping[str, Iterable[str] | None], record: AttributesRecord | None = None
    ) -> Attributes:
        """Build attributes from {item: words}; each item's words are sorted and stripped of duplicates."""
        lists = [None if item_words is None else sorted(set(item_words)) for item_words in words.values()]
        columns = {"item": pa.array(list(words), pa.string()), "attributes": pa.array(lists, pa.list_(pa.string()))}
        return cls(pa.table(columns), record or AttributesRecord())

    def describe(self) -> str:
        """Return the number of words, the number of items and the detector."""
        word_count = pc.count_distinct(self.table.column("attributes").combine_chunks().flatten()).as_py()
        return f"{counted(word_count, 'word')} of {counted(self.table.num_rows, 'item')}, by {self.record.detector}"

    @property
    def unknown(self) -> list[str]:
        """Return the items that nothing is known about."""
        items: list[str] = self.table.column("item").filter(pc.is_null(self.table.column("attributes"))).to_pylist()
        return items

    def to_words(self) -> dict[str, list[str] | None]:
        """Convert to {item: words}."""
        rows = zip(self.table.column("item").to_pylist(), self.table.column("attributes").to_pylist(), strict=True)
        return dict(rows)

    def of(self, catalog: Catalog) -> HeldWords:
        """Return the words of each item of a catalog, in the catalog's order. An item without a row is an error."""
        return self.of_items(catalog.item_column)

    def of_items(self, items: pa.Array) -> HeldWords:
        """Return the words of each of these items. An item without a row is an error."""
        hint = ": were they made from another catalog? sp.detect computes them again"
        rows = find_rows(items, self.table.column("item"), "the attributes lack", hint)
        lists = self.table.column("attributes").combine_chunks()
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
        encoded = lists.flatten().dictionary_encode()
        # Sorting the words makes their codes independent of the order in which a file names them.
        order = pc.array_sort_indices(encoded.dictionary)
        rank = np.empty(len(order), dtype=np.int32)
        rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
        codes = rank[encoded.indices.to_numpy(zero_copy_only=False)]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        shape = (len(lengths), len(order))
        matrix = scipy.sparse.csr_matrix((np.ones(len(codes), np.bool_), codes, offsets), shape)
        matrix = matrix[rows]
        matrix.sum_duplicates()  # a file may name a word twice for an item
        used_codes = np.flatnonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]))
        words = encoded.dictionary.take(order).take(pa.array(used_codes)).to_pylist()
        is_known = lists.is_valid().take(rows).to_numpy(zero_copy_only=False)
        return HeldWords(words, matrix if len(used_codes) == matrix.shape[1] else matrix[:, used_codes], is_known)


@dataclass(frozen=True)
class HeldWords:
    """Words by item: `matrix` [items, words] is sparse, and True if the item has the word.

    `words` is sorted, and at least one item has each. `known[i]` is False if nothing is known about the item.
    """

    words: list[str]
    matrix: scipy.sparse.csr_matrix
    known: npt.NDArray[np.bool_]
