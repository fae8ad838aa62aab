"""Geometry of the features of a run: their length and direction, and one task projected on a plane.

python -m reproduction.geometry reproduction/sounds-conv64f-1s-s0.toml   # after the experiment was run

`results/TABLE/geometry.json` has how mixing changes the features of each network; `results/TABLE/plane.json` the
positions of the items of one iid task and of its ood task, by t-SNE.
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
    """Write both files of an experiment on mixed sounds that has been run."""
    inputs = read_inputs([Experiment.read(experiment_file).folder])
    # The mixtures of all splits are there too; features are of those that are tested on.
    catalog = min((catalog for catalog in inputs.catalogs if "context" in catalog.table.column_names), key=len)
    changes = {feature.name: feature_change(feature, catalog, CLEAN).overall.to_json() for feature in inputs.features}
    target = folder / experiment_file.stem
    _write(target / GEOMETRY, {_model_name(name): changes[name] for name in sorted(changes)})
    _write(target / PLANE, _projection_to_json(shift_projections(inputs, "tsne")[0]))


def read_geometry(table: str, folder: Path = KEPT) -> dict[str, dict[str, Any]]:
    """Read how mixing changes the features, by model; empty if it has not been run yet."""
    geometry: dict[str, dict[str, Any]] = _read(folder / table / GEOMETRY) or {}
    return geometry


def read_plane(table: str, folder: Path = KEPT) -> Projection | None:
    """Read the task projected on a plane; None if it has not been run yet."""
    plane = _read(folder / table / PLANE)
    if plane is None:
        return None
    tasks = [
        ProjectedTask(
            task["sampler"],
            task["labels"],
            task["items"],
            np.array(task["places"]),
            np.array(task["slots"]),
            np.array(task["is_query"]),
        )
        for task in plane["tasks"]
    ]
    return Projection(plane["encoder"], plane["how"], plane["task"], tasks, None)


def _model_name(name: str) -> str:
    """Return the name of the model that an encoder's name refers to."""
    return Path(name.removeprefix("model:")).stem


def _projection_to_json(projection: Projection) -> dict[str, Any]:
    tasks = [replace(task, places=task.places.round(PLACE_DIGITS)) for task in projection.tasks]
    return {
        "encoder": _model_name(projection.encoder),
        "how": projection.how,
        "task": projection.task,
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
    for argument in sys.argv[1:]:
        keep_geometry(Path(argument))
