"""A run's folder that is bundled, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.comparison.card import MissingAxis
from shotproof.pipeline.bundle.write import bundle
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.profile.profile import Profile, write_card
from shotproof.pipeline.study import run
from shotproof.worlds.shapes import ShapesWorld

EXPERIMENT = """
[catalog]
root = "data/shapes"
[features]
encoders = ["pixels"]
[tasks]
way = 2
shots = [1]
query = 2
tasks = 6
samplers = ["random", { name = "hardest", like = "random" }, "semantic(class_distances='tree.csv')"]
[evaluate]
methods = ["ncc", "ridge"]
[output]
folder = "made"
intervals = ["sampler"]
projection = "none"
"""


@pytest.fixture(scope="session")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """The card of `ncc` on pixels, with pictures in `data/shapes` beside it, and tasks by a file of distances."""
    folder = tmp_path_factory.mktemp("bundled")
    ShapesWorld(classes=5, items=8, size=16).write(folder / "data" / "shapes")
    labels = sorted(path.name for path in (folder / "data" / "shapes").iterdir() if path.is_dir())
    tree = "".join(f"{label},{'ab'[place % 2]}\n" for place, label in enumerate(labels))
    (folder / "tree.csv").write_text(f"child,parent\n{tree}")
    (folder / "experiment.toml").write_text(EXPERIMENT)
    experiment = Experiment.read(folder / "experiment.toml")
    missing = [MissingAxis("contexts", "no column looks like contexts")]
    return write_card(experiment, run(experiment), missing=missing, quick=True)


@pytest.fixture(scope="session")
def bundled(profiled: Profile) -> Path:
    """The zip."""
    file = profiled.folder.parent / "shapes.zip"
    bundle(profiled.folder, file)
    return file
