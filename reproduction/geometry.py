"""What the features of a run tell beyond counts: their length and direction, and one task on a plane.

python -m reproduction.geometry reproduction/sounds-conv64f-1s-s0.toml   # after the experiment was run

`results/TABLE/geometry.json` has what mixing does to the features of each network; `results/TABLE/plane.json` the
places of the items of one iid task and of the ood task beside it, by t-SNE.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.kept import KEPT
from shotproof.analysis.context_effect import feature_change
from shotproof.analysis.projection import ProjectedTask, Projection, shift_projections
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.read import read_inputs

CLEAN = "clean"
GEOMETRY, PLANE = "geometry.json", "plane.json"
PLACE_DIGITS = 2


def keep_geometry(experiment_file: Path, folder: Path = KEPT) -> None:
    """Write both files of an experiment on mixed sounds that was run."""
    inputs = read_inputs([Experiment.read(experiment_file).folder])
    # The mixtures of all splits are there too; features are of those that are tested on.
    catalog = min((catalog for catalog in inputs.catalogs if "context" in catalog.table.column_names), key=len)
    changes = {feature.name: feature_change(feature, catalog, CLEAN).overall.to_json() for feature in inputs.features}
    target = folder / experiment_file.stem
    _write(target / GEOMETRY, {_model(name): changes[name] for name in sorted(changes)})
    _write(target / PLANE, _plain(shift_projections(inputs, "tsne")[0]))


def read_geometry(table: str, folder: Path = KEPT) -> dict[str, dict[str, Any]]:
    """What mixing does to the features, by model; empty where it was not run yet."""
    found: dict[str, dict[str, Any]] = _read(folder / table / GEOMETRY) or {}
    return found


def read_plane(table: str, folder: Path = KEPT) -> Projection | None:
    """The task on a plane; None where it was not run yet."""
    found = _read(folder / table / PLANE)
    if found is None:
        return None
    tasks = [
        ProjectedTask(
            one["sampler"],
            one["labels"],
            one["items"],
            np.array(one["places"]),
            np.array(one["slots"]),
            np.array(one["is_query"]),
        )
        for one in found["tasks"]
    ]
    return Projection(found["encoder"], found["how"], found["task"], tasks, None)


def _model(name: str) -> str:
    """The model of an encoder's name."""
    return Path(name.removeprefix("model:")).stem


def _plain(given: Projection) -> dict[str, Any]:
    tasks = [replace(task, places=task.places.round(PLACE_DIGITS)) for task in given.tasks]
    return {
        "encoder": _model(given.encoder),
        "how": given.how,
        "task": given.task,
        "tasks": [
            {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(task).items()}
            for task in tasks
        ],
    }


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, sort_keys=True) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    for given in sys.argv[1:]:
        keep_geometry(Path(given))
