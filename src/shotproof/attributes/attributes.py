"""Which words hold of which item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from shotproof.catalog.catalog import Catalog
from shotproof.errors import Mismatch
from shotproof.tables import Meta, conform, digest, read_table, require_unique, write_table

REQUIRED = {"item": "string", "attributes": "strings"}


@dataclass(frozen=True)
class Attributes:
    """A row an item: `item` and `attributes`, its list of words.

    A null list means that nothing is known of the item (its image was broken, say); an empty list, that no word holds.
    """

    table: pa.Table
    meta: Meta = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", conform(self.table, REQUIRED, "attributes"))
        require_unique(self.table.column("item"), "attributes, column 'item'")

    @classmethod
    def from_words(cls, words: Mapping[str, Iterable[str] | None], meta: Meta | None = None) -> Attributes:
        """From {item: words}; each item's words are made unique and sorted."""
        lists = [None if held is None else sorted(set(held)) for held in words.values()]
        columns = {"item": pa.array(list(words), pa.string()), "attributes": pa.array(lists, pa.list_(pa.string()))}
        return cls(pa.table(columns), meta or {})

    @classmethod
    def read(cls, path: str | Path) -> Attributes:
        """Read attributes.parquet."""
        table, meta = read_table(Path(path), "attributes", REQUIRED)
        return cls(table, meta)

    def write(self, path: str | Path) -> None:
        """Write attributes.parquet."""
        write_table(Path(path), self.table, {**self.meta, "kind": "attributes", "digest": self.digest})

    @cached_property
    def digest(self) -> str:
        """Digest of the content."""
        return digest(self.table, ["item", "attributes"])

    def to_words(self) -> dict[str, list[str] | None]:
        """As {item: words}."""
        rows = zip(self.table.column("item").to_pylist(), self.table.column("attributes").to_pylist(), strict=True)
        return dict(rows)

    def of(self, catalog: Catalog) -> HeldWords:
        """The words of each item of a catalog, in the catalog's order; an item without a row is an error."""
        return self.of_items(catalog.items)

    def of_items(self, items: pa.Array) -> HeldWords:
        """The words of each of these items; an item without a row is an error."""
        rows = pc.index_in(items, value_set=self.table.column("item"))
        if rows.null_count:
            lacking = items.filter(pc.is_null(rows))[0].as_py()
            raise Mismatch(
                f"the attributes lack {rows.null_count} of the {len(items)} items, e.g. '{lacking}': "
                "were they made from another catalog? (shotproof detect makes them anew)"
            )
        lists = self.table.column("attributes").combine_chunks()
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
        encoded = lists.flatten().dictionary_encode()
        # Codes in the order of the words, so that nothing depends on which word a file happens to name first.
        order = pc.array_sort_indices(encoded.dictionary)
        rank = np.empty(len(order), dtype=np.int32)
        rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
        codes = rank[encoded.indices.to_numpy(zero_copy_only=False)]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        shape = (len(lengths), len(order))
        matrix = sparse.csr_matrix((np.ones(len(codes), np.bool_), codes, offsets), shape)
        matrix = matrix[rows.to_numpy(zero_copy_only=False)]
        matrix.sum_duplicates()  # a word that a file names twice holds once
        used = np.flatnonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]))
        words = encoded.dictionary.take(order).take(pa.array(used)).to_pylist()
        known = lists.is_valid().take(rows).to_numpy(zero_copy_only=False)
        return HeldWords(words, matrix if len(used) == matrix.shape[1] else matrix[:, used], known)


@dataclass(frozen=True)
class HeldWords:
    """Words by item: `matrix` [items, words] is sparse, True where the item holds the word.

    `words` is sorted, and each of them holds of some item. `known[i]` is False where nothing is known of the item.
    """

    words: list[str]
    matrix: sparse.csr_matrix
    known: npt.NDArray[np.bool_]
