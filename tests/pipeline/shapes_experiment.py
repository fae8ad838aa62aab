"""A small experiment on a world of shapes, and the files of its run."""

from __future__ import annotations

from pathlib import Path

from shotproof.pipeline.steps.steps import file_name

EXPERIMENT = """
[catalog]
root = "world"
[attributes]
detectors = ["photometric"]
[features]
encoders = ["pixels(size=4)"]
[tasks]
way = 3
shots = [1, 2]
query = 4
tasks = 12
[evaluate]
methods = ["ncc", "knn"]
[runtime]
cache = "cache"
workers = 1
[output]
folder = "out"
intervals = ["sampler"]
"""
ENCODER = file_name("pixels(size=4)")
TASKS = [f"{sampler}-3way-{shot}shot" for sampler in ("random", "fewstab", "placebo-of-fewstab") for shot in (1, 2)]
FILES = sorted(
    [
        "catalog.parquet",
        "attributes.parquet",
        f"features-{ENCODER}.parquet",
        *(f"tasks-{name}.parquet" for name in TASKS),
        *(f"results/{name}/{ENCODER}/{method}.parquet" for name in TASKS for method in ("ncc", "knn")),
    ]
)


def bytes_of(folder: Path) -> dict[str, bytes]:
    """What is in every file of a folder, by its place there."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
