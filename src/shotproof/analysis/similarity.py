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
    """Similarity table with one row per item: `item`, `concept`, `context`, `m_ce` and `m_te`.

    `m_ce` is the cosine to the concept's name and `m_te` that to the context's name, null if an item has no context.
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
        """Return one row per concept: `concept`, `items`, and the means of `m_ce` and `m_te`."""
        grouped = self.table.group_by("concept", use_threads=False).aggregate(
            [([], "count_all"), *((name, "mean") for name in MEASURES)]
        )
        return grouped.rename_columns(["concept", "items", *MEASURES]).sort_by("concept")

    @cached_property
    def overall(self) -> dict[str, float | int | None]:
        """Return `items` and the means of `m_ce` and `m_te` over all of them (MetaCoCo, Table 1 and Fig. 2)."""
        means = {name: pc.mean(self.table.column(name)).as_py() for name in MEASURES}
        return {"items": self.table.num_rows, **means}

    def to_json(self) -> dict[str, Any]:
        """Convert the means, overall and by concept, and their provenance to plain values."""
        return {**self.overall, "concepts": self.concepts.to_pylist(), **self.record.to_meta()}


def measure_similarity(
    catalog: Catalog, images: Features, texts: Features, context_column: str | None = "context"
) -> Similarity:
    """Measure how similar items are to the names of their concepts and contexts.

    Args:
        catalog: the items
        images: embeddings of the items
        texts: embeddings of words, which are its items: all labels and contexts
        context_column: name of the column of contexts; None measures concepts only

    Returns:
        The cosines, one row per item.

    Raises:
        Mismatch: the two embeddings differ in dimension.
        InputError: the texts lack a word, or an embedding is zero.

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
            f"images have {images.array.shape[1]} dimensions and texts {texts.array.shape[1]}: expected one "
            "shared space, such as the projected embeddings of a two-tower model"
        )
    contexts: list[str | None] = [None] * len(catalog)
    if context_column is not None:
        contexts = contexts_of(catalog, context_column)
    concepts = catalog.table.column("label").to_pylist()
    row_of = {word: row for row, word in enumerate(texts.table.column("item").to_pylist())}
    items = catalog.table.column("item")
    vectors = _normalize(images.array[images.rows_of(items)], "image", items.to_pylist())
    word_vectors = _normalize(texts.array, "text", list(row_of))
    columns = {
        "item": items,
        "concept": pa.array(concepts, pa.string()),
        "context": pa.array(contexts, pa.string()),
        "m_ce": pa.array(_cosines(vectors, word_vectors, concepts, row_of)),
        "m_te": pa.array(_cosines(vectors, word_vectors, contexts, row_of), pa.float64(), from_pandas=True),
    }
    text_options = texts.record.encoder.options if texts.record.encoder else {}
    record = SimilarityRecord(
        sources={
            "catalog": Source(catalog.digest, catalog.record.name),
            "images": Source(images.digest, images.name),
            "texts": Source(texts.digest, texts.name),
        },
        images=images.name,
        model=text_options.get("model"),
        template=text_options.get("template"),
        context_column=context_column,
    )
    return Similarity(pa.table(columns), record)


def words_of(catalog: Catalog, context_column: str | None = "context") -> list[str]:
    """Return all labels and contexts, sorted: the words whose embeddings are needed."""
    contexts = [] if context_column is None else contexts_of(catalog, context_column)
    return sorted({*catalog.table.column("label").to_pylist(), *(context for context in contexts if context)})


def _cosines(
    vectors: FloatArray, word_vectors: FloatArray, names: list[str | None], row_of: dict[str, int]
) -> FloatArray:
    """Compute the cosine of each item with its name's embedding, [items]; NaN if it has no name."""
    for name in sorted({name for name in names if name is not None} - row_of.keys()):
        raise InputError(f"the texts lack the word '{name}'{did_you_mean(name, row_of)}")
    has_name = np.array([name is not None for name in names])
    rows = [row_of[name] for name in names if name is not None]
    cosines = np.full(len(names), np.nan)
    cosines[has_name] = np.einsum("ij,ij->i", vectors[has_name], word_vectors[rows])
    return cosines


def _normalize(values: npt.NDArray[Any], kind: str, names: list[str]) -> FloatArray:
    """Normalize vectors [n, d] to unit length."""
    vectors = values.astype(np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not norms.all():
        raise InputError(
            f"the {kind} '{names[int(np.argmin(norms))]}' has an embedding of zeros, which has no direction"
        )
    normalized: FloatArray = vectors / norms
    return normalized
