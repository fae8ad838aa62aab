"""Models for experiments: untrained networks in files that say what they have seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import shotproof as sp
from shotproof.models.objective import objectives
from tests.models.objectives.untrained_models import model_of
from tests.small_networks import BACKBONE

FIRST = f"protonet on {BACKBONE}"


def write_model(path: Path, objective: str = "protonet", seed: int = 0, catalog: Path | None = None) -> None:
    """An untrained model whose record says that it has seen the classes of training."""
    model = model_of(objectives.make(objective), seed)
    trained = sp.Catalog.read(catalog or path.parent / "catalog.parquet").in_split("train")
    seen = tuple(sorted(set(trained.table.column("label").to_pylist())))
    path.parent.mkdir(exist_ok=True)
    replace(model, record=replace(model.record, seen=seen)).write(path)
