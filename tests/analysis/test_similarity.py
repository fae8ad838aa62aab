from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from shotproof.analysis.similarity import Similarity, measure_similarity, words_of
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, Mismatch
from shotproof.features.features import Features
from tests.drawn_embeddings import CONCEPTS, CONTEXTS, catalog, embedded

__all__ = ["catalog", "embedded"]  # fixtures


def test_means_agree_with_scikit_learn(catalog: Catalog, embedded: tuple[Features, Features]) -> None:
    images, texts = embedded
    found = measure_similarity(catalog, images, texts)
    cosines = cosine_similarity(images.array[::-1].astype(np.float64), texts.array.astype(np.float64))
    words = texts.table.column("item").to_pylist()
    rows = list(enumerate(zip(catalog.table["label"].to_pylist(), catalog.table["context"].to_pylist(), strict=True)))
    to_concept = np.array([cosines[row, words.index(label)] for row, (label, _) in rows])
    to_context = [cosines[row, words.index(context)] for row, (_, context) in rows if context]
    assert found.overall["m_ce"] == pytest.approx(to_concept.mean(), rel=1e-12)
    assert found.overall["m_te"] == pytest.approx(np.mean(to_context), rel=1e-12)
    assert found.table.column("m_te").null_count == 60 - len(to_context)
    for one in found.concepts.to_pylist():
        own = to_concept[[label == one["concept"] for _, (label, _) in rows]]
        assert (one["items"], one["m_ce"]) == (len(own), pytest.approx(own.mean(), rel=1e-12))


def test_without_contexts_only_concepts_are_measured(catalog: Catalog, embedded: tuple[Features, Features]) -> None:
    found = measure_similarity(catalog, *embedded, context_column=None)
    assert found.overall["m_te"] is None
    assert found.overall["m_ce"] == measure_similarity(catalog, *embedded).overall["m_ce"]
    assert words_of(catalog, None) == sorted(CONCEPTS)


def test_the_file_comes_back_as_it_was(catalog: Catalog, embedded: tuple[Features, Features], tmp_path: Path) -> None:
    found = measure_similarity(catalog, *embedded)
    found.write(tmp_path / "similarity.parquet")
    read = Similarity.read(tmp_path / "similarity.parquet")
    assert read.table == found.table
    assert read.overall == found.overall
    embedded[0].write(tmp_path / "features.parquet")
    with pytest.raises(InputError, match="expected a file of kind 'similarity', found kind 'features'"):
        Similarity.read(tmp_path / "features.parquet")


def test_bad_embeddings_are_named(catalog: Catalog, embedded: tuple[Features, Features]) -> None:
    images, texts = embedded
    with pytest.raises(Mismatch, match="images have 5 dimensions and texts 4"):
        measure_similarity(catalog, images, Features.from_array(["cat"], np.ones((1, 4))))
    with pytest.raises(InputError, match=r"lack the word 'dog'.*did you mean 'dgo'"):
        measure_similarity(catalog, images, Features.from_array(["cat", "dgo", CONCEPTS[2]], np.ones((3, 5))))
    nothing = Features.from_array([*CONTEXTS, *CONCEPTS], np.zeros((5, 5)))
    with pytest.raises(InputError, match="the text 'grass' has an embedding of zeros"):
        measure_similarity(catalog, images, nothing)
    with pytest.raises(InputError, match="no column 'habitat'"):
        measure_similarity(catalog, images, texts, context_column="habitat")
