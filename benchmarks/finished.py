"""Waiting times of a run: the `images` interval of birds, and a second run and `compare` of a finished folder.

python -m benchmarks finished
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import shotproof as sp
from benchmarks.fixture import birds

SPECIES = 12
TASKS = 600


def run() -> None:
    """Print the seconds of each, and how many times faster the second run is than the first."""
    root = birds()
    if root is None:
        print("skipped: the birds are missing (set SHOTPROOF_DATA to the folder that holds CUB_200_2011)")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "birds").mkdir()
        for species in sorted((root / "images").iterdir())[:: 200 // SPECIES][:SPECIES]:
            (folder / "birds" / species.name).symlink_to(species.resolve())
        first, second = (_seconds(folder, "run", "birds", "-o", "results", "--tasks", "200") for _ in range(2))
        compare = _seconds(folder, "compare", "results")
    print(f"first run of {SPECIES} species: {first:.1f} s; second: {second:.1f} s, ratio {first / second:.0f}")
    print(f"compare of the finished run: {compare:.1f} s")
    print(f"images interval, 5 methods x {TASKS} FewSTAB tasks, 50 classes: {_images_interval(root):.1f} s")


def _seconds(folder: Path, *arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "shotproof", *arguments], cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - start


def _images_interval(root: Path) -> float:
    catalog = sp.read_layout(root, "cub", splits=root.parent / "cub-libfewshot.csv").in_split("test")
    attributes, features = sp.detect(catalog, "photometric"), sp.encode(catalog, "lite0")
    tasks = sp.sample(catalog, "fewstab", attributes=attributes, shot=5, query=15, tasks=TASKS)
    results = sp.evaluate(tasks, features, ["ncc", "cosine", "logistic", "ridge", "knn"])
    start = time.perf_counter()
    sp.compare([results, tasks, catalog, features, attributes], intervals="images", placebo=False)
    return time.perf_counter() - start
