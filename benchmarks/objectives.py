"""Does every objective learn? Accuracy on classes that training has not seen, before and after a short training.

python -m benchmarks.objectives [--seed N] [objectives]

One small network (Conv64F) on one small world of shapes, on the CPU, 5 classes and 5 shots per task. Classes of
training and test differ; everything is measured on the same test tasks, and training is not validated on them: the last
weights count. Settings are the objective's own except for lengths and those in SETTINGS, because the papers' settings
are for networks a hundred times as large and trainings a thousand times as long.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import shotproof as sp
from shotproof.catalog.catalog import Catalog
from shotproof.core.runtime.runtime import resolve
from shotproof.models.decoded_items import ItemStore
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import objectives
from shotproof.tasks.sampler import sample
from shotproof.training.train import train
from shotproof.training.trainer import Validation
from shotproof.training.training_batches import task_rows
from shotproof.worlds.shapes import ShapesWorld

WORLD = ShapesWorld(classes=40, train_classes=27, items=40, size=32)
SHAPE: dict[str, Any] = {"way": 5, "shot": 5, "query": 5}
TASKS = 200  # that accuracy is measured on
BACKBONE = "conv64f(pools=2, pooling='mean')"
CHANCE = 100 / SHAPE["way"]

# Lengths that suit a CPU; an objective ignores the settings that it does not read.
SHORT: dict[str, Any] = {**SHAPE, "size": 16, "epochs": 10, "tasks": 20, "tasks_per_update": 1, "batch": 64}

# Views share only the shape if crops are mild and colors, which all classes share, carry no information.
VIEWS = {"augment": "resized-crop(area=0.5, jitter=0.8, hue=0.5, gray=0.5)"}

# Settings that replace the papers' if these do not fit so small a network or so short a training.
SETTINGS: dict[str, dict[str, Any]] = {
    "frn": {"lr": 0.03},
    "gnn": {"shot": 1, "query": 2, "tasks": 160, "tasks_per_update": 8},
    "moco": {**VIEWS, "optimizer": "adam", "lr": 1e-3},
    "neg-cosine": {"warm_up": 0.0},
    "simclr": VIEWS,
    "tpn": {"tasks": 30},
    "versa": {"lr": 3e-4},
}

SPELLED = {
    "anil": "anil(rate=0.5)",
    "gnn": "gnn(dim=32, width=32)",
    "maml": "maml(rate=0.1, steps=3, test_steps=3)",
    "metaoptnet": "metaoptnet(iterations=30)",
    "moco": "moco(temperature=1.0, momentum=0.9)",
    "simclr": "simclr(temperature=0.1)",
    "tpn": "tpn(neighbors=10)",
    "versa": "versa(dropout=0.0)",
}

# Objectives that start from a network trained by `rfs`: those that the papers start from a trained network, and `gnn`,
# which otherwise stays at chance for too long.
FROM_MODEL = ("feat", "gnn", "leo", "meta-baseline", "mtl")


@dataclass(frozen=True)
class Learning:
    """Accuracy on the test tasks, in percent, and the seconds that training took."""

    objective: str
    before: float
    after: float
    seconds: float


def learn(name: str, catalog: Catalog, start: Model | None, seed: int) -> Learning:
    """Train one objective and measure it."""
    objective = objectives.make(SPELLED.get(name, name))
    settings = {**SHORT, **SETTINGS.get(objective.name, {})}
    common: dict[str, Any] = {"val_split": None, "from_model": start, "seed": seed, "backbone": BACKBONE, **settings}
    # One update with hardly any learning rate: the network that training starts with, and statistics of batch norm.
    untrained = train(catalog, objective, **{**common, "epochs": 1, "lr": 1e-12, "weight_decay": 0.0})
    started = time.perf_counter()
    model = train(catalog, objective, **common)
    seconds = time.perf_counter() - started
    return Learning(name, accuracy(untrained, catalog), accuracy(model, catalog), seconds)


def accuracy(model: Model, catalog: Catalog) -> float:
    """Compute the accuracy of the objective's scores on tasks of the test classes."""
    items = catalog.in_split("test")
    tasks = sample(items, "random", split=None, tasks=TASKS, seed=1, **SHAPE)
    with resolve(None) as runtime:
        store = ItemStore.of(items, model.preprocessing, runtime)
    numbers = dict.fromkeys(items.table.column("label").to_pylist(), 0)
    rows = task_rows(tasks, store, numbers)
    network: FewShotNetwork = model.network()
    return Validation(store.tensor(torch.device("cpu")), rows, model.preprocessing).accuracy(network, model.objective)


def measure(names: Sequence[str], seed: int = 0) -> None:
    """Print a table of each objective's accuracy before and after training."""
    print(f"| objective | before | after, in % (chance {CHANCE:.0f}) | s |\n|---|---|---|---|", flush=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        sp.runtime(cache=Path(folder) / "cache", device="cpu", progress=False),
    ):
        catalog = WORLD.write(Path(folder) / "world")
        start = None
        for name in names:
            if name in FROM_MODEL and start is None:
                start = train(catalog, "rfs", backbone=BACKBONE, val_split=None, seed=seed, **SHORT)
            result = learn(name, catalog, start if name in FROM_MODEL else None, seed)
            print(f"| `{name}` | {result.before:.1f} | {result.after:.1f} | {result.seconds:.0f} |", flush=True)


def run() -> None:
    """Measure all registered objectives."""
    measure(objectives.names())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="names of objectives; default: all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    measure(options.names or objectives.names(), options.seed)
