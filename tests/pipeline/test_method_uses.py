"""Experiments in which methods are evaluated on some encoders, models and shots only."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import jsonschema
import pytest

import shotproof as sp
from shotproof.pipeline.experiment_file import ExperimentFile
from shotproof.pipeline.steps.steps import file_name
from shotproof.pipeline.study import Study, run
from tests.experiment_files import assert_refused, up_to_results, write_experiment
from tests.small_networks import BACKBONE

EXPERIMENT = """
[catalog]
file = "catalog.parquet"
[features]
encoders = ["pixels(size=4)", "model:nets/first.model"]
[tasks]
split = "val"
way = 3
shots = [1, 2]
query = 3
tasks = 4
samplers = ["random"]
[evaluate]
models = ["nets/anil-1.model", "nets/anil-2.model"]
methods = [
  { name = "ncc", on = ["pixels"] },
  { name = "logistic", on = "model:nets/first.model" },
  { name = "model:nets/first.model", shots = [1] },
  { name = "model:nets/dn4.model", shots = [2] },
  { name = "anil", on = "nets/anil-1.model", shots = [1] },
  { name = "anil", on = "nets/anil-2.model", shots = [2] },
]
[runtime]
cache = "cache"
workers = 1
device = "cpu"
[output]
folder = "out"
intervals = ["sampler"]
"""


@pytest.fixture(scope="module")
def done(drawn_networks: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Study]:
    """A folder in which the experiment was run, and what that gave."""
    folder = tmp_path_factory.mktemp("done") / "here"
    shutil.copytree(drawn_networks, folder)
    return folder, run(write_experiment(folder, EXPERIMENT))


def test_each_method_is_evaluated_where_its_table_says(done: tuple[Path, Study]) -> None:
    folder, outcome = done
    pixels, first, dn4 = file_name("pixels(size=4)"), "model-first.model", f"model:{folder}/nets/dn4.model"
    expected = {
        (1, pixels, "ncc"),
        (2, pixels, "ncc"),
        (1, first, "logistic"),
        (2, first, "logistic"),
        (1, first, first),
        (2, "model-dn4.model-maps-True", "model-dn4.model"),
        (1, file_name(f"anil on {BACKBONE} [anil-1]"), "anil"),
        (2, file_name(f"anil on {BACKBONE} [anil-2]"), "anil"),
    }
    written = {name for name in up_to_results(outcome.made) if name.startswith("results/")}
    assert written == {f"results/random-3way-{shot}shot/{on}/{method}.parquet" for shot, on, method in expected}
    shown = outcome.compare().to_pandas()
    assert set(shown[shown["shot"] == 2]["classifier"]) == {
        *("pixels(size=4): ncc", "first: logistic", f"dn4(maps=True): {dn4}", f"anil on {BACKBONE} [anil-2]: anil")
    }
    assert run(write_experiment(folder, EXPERIMENT)).made == []


def test_a_sampler_takes_the_features_of_a_model_as_the_file_spells_it(folder: Path) -> None:
    hardest = '["random", { name = "hardest", encoder = "model:nets/first.model", shots = [1] }]'
    names = run(write_experiment(folder, EXPERIMENT, ('["random"]', hardest)), dry_run=True).made
    assert any(name.startswith("tasks-hardest-on-model") for name in names)


def test_the_scores_are_those_of_evaluating_by_hand(done: tuple[Path, Study]) -> None:
    folder, _ = done
    tasks, catalog = (sp.read(folder / "out" / name) for name in ("tasks-random-3way-2shot.parquet", "catalog.parquet"))
    with sp.runtime(cache=None, workers=1, progress=False, device="cpu"):
        features = sp.encode(catalog, f"model:{folder}/nets/dn4.model(maps=True)")
        direct = sp.evaluate(tasks, features, f"model:{folder}/nets/dn4.model")
    (written,) = (folder / "out/results/random-3way-2shot").glob("*/model-dn4.model.parquet")
    assert sp.read(written).table.equals(direct.table)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ('on = ["pixels"]', 'on = "pixel"'),
            "[evaluate], method 'ncc', on: 'pixel' is not among the encoders",
        ),
        (('on = ["pixels"]', "on = 1"), "[evaluate], method 'ncc', on: expected a list of text or"),
        (('on = ["pixels"]', "shots = [3]"), "[evaluate], method 'ncc', shots: there are no tasks with 3 shots: expec"),
        (
            ('on = ["pixels"]', "shots = [0]"),
            "[evaluate], method 'ncc', shots: expected a list of whole numbers from 1 to 1,000,000",
        ),
        (
            ('on = "nets/anil-1.model"', 'on = "anil-1.model"'),
            "[evaluate], method 'anil', on: 'anil-1.model' is not",
        ),
        (('"model:nets/dn4.model", ', '"model:nets/dn4.model", on = "pixels", '), "[evaluate], method 'model:"),
        (('on = ["pixels"]', 'on = ["pixels", "pixels"]'), "[evaluate], method 'ncc', on: expected each once"),
        (
            ('nets/anil-2.model", shots', 'nets/anil-1.model", shots'),
            "[evaluate], methods: expected each once, found 'anil' twice",
        ),
        (('{ name = "ncc", on = ["pixels"] }', '"dn4"'), "[evaluate], methods: method 'dn4' needs local maps, but en"),
        (("nets/dn4.model", "nets/none.model"), "[evaluate], methods: model "),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_made(folder: Path, change: tuple[str, str], expected: str) -> None:
    changes = [change]
    if "twice" in expected:
        changes.append(("shots = [2] },\n]", "shots = [1] },\n]"))
    assert_refused(write_experiment(folder, EXPERIMENT, *changes), expected)


def test_tasks_that_no_method_is_evaluated_on_are_refused(folder: Path) -> None:
    of_one = ", shots = [1] }"
    ends = ('on = ["pixels"]', 'on = "model:nets/first.model"')
    changes = [(f"{end} }}", f"{end}{of_one}") for end in ends]
    expected = "[tasks], shots: no method is evaluated on tasks with 4 shots"
    assert_refused(write_experiment(folder, EXPERIMENT, *changes, ("shots = [1, 2]", "shots = [1, 2, 4]")), expected)


def test_the_schema_admits_the_file() -> None:
    jsonschema.validate(tomllib.loads(EXPERIMENT), ExperimentFile.json_schema())
