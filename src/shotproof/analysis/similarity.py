"""MetaCoCo's similarity metric (Eq. 1): cosine between an image and the name of its concept, and of its context."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.contexts import contexts_of
from shotproof.core.errors import InputError, Mismatch, did_you_mean
from shotproof.core.records import SimilarityRecord, Source
from shotproof.core.tables import Tabular
from shotproof.features.features import Features

REQUIRED = {"item": "string", "concept": "string", "context": "string"}
MEASURES = ("m_ce", "m_te")
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Similarity(Tabular):
    """One row per item: `item`, `concept`, `context`, `m_ce` (to the concept's name) and `m_te` (to the context's).

    `m_te` is null where an item has no context.
    """

    KIND, REQUIRED, RECORD = "similarity", REQUIRED, SimilarityRecord

    table: pa.Table
    record: SimilarityRecord = field(default_factory=SimilarityRecord)

    def __post_init__(self) -> None:
        for name in MEASURES:
            if name not in self.table.column_names or not pa.types.is_floating(self.table.schema.field(name).type):
                raise InputError(f"similarity: expected a column '{name}' of numbers")
        if not len(self.table) or self.table.column("m_ce").null_count:
            raise InputError("similarity, column 'm_ce': expected a number in every row, and at least one row")

    @cached_property
    def concepts(self) -> pa.Table:
        """One row per concept: `concept`, `items`, and the means of `m_ce` and `m_te`."""
        counted = self.table.group_by("concept", use_threads=False).aggregate(
            [([], "count_all"), *((name, "mean") for name in MEASURES)]
        )
        return counted.rename_columns(["concept", "items", *MEASURES]).sort_by("concept")

    @cached_property
    def overall(self) -> dict[str, float | int | None]:
        """`items`, and the means of `m_ce` and `m_te` over all of them (MetaCoCo, Table 1 and Fig. 2)."""
        means = {name: pc.mean(self.table.column(name)).as_py() for name in MEASURES}
        return {"items": self.table.num_rows, **means}

    def to_json(self) -> dict[str, Any]:
        """The means, overall and by concept, and what they were made from."""
        return {**self.overall, "concepts": self.concepts.to_pylist(), **self.record.to_meta()}


def measure_similarity(
    catalog: Catalog, images: Features, texts: Features, context_column: str | None = "context"
) -> Similarity:
    """How near items are to the names of their concepts and of their contexts.

    Args:
        catalog: the items
        images: their embeddings
        texts: embeddings of words, which are its items: all labels and contexts
        context_column: the column of contexts; None measures concepts only

    Returns:
        The cosines, one row per item.

    Raises:
        Mismatch: the two embeddings have unequal dimensions.
        InputError: the texts lack a word, or an embedding has no direction.

    Example:
        >>> import numpy as np
        >>> import shotproof as sp
        >>> columns = {"item": ["a"], "path": ["a"], "label": ["dog"], "split": ["test"], "context": ["snow"]}
        >>> images = sp.Features.from_array(["a"], [[3.0, 4.0]])
        >>> texts = sp.Features.from_array(["dog", "snow"], np.eye(2))
        >>> found = sp.analysis.measure_similarity(sp.Catalog(pa.table(columns)), images, texts)
        >>> found.overall["m_ce"], found.overall["m_te"]
        (0.6, 0.8)
    """
    if images.array.shape[1] != texts.array.shape[1]:
        raise Mismatch(
            f"images have {images.array.shape[1]} dimensions and texts {texts.array.shape[1]}: expected one space for "
            "both, as a two-tower model has after its projections"
        )
    contexts: list[str | None] = [None] * len(catalog)
    if context_column is not None:
        contexts = contexts_of(catalog, context_column)
    concepts = catalog.table.column("label").to_pylist()
    row_of = {word: row for row, word in enumerate(texts.table.column("item").to_pylist())}
    items = catalog.table.column("item")
    vectors = _directions(images.array[images.rows_of(items)], "image", items.to_pylist())
    words = _directions(texts.array, "text", list(row_of))
    columns = {
        "item": items,
        "concept": pa.array(concepts, pa.string()),
        "context": pa.array(contexts, pa.string()),
        "m_ce": pa.array(_cosines(vectors, words, concepts, row_of)),
        "m_te": pa.array(_cosines(vectors, words, contexts, row_of), pa.float64(), from_pandas=True),
    }
    towers = texts.record.encoder.options if texts.record.encoder else {}
    record = SimilarityRecord(
        sources={
            "catalog": Source(catalog.digest, catalog.record.name),
            "images": Source(images.digest, images.name),
            "texts": Source(texts.digest, texts.name),
        },
        images=images.name,
        model=towers.get("model"),
        template=towers.get("template"),
        context_column=context_column,
    )
    return Similarity(pa.table(columns), record)


def words_of(catalog: Catalog, context_column: str | None = "context") -> list[str]:
    """All labels and contexts, sorted: the words whose embeddings are needed."""
    contexts = [] if context_column is None else contexts_of(catalog, context_column)
    return sorted({*catalog.table.column("label").to_pylist(), *(context for context in contexts if context)})


def _cosines(vectors: FloatArray, words: FloatArray, names: list[str | None], row_of: dict[str, int]) -> FloatArray:
    """The cosine of each item with its name's word, [items]; not a number where it has no name."""
    for name in sorted({name for name in names if name is not None} - row_of.keys()):
        raise InputError(f"the texts lack the word '{name}'{did_you_mean(name, row_of)}")
    known = np.array([name is not None for name in names])
    rows = [row_of[name] for name in names if name is not None]
    cosines = np.full(len(names), np.nan)
    cosines[known] = np.einsum("ij,ij->i", vectors[known], words[rows])
    return cosines


def _directions(values: npt.NDArray[Any], what: str, names: list[str]) -> FloatArray:
    """Vectors [n, d] at length 1."""
    wide = values.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if not lengths.all():
        raise InputError(
            f"the {what} '{names[int(np.argmin(lengths))]}' has an embedding of zeros: it has no direction"
        )
    directions: FloatArray = wide / lengths
    return directions
