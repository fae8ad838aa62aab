"""`shotproof explain features` from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.core.errors import ShotproofError
from shotproof.core.records import CatalogRecord
from shotproof.features.features import Features
from tests.analysis.test_context_effect import drawn, is_mixed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Features that mixing halves, and a reference set elsewhere."""
    folder = tmp_path_factory.mktemp("geometry")
    catalog, array = drawn()
    catalog.write(folder / "catalog.parquet")
    Features.from_array(catalog.items, array + 3).write(folder / "reference.parquet")
    array[is_mixed(catalog)] *= 0.5
    Features.from_array(catalog.items, array, name="logmel").write(folder / "features.parquet")
    Features.from_array(catalog.items, array[:, :2]).write(folder / "narrow.parquet")
    return folder


def run(folder: Path, *options: str) -> str:
    """What the command prints; what it refuses is raised."""
    given = [str(folder / option) if Path(option).suffix else option for option in ("features.parquet", *options)]
    outcome = CliRunner().invoke(app, ["explain", "features", *given], standalone_mode=False)
    if outcome.exception is not None:
        assert outcome.stdout == ""
        raise outcome.exception
    return outcome.stdout


def test_the_table_the_sentence_and_the_figure(folder: Path) -> None:
    printed = run(folder, "catalog.parquet", "--clean-value", "clean", "-o", "out.svg")
    assert "features by logmel" in printed
    rows = [line.split()[0] for line in printed.splitlines() if line.startswith(("class", "all"))]
    assert rows == ["class", "class0", "class1", "class2", "all"]
    assert "Mixing makes features 50.0% shorter and turns them by 0.0 degrees" in printed
    assert (folder / "out.svg").read_text(encoding="utf-8").startswith("<svg ")


def test_a_catalog_of_mixtures_says_what_is_clean(folder: Path) -> None:
    catalog = Catalog.read(folder / "catalog.parquet")
    Catalog(catalog.table, catalog.root, CatalogRecord(clean_value="clean")).write(folder / "mixed.parquet")
    printed = run(folder, "mixed.parquet", "--json")
    assert printed == run(folder, "catalog.parquet", "--clean-value", "clean", "--json")


def test_json_has_every_value(folder: Path) -> None:
    both = ["catalog.parquet", "--clean-value", "clean", "--against", "reference.parquet"]
    found = json.loads(run(folder, *both, "--against", "catalog.parquet", "--permutations", "19", "--json"))
    assert found["features"] == "logmel"
    assert found["change"]["overall"]["ratio"]["mean"] == pytest.approx(0.5)
    assert [row["label"] for row in found["distance"]["classes"]] == ["class0", "class1", "class2"]
    assert found["distance"]["overall"]["p_value"] == 0.05
    assert np.isfinite(found["distance"]["overall"]["mmd2"])


def test_a_reference_alone_needs_no_catalog(folder: Path) -> None:
    printed = run(folder, "--against", "reference.parquet", "--permutations", "0")
    assert "centroid cosine" in printed
    assert printed.splitlines()[-1].split()[:3] == ["all", "54", "54"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "nothing to compare"),
        (["catalog.parquet"], "nothing to compare"),
        (["--clean-value", "clean"], "need the catalog"),
        (["--against", "reference.parquet", "-o", "x.svg"], "--output draws clean and mixed"),
        (["catalog.parquet", "--clean-value", "rein"], "did you mean 'rain'"),
        (["catalog.parquet", "--clean-value", "clean", "--split", "tset"], "did you mean 'test'"),
        (["catalog.parquet", "--clean-value", "clean", "--level", "95"], r"did you mean 0\.95"),
        (["catalog.parquet", "--clean-value", "clean", "-o", "x.pdf"], r"ends in \.svg or \.html"),
        (["--against", "narrow.parquet"], "8 dimensions, the reference has 2"),
    ],
)
def test_bad_input_is_one_line(folder: Path, options: list[str], message: str) -> None:
    with pytest.raises(ShotproofError, match=message):
        run(folder, *options)
