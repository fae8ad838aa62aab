"""`shotproof explain similarity` from end to end, and its section of the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shotproof.analysis.similarity import measure_similarity
from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.core.errors import InputError
from shotproof.features.features import Features
from shotproof.report.figures.similarity_figure import similarity_scatter
from tests.drawn_embeddings import catalog, embedded
from tests.report_files import make_experiment

__all__ = ["catalog", "embedded"]  # fixtures


def test_the_table_the_page_and_the_file(catalog: Catalog, embedded: tuple[Features, Features], tmp_path: Path) -> None:
    catalog.write(tmp_path / "catalog.parquet")
    for name, given in zip(("images", "texts"), embedded, strict=True):
        given.write(tmp_path / f"{name}.parquet")
    command = ["explain", "similarity", str(tmp_path / "catalog.parquet")]
    brought = [str(tmp_path / "images.parquet"), "--texts", str(tmp_path / "texts.parquet")]
    written = ["-o", str(tmp_path / "page.html"), "--items", str(tmp_path / "similarity.parquet")]
    shown = CliRunner().invoke(app, [*command, *brought, *written])
    assert shown.exit_code == 0
    assert "M_te (context)" in shown.output
    printed = json.loads(CliRunner().invoke(app, [*command, *brought, "--json"]).output)
    assert printed["m_ce"] == measure_similarity(catalog, *embedded).overall["m_ce"]
    page = (tmp_path / "page.html").read_text()
    assert page.count("h0") == 60 - measure_similarity(catalog, *embedded).table.column("m_te").null_count
    assert "closer to their concept" in page
    for wrong in ([], [brought[0]], [*brought, "--model", "m"], [*brought, "--template", "a {}"]):
        with pytest.raises(InputError, match=r"features.parquet and --texts|need --model"):
            CliRunner().invoke(app, [*command, *wrong], catch_exceptions=False)


def test_the_report_has_a_section_for_it(catalog: Catalog, embedded: tuple[Features, Features], tmp_path: Path) -> None:
    results, _, _ = make_experiment(tmp_path)
    results[0].write(tmp_path / "results.parquet")
    measure_similarity(catalog, *embedded).write(tmp_path / "similarity.parquet")
    command = ["compare", str(tmp_path / "results.parquet"), "-o", str(tmp_path / "report.html")]
    assert 'id="similarity"' not in _page(tmp_path, command)
    assert 'id="similarity"' in _page(tmp_path, [*command, str(tmp_path / "similarity.parquet")])


def _page(folder: Path, command: list[str]) -> str:
    assert CliRunner().invoke(app, command, catch_exceptions=False).exit_code == 0
    return (folder / "report.html").read_text()


def test_without_contexts_there_is_no_scatter(catalog: Catalog, embedded: tuple[Features, Features]) -> None:
    assert similarity_scatter(measure_similarity(catalog, *embedded, context_column=None)) is None
