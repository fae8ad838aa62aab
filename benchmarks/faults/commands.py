"""Commands to inject faults into, on data so small that each takes a moment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import shotproof as sp

INPUTS = "inputs"  # a folder beside the one that commands run in
EXPERIMENT = """
[catalog]
file = "../inputs/catalog.parquet"
[features]
encoders = ["pixels(size=4)"]
[tasks]
split = "test"
way = 3
shots = [1]
query = 4
tasks = 12
samplers = ["random"]
[evaluate]
methods = ["ncc", "knn"]
[runtime]
cache = "cache"
workers = 1
[output]
folder = "out"
intervals = ["sampler"]
"""


@dataclass(frozen=True)
class Command:
    """Command line, and the one file that it writes; None if it writes a folder."""

    name: str
    line: str
    output: str | None = None

    @property
    def arguments(self) -> list[str]:
        """Return the arguments of `shotproof`."""
        return [self.name, *self.line.split()]

    @property
    def with_workers(self) -> Command:
        """Return the same command with two worker processes."""
        return replace(self, line=f"{self.line} --workers 2")


QUIET = "--workers 1 --cache cache"
COMMANDS = [
    Command("run", "experiment.toml"),
    Command(
        "encode",
        f"../inputs/catalog.parquet --encoder pixels(size=4) {QUIET} -o features.parquet",
        "features.parquet",
    ),
    Command("mix", f"../inputs/sounds.parquet --mapping ../inputs/mapping.csv --set embedding=none {QUIET} -o mixed"),
    Command(
        "train",
        "../inputs/catalog.parquet --objective protonet --backbone conv64f(pools=2) --way 3 --shot 1 --query 2 "
        f"--epochs 3 --tasks 4 --set size=16 --set val_tasks=4 --val-split test {QUIET} -o net.model",
        "net.model",
    ),
    Command(
        "sample",
        "../inputs/catalog.parquet --sampler random --split test --way 3 --query 4 --tasks 200 --workers 1 "
        "-o tasks.parquet",
        "tasks.parquet",
    ),
    Command(
        "evaluate",
        "../inputs/tasks.parquet ../inputs/features.parquet --method ncc --method knn --workers 1 -o results.parquet",
        "results.parquet",
    ),
]
# Those that have enough to do for two worker processes; `evaluate` on features computes in threads.
IN_WORKERS = [
    *(command for command in COMMANDS if command.name in ("run", "encode", "train")),
    Command(
        "evaluate",
        "../inputs/tasks.parquet ../inputs/catalog.parquet --model ../inputs/net.model "
        f"--method finetune(steps=1) {QUIET} -o results.parquet",
        "results.parquet",
    ),
]


def write_inputs(folder: Path) -> None:
    """Write the input files of the commands."""
    inputs = folder / INPUTS
    catalog = sp.worlds.ShapesWorld(classes=8, items=10, size=16, train_classes=4).write(inputs / "world")
    catalog.write(inputs / "catalog.parquet")
    with sp.runtime(cache=None, workers=1):
        sp.encode(catalog, "pixels(size=4)").write(inputs / "features.parquet")
    sp.sample(catalog, "random", split="test", way=3, shot=1, query=4, tasks=50).write(inputs / "tasks.parquet")
    network = {"backbone": "conv64f(pools=2)", "way": 3, "shot": 1, "query": 2, "size": 16, "epochs": 1, "tasks": 1}
    sp.train(catalog, "protonet", output=inputs / "net.model", val_split=None, **network)
    sounds = sp.worlds.SoundsWorld(foregrounds=2, backgrounds=2, items=2)
    sounds.write(inputs / "sounds").write(inputs / "sounds.parquet")
    pairs = [f"{front},{back},test" for front, backs in sounds.mapping().pairs.items() for back in backs]
    (inputs / "mapping.csv").write_text("\n".join(["foreground,background,split", *pairs]))
