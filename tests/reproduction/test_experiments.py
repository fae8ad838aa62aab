"""The experiment files can be read, and name models that are trained; the trainings have settings that there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import jsonschema
import pytest
from reproduction import train

from shotproof.cli.arguments import read_settings
from shotproof.models.backbone import backbones
from shotproof.pipeline.experiment_file import ExperimentFile
from shotproof.training.train import make_stages

FOLDER = Path(__file__).parents[2] / "reproduction"
EXPERIMENTS = sorted(FOLDER.glob("*.toml"))
TRAININGS = [*train.cub_trainings(), *train.sound_trainings()]
SCHEMA = jsonschema.Draft202012Validator(ExperimentFile.json_schema())  # which tests/test_docs.py checks
SETTINGS = ("shot", "epochs", "tasks", "lr", "train-sampler")


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_an_experiment_fits_the_schema_and_names_models_that_are_trained(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    SCHEMA.validate(tomllib.loads(text))
    named = set(re.findall(r"(?:sound-)?models/[\w.+-]+\.model", text))
    assert named <= {"/".join(one.output.parts[-2:]) for one in TRAININGS}
    assert f'folder = "runs/{path.stem}"' in text


def test_every_model_is_in_a_table_or_the_start_of_another() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in EXPERIMENTS)
    starts = {one.start for one in TRAININGS}
    assert [one.output for one in TRAININGS if f"/{one.output.name}" not in text and one.output not in starts] == []
    assert len({one.output for one in TRAININGS}) == len(TRAININGS)


@pytest.mark.parametrize("training", TRAININGS, ids=lambda one: one.output.stem)
def test_the_arguments_of_a_training_are_those_that_there_are(training: train.Training) -> None:
    names, values = training.arguments[::2], training.arguments[1::2]
    given = {name.removeprefix("--"): value for name, value in zip(names, values, strict=True) if name != "--set"}
    if "backbone" in given:
        backbones.make(given["backbone"])
    typed = {name.replace("-", "_"): given[name] for name in SETTINGS if name in given}
    numbers = {
        name: float(value) if name == "lr" else int(value) for name, value in typed.items() if value[0].isdigit()
    }
    more = read_settings([one for name, one in zip(names, values, strict=True) if name == "--set"])
    stages = make_stages(given.get("objective"), given.get("recipe"), {**typed, **numbers, **more})
    has_backbone = "backbone" in given or len(stages) > 1  # a recipe of several stages has its own
    assert has_backbone == (training.start is None)
    assert set(given) <= {*SETTINGS, "objective", "backbone", "recipe", "seed", "val-split"}


def test_a_training_starts_from_its_model(tmp_path: Path) -> None:
    one = train.Training(tmp_path / "a.model", ("--shot", "1"), tmp_path / "start.model")
    catalog = tmp_path / "catalog.parquet"
    expected = ["train", str(catalog), "--shot", "1", "--from", str(tmp_path / "start.model")]
    assert one.command(catalog)[3:] == [*expected, "-o", str(one.output)]
