"""`shotproof share verify --null`: pages of shuffled words, from a folder of files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shotproof.cli.app import app
from shotproof.core.errors import InputError
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.tasks.sampler import sample
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    world = ShapesWorld(classes=8, items=40)
    catalog, attributes = world.catalog(), world.attributes()
    features = encode(catalog, DialEncoder(0.5))
    for name, value in (("catalog", catalog), ("attributes", attributes), ("features", features)):
        value.write(tmp_path / f"{name}.parquet")
    for sampler, words in (("random", {}), ("fewstab", {"attributes": attributes})):
        tasks = sample(catalog, sampler, tasks=40, query=5, **words)
        tasks.write(tmp_path / f"tasks-{sampler}.parquet")
        evaluate(tasks, features, "ncc").write(tmp_path / f"results-{sampler}.parquet")
    return tmp_path


def test_the_number_of_pages_that_claim_something_is_told(run_folder: Path) -> None:
    done = CliRunner().invoke(app, ["share", "verify", str(run_folder), "--null", "6"])
    assert done.exit_code == 0, done.output
    assert "of 6 pages with shuffled words claimed" in done.stdout
    told = json.loads(CliRunner().invoke(app, ["share", "verify", str(run_folder), "--null", "6", "--json"]).stdout)
    assert (told["pages"], told["is_sound"]) == (6, True)


def test_a_folder_without_features_is_an_error_that_says_so(run_folder: Path) -> None:
    (run_folder / "features.parquet").unlink()
    done = CliRunner().invoke(app, ["share", "verify", str(run_folder), "--null", "6"])
    assert isinstance(done.exception, InputError)  # which the program ends with status 2 for
    assert "shuffled" in str(done.exception)
    assert "features" in str(done.exception)
