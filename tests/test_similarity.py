from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics.pairwise import cosine_similarity
from typer.testing import CliRunner

from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.errors import InputError, Mismatch
from shotproof.features.features import Features
from shotproof.report.similarity_scatter import similarity_scatter
from shotproof.similarity.similarity import Similarity, measure_similarity, words_of
from tests.report_files import make_experiment

CONCEPTS, CONTEXTS = ("cat", "dog", "hot_air_balloon"), ("grass", "snow")


@pytest.fixture
def catalog() -> Catalog:
    rng = np.random.default_rng(1)
    columns = {
        "item": [f"i{n:02d}" for n in range(60)],
        "path": [f"i{n:02d}.png" for n in range(60)],
        "label": rng.choice(CONCEPTS, 60).tolist(),
        "split": ["all"] * 60,
        "context": [None if n % 7 == 0 else str(rng.choice(CONTEXTS)) for n in range(60)],
    }
    return Catalog(pa.table(columns))


@pytest.fixture
def embedded(catalog: Catalog) -> tuple[Features, Features]:
    rng = np.random.default_rng(2)
    images = Features.from_array(catalog.items.to_pylist()[::-1], rng.normal(size=(60, 5)).astype(np.float32))
    texts = Features.from_array([*CONTEXTS, *CONCEPTS], rng.normal(size=(5, 5)).astype(np.float32))
    return images, texts


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
    assert similarity_scatter(found) is None
    assert words_of(catalog, None) == sorted(CONCEPTS)


def test_the_file_comes_back_as_it_was(catalog: Catalog, embedded: tuple[Features, Features], tmp_path: Path) -> None:
    found = measure_similarity(catalog, *embedded)
    found.write(tmp_path / "similarity.parquet")
    read = Similarity.read(tmp_path / "similarity.parquet")
    assert read.table == found.table
    assert read.overall == found.overall
    embedded[0].write(tmp_path / "features.parquet")
    with pytest.raises(InputError, match="no similarity file but one of kind 'features'"):
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


def test_on_the_command_line(catalog: Catalog, embedded: tuple[Features, Features], tmp_path: Path) -> None:
    catalog.write(tmp_path / "catalog.parquet")
    for name, given in zip(("images", "texts"), embedded, strict=True):
        given.write(tmp_path / f"{name}.parquet")
    command = ["similarity", str(tmp_path / "catalog.parquet")]
    brought = ["--features", str(tmp_path / "images.parquet"), "--texts", str(tmp_path / "texts.parquet")]
    written = ["-o", str(tmp_path / "page.html"), "--items", str(tmp_path / "similarity.parquet")]
    shown = CliRunner().invoke(app, [*command, *brought, *written])
    assert shown.exit_code == 0
    assert "M_te (context)" in shown.output
    printed = json.loads(CliRunner().invoke(app, [*command, *brought, "--json"]).output)
    assert printed["m_ce"] == measure_similarity(catalog, *embedded).overall["m_ce"]
    page = (tmp_path / "page.html").read_text()
    assert page.count("h0") == 60 - measure_similarity(catalog, *embedded).table.column("m_te").null_count
    assert "nearer to its concept" in page
    for wrong in ([], ["--features", "f"], [*brought, "--model", "m"], [*brought, "--template", "a {}"]):
        with pytest.raises(InputError, match=r"--features and --texts|go with --model"):
            CliRunner().invoke(app, [*command, *wrong], catch_exceptions=False)


def test_the_report_has_a_section_for_it(catalog: Catalog, embedded: tuple[Features, Features], tmp_path: Path) -> None:
    results, _, _ = make_experiment(tmp_path)
    results[0].write(tmp_path / "results.parquet")
    measure_similarity(catalog, *embedded).write(tmp_path / "similarity.parquet")
    command = ["report", str(tmp_path / "results.parquet"), "-o", str(tmp_path / "report.html")]
    assert 'id="similarity"' not in _page(tmp_path, command)
    assert 'id="similarity"' in _page(tmp_path, [*command, "--similarity", str(tmp_path / "similarity.parquet")])


def _page(folder: Path, command: list[str]) -> str:
    assert CliRunner().invoke(app, command, catch_exceptions=False).exit_code == 0
    return (folder / "report.html").read_text()
