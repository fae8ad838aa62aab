"""Hard tasks: difficulty and time on birds and in a world of contexts, speed by the size of pools, and a million items.

`python -m benchmarks.hard_tasks [--device cuda] [--scale]`: all but the million items, or these alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from benchmarks.fixture import birds
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import read_layout
from shotproof.core.runtime.runtime import runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.tasks.sampler import samplers
from shotproof.tasks.taskset import TaskSet, TaskShape

SEARCHES = [
    "greedy",
    "fastdiffsel",
    "fastdiffsel(loss='mean')",
    "fastdiffsel(alpha=20_000.0)",
    "hardest(effort='low')",
    "hardest",
    "hardest(effort='high')",
    "greedy(mode='easy')",
    "fastdiffsel(mode='easy')",
    "hardest(mode='easy')",
]


def milliseconds(draw: Any, tasks: int, repeats: int = 3) -> float:
    """Measure milliseconds per task, the best of several runs; CPU time if other programs may share the processor."""
    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        draw()
        best = min(best, clock() - start)
    return best / tasks * 1e3


def gaussian(classes: int, items: int, width: int) -> tuple[Catalog, Features]:
    """Draw classes around random means, items of length about 1."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((classes, items, width), dtype=np.float32) / np.sqrt(width)
    values += rng.standard_normal((classes, 1, width), dtype=np.float32) * 0.3 / np.sqrt(width)
    names = pa.array([f"{c:04d}/{i:06d}" for c in range(classes) for i in range(items)])
    labels = np.repeat([f"class{c:04d}" for c in range(classes)], items)
    catalog = Catalog(pa.table({"item": names, "path": names, "label": labels, "split": np.repeat("test", len(names))}))
    return catalog, Features.from_array(names, values.reshape(-1, width))


def context_world() -> tuple[Catalog, Features]:
    """Draw 12 classes of 300 items, 256 dimensions, in 6 contexts that move items further than classes do; length 1."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((12, 300, 256)) + 0.5 * rng.standard_normal((12, 1, 256))
    values += rng.standard_normal((6, 256))[rng.integers(6, size=(12, 300))] * 0.7
    values /= np.linalg.norm(values, axis=-1, keepdims=True)
    catalog, _ = gaussian(12, 300, 1)
    return catalog, Features.from_array(catalog.items, values.reshape(-1, 256).astype(np.float32))


def search_birds() -> None:
    """Run the searches on L2-normalized features of the birds, with 5 shots and with 1."""
    root = birds()
    if root is None:
        print("skipped: the birds are missing (set SHOTPROOF_DATA to the folder that holds CUB_200_2011)")
        return
    catalog = read_layout(root, "cub", splits=root.parent / "cub-130-20-50.csv").in_split("test")
    raw = encode(catalog, "lite0")
    features = Features.from_array(catalog.items, raw.array / np.linalg.norm(raw.array, axis=1, keepdims=True))
    search("birds, L2-normalized lite0", catalog, features, TaskShape(5, 5, 10))
    search("birds, L2-normalized lite0", catalog, features, TaskShape(5, 1, 10))


def search(title: str, catalog: Catalog, features: Features, shape: TaskShape, tasks: int = 200) -> None:
    """Print the accuracy of nearest centroid on tasks of the same query sets, and the time of each search."""
    print(f"{title}, {shape.way} ways, {shape.shot} shots, {shape.query} queries, {tasks} tasks of the same query sets")
    drawn = samplers.make("random").bind(catalog, shape, 0).draw(range(tasks))
    print(f"  {'random':38} accuracy {accuracy(drawn, features):5.1f}")
    greedy = float("nan")
    for spelling in SEARCHES:
        sampler = samplers.make(spelling).bind(catalog, shape, 0, features=features)
        percent = accuracy(sampler.draw(range(tasks)), features)
        spent = milliseconds(lambda: sampler.draw(range(tasks)), tasks)  # noqa: B023 - called at once
        greedy = spent if spelling == "greedy" else greedy
        print(
            f"  {spelling:38} accuracy {percent:5.1f}  {spent:6.2f} ms per task, greedy / {greedy / spent:.1f}",
            flush=True,
        )


def accuracy(table: pa.Table, features: Features) -> float:
    """Compute the mean accuracy of nearest centroid, in percent."""
    counts = evaluate(TaskSet(table), features, methods=["ncc"]).table
    return 100 * sum(counts.column("n_correct").to_pylist()) / sum(counts.column("n_query").to_pylist())


def by_pool() -> None:
    """Print milliseconds per task for pools of 50 to 5,000 items per class, and the ratio to greedy."""
    for pool, classes, tasks in ((50, 50, 200), (500, 20, 100), (1000, 20, 60), (5000, 10, 40)):
        catalog, features = gaussian(classes, pool + 10, 1280)
        spent = {}
        for name in ("fastdiffsel", "hardest", "greedy"):
            sampler = samplers.make(name).bind(catalog, TaskShape(5, 5, 10), 0, features=features)
            sampler.draw(range(2))
            spent[name] = milliseconds(lambda: sampler.draw(range(tasks)), tasks, 3 if name == "greedy" else 10)  # noqa: B023
        times = ", ".join(f"{name} {ms:.2f} ms (greedy / {spent['greedy'] / ms:.0f})" for name, ms in spent.items())
        print(f"pools of {pool}, 1,280 dimensions, {tasks} tasks: {times}", flush=True)


def write_million(folder: str) -> None:
    """Write a catalog and features of a million items of 384 dimensions."""
    catalog, features = gaussian(1000, 1000, 384)
    catalog.write(Path(folder) / "catalog.parquet")
    features.write(Path(folder) / "features.parquet")


def scale() -> None:
    """Draw 100 tasks from a million items of 384 dimensions in a separate process, files read and written."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        # In another process: the peak of memory of a process counts in those that it starts.
        code = "import sys, benchmarks.hard_tasks as h; h.write_million(sys.argv[1])"
        subprocess.run([sys.executable, "-c", code, folder], check=True)
        for name in ("fastdiffsel", "hardest", "greedy"):
            command = [sys.executable, "-m", "shotproof", "sample", "catalog.parquet", "--sampler", name]
            command += ["features.parquet", "--tasks", "100", "--query", "10", "-o", "tasks.parquet"]
            start = time.perf_counter()
            process = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0, f"shotproof sample failed with status {process.returncode}"
            used = f"{time.perf_counter() - start:.1f} s ({usage.ru_utime + usage.ru_stime:.1f} s of the processor)"
            print(f"{name}: 100 tasks from 1,000,000 x 384: {used}, {usage.ru_maxrss / 1e6:.2f} GB at most", flush=True)


def run() -> None:
    """Run everything."""
    search_birds()
    search("a world of 6 contexts", *context_world(), TaskShape(5, 5, 10))
    by_pool()
    scale()


if __name__ == "__main__":
    if "--scale" in sys.argv:
        scale()
    else:
        chosen = sys.argv[sys.argv.index("--device") + 1] if "--device" in sys.argv else None
        with runtime(device=chosen):
            search_birds()
            search("a world of 6 contexts", *context_world(), TaskShape(5, 5, 10))
            by_pool()
