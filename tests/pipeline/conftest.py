"""Folders that runs start from, made once: each test has a copy of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shotproof.pipeline.study import run
from shotproof.worlds.shapes import ShapesWorld
from tests.pipeline.model_files import write_model
from tests.pipeline.shapes_experiment import EXPERIMENT
from tests.small_networks import write_world


@pytest.fixture(scope="session")
def drawn_shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures in `world`, and an experiment on them."""
    folder = tmp_path_factory.mktemp("shapes")
    ShapesWorld(classes=5, items=10, size=16).write(folder / "world")
    (folder / "experiment.toml").write_text(EXPERIMENT)
    return folder


@pytest.fixture(scope="session")
def run_shapes(drawn_shapes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same after a run."""
    folder = tmp_path_factory.mktemp("run") / "shapes"
    shutil.copytree(drawn_shapes, folder)
    run(folder / "experiment.toml")
    return folder


@pytest.fixture
def experiment(drawn_shapes: Path, tmp_path: Path) -> Path:
    """The file of an experiment that has not been run."""
    shutil.copytree(drawn_shapes, tmp_path, dirs_exist_ok=True)
    return tmp_path / "experiment.toml"


@pytest.fixture
def finished(run_shapes: Path, tmp_path: Path) -> Path:
    """The file of an experiment that has been run, with its folder `out`."""
    shutil.copytree(run_shapes, tmp_path, dirs_exist_ok=True)
    return tmp_path / "experiment.toml"


@pytest.fixture(scope="session")
def drawn_networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures with classes of training and of validation, and models that were trained on the former."""
    folder = tmp_path_factory.mktemp("networks")
    write_world(folder / "world").write(folder / "catalog.parquet")
    models = ["first protonet", "second protonet", "anil anil", "nets/dn4 dn4", "nets/anil-1 anil", "nets/anil-2 anil"]
    for seed, (name, objective) in enumerate(model.split() for model in models):
        write_model(folder / f"{name}.model", objective, seed, catalog=folder / "catalog.parquet")
    shutil.copy(folder / "first.model", folder / "nets")
    return folder


@pytest.fixture
def folder(drawn_networks: Path, tmp_path: Path) -> Path:
    """A copy of the networks and their pictures."""
    shutil.copytree(drawn_networks, tmp_path / "here")
    return tmp_path / "here"
