"""Sizes far beyond those of papers, each at half and in full to show growth: `python -m benchmarks.load`.

A million items, 100,000 tasks, 10,000 classes, 500 methods, 1,000 ways: processor time and memory of each command in a
process of its own, at half the size and at all of it; the page's size, and how long a browser takes to open it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.fixture import caption_like
from benchmarks.watched import watch
from shotproof.features.features import Features

DIMENSIONS = 16
DATA = "features.parquet"
DRAWN = "tasks.parquet catalog.parquet features.parquet"
PAGE = f"compare results.parquet {DRAWN} --interval sampler --no-placebo -o report.html"


@dataclass(frozen=True)
class Load:
    """Load on one quantity: how many of it, and the sizes of the data and the commands for so many."""

    quantity: str
    count: int
    sizes: Callable[[int], tuple[int, int]]  # classes, and items of each
    commands: Callable[[int], list[str]]
    write: Callable[[Path, int, int], None] = lambda root, classes, items: _write_drawn(root, classes, items)


def _sample(way: int = 5, tasks: int = 600, query: int = 5, sampler: str = "random") -> str:
    words = " attributes.parquet" if sampler == "fewstab" else ""
    sizes = f"--way {way} --shot 1 --query {query} --tasks {tasks}"
    return f"sample catalog.parquet{words} --sampler {sampler} {sizes} -o tasks.parquet"


def _evaluate(methods: list[str]) -> str:
    return f"evaluate tasks.parquet {DATA} {' '.join(f'-m {method}' for method in methods)} -o results.parquet"


CHECK = "share verify tasks.parquet catalog.parquet attributes.parquet"
COMPARE = f"compare results.parquet {DRAWN} --interval sampler"
EXPLAIN = "explain hardness tasks.parquet attributes.parquet features.parquet"
CATALOG = "catalog files -o catalog.parquet"
LOADS = [
    Load(
        "empty files", 1_000_000, lambda n: (n // 1000, 1000), lambda n: [CATALOG], lambda *sizes: _write_empty(*sizes)
    ),
    Load(
        "images",
        20_000,
        lambda n: (n // 100, 100),
        lambda n: [
            CATALOG,
            "detect catalog.parquet --detector photometric --cache cache -o attributes.parquet",
            "encode catalog.parquet --encoder pixels(size=4) --cache cache -o features.parquet",
        ],
        lambda *sizes: _write_images(*sizes),
    ),
    Load(
        "items",
        1_000_000,
        lambda n: (n // 1000, 1000),
        lambda n: [_sample(sampler="fewstab"), _sample(), CHECK, _evaluate(["ncc", "knn"]), COMPARE, PAGE],
    ),
    Load(
        "tasks",
        100_000,
        lambda n: (50, 100),
        lambda n: [_sample(tasks=n), CHECK, _evaluate(["ncc", "knn"]), COMPARE, PAGE, EXPLAIN],
    ),
    Load(
        "classes",
        10_000,
        lambda n: (n, 10),
        lambda n: [_sample(sampler="fewstab", query=3), _sample(), CHECK, _evaluate(["ncc", "knn"]), COMPARE, PAGE],
    ),
    Load(
        "methods",
        500,
        lambda n: (20, 50),
        lambda n: [_sample(tasks=200), _evaluate([f"ridge(penalty={1 + k})" for k in range(n)]), COMPARE, PAGE],
    ),
    Load(
        "ways",
        1_000,
        lambda n: (1_000, 10),
        lambda n: [_sample(way=n, tasks=20), CHECK, _evaluate(["ncc", "knn"]), COMPARE, PAGE],
    ),
]


@dataclass(frozen=True)
class Usage:
    """Processor time of a command, which other users of the machine do not change, and its peak memory."""

    seconds: float
    gigabytes: float


def main() -> None:
    """Print one row per command: at half the size, at all of it, and how many times as much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the sizes")
    parser.add_argument("quantities", nargs="*", help="e.g. items, tasks, methods; default: all")
    options = parser.parse_args()
    print("| many | command | half | whole | ratio | memory, half | whole | ratio |\n|---|---|---|---|---|---|---|---|")
    for load in LOADS:
        if not options.quantities or load.quantity in options.quantities:
            _print_load(load, int(load.count * options.scale))


def _print_load(load: Load, count: int) -> None:
    half, full = (_measure_commands(load, size) for size in (count // 2, count))
    for name, (before, after) in {name: (half[name], full[name]) for name in full}.items():
        if name.startswith("page"):
            print(
                f"| {count:,} {load.quantity} | {name} | {before.seconds:.2f} | {after.seconds:.2f} | | | | |",
                flush=True,
            )
            continue
        ratios = after.seconds / before.seconds, after.gigabytes / before.gigabytes
        print(
            f"| {count:,} {load.quantity} | {name} | {before.seconds:.1f} s | {after.seconds:.1f} s | {ratios[0]:.1f} "
            f"| {before.gigabytes:.2f} GB | {after.gigabytes:.2f} GB | {ratios[1]:.1f} |",
            flush=True,
        )


def _measure_commands(load: Load, count: int) -> dict[str, Usage]:
    """Measure each command, by name; of the page also its megabytes, and the seconds until it is open."""
    usages: dict[str, Usage] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        load.write(root, *load.sizes(count))
        for line in load.commands(count):
            name = " ".join(line.split()[:1] + [part for part in line.split() if part in ("random", "fewstab")])
            usages[name] = _run_line(line, root)
        page = root / "report.html"
        if page.exists():
            usages["page, MB"] = Usage(page.stat().st_size / 1e6, 0)
            usages["page opens, s"] = Usage(_opening_seconds(page), 0)
    return usages


def _write_empty(root: Path, classes: int, items: int) -> None:
    for label in range(classes):
        folder = root / "files" / f"{label}"
        folder.mkdir(parents=True)
        for item in range(items):
            (folder / f"{item}.png").touch()


def _write_images(root: Path, classes: int, items: int) -> None:
    from PIL import Image

    _write_empty(root, classes, items)
    rng = np.random.default_rng(0)
    for path in (root / "files").rglob("*.png"):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(path)


def _write_drawn(root: Path, classes: int, items: int) -> None:
    catalog, attributes = caption_like(classes, items, 2000, 200, (3, 8))
    catalog.write(root / "catalog.parquet")
    attributes.write(root / "attributes.parquet")
    rng = np.random.default_rng(0)
    centers = np.repeat(rng.normal(size=(classes, DIMENSIONS)), items, axis=0)
    values = (centers + 2 * rng.normal(size=centers.shape)).astype(np.float32)
    Features.from_array(catalog.items, values, name="drawn").write(root / "features.parquet")


def _run_line(line: str, root: Path) -> Usage:
    flags = "" if line.startswith(("share", "catalog")) else " --workers 1"
    cost = watch(f"{line}{flags}", root, _peak_memory)
    return Usage(cost.processor, cost.gigabytes)


def _peak_memory(number: int) -> float:
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{number}/status").read_text())
    return int(match[1]) / 1e6 if match else 0.0


def _opening_seconds(page: Path) -> float:
    """Measure the seconds until a browser has loaded the page and drawn it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page()
        started = time.perf_counter()
        tab.goto(page.as_uri(), wait_until="load")
        tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        seconds = time.perf_counter() - started
        browser.close()
    return seconds


if __name__ == "__main__":
    main()
