"""Small networks, batches and worlds that tests of models and of training share."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from shotproof.catalog.catalog import Catalog
from shotproof.models.backbone import BackboneNetwork, backbones
from shotproof.models.model import Model, blank_network
from shotproof.models.network import FewShotNetwork, Needs
from shotproof.models.objective import ClassBatch, Objective, TaskBatch, ViewBatch, objectives
from shotproof.models.preprocessing import ImagePreprocessing
from shotproof.worlds.shapes import ShapesWorld

SIDE = 16
BACKBONE = "conv64f(pools=2, pooling='mean')"  # maps of 64 x 4 x 4
CLASSES, WAY, SHOT, QUERY = 6, 3, 2, 3
SMALL: dict[str, Any] = {
    "backbone": BACKBONE,
    "way": WAY,
    "shot": SHOT,
    "query": QUERY,
    "size": SIDE,
    "epochs": 2,
    "tasks": 4,
    "tasks_per_update": 2,
    "batch": 16,
    "val_tasks": 5,
}


# One step within a task is like the next, and tests of inner loops differentiate twice: these show the same sooner.
SHORTER = {
    "renet": "renet(items_beside=6)",
    "maml": "maml(steps=1, test_steps=2, first_order=True)",
    "boil": "boil(first_order=True)",
    "leo": "leo(code_rate=0.1)",  # at 1, on so few items, steps of the codes overshoot once the decoder has learned
}


def spelled(name: str) -> str:
    """How a test spells an objective or a backbone: by its example where it needs an option."""
    if name in SHORTER:
        return SHORTER[name]
    if name == "hf":
        return f"hf:{_tiny_vit()}"
    kind = objectives.get(name) if name in objectives else backbones.get(name)
    return kind.example if any(option.required for option in kind.options()) else name


@functools.cache
def _tiny_vit() -> Path:
    """A folder with a tiny vision model of transformers for 32 pixels, as long as the tests run."""
    from tests.features.encoders.test_hf import saved

    folder = Path(tempfile.mkdtemp(prefix="shotproof-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    saved("vit", folder)
    return folder


@functools.cache
def pretrained_model(spelling: str | None = None) -> Model:
    """A pretrained backbone as a model; by default the tiny vision transformer."""
    return Model.pretrained(spelling or spelled("hf"))


def network_of(objective: Objective[Any], seed: int = 0) -> FewShotNetwork:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return blank_network(
            backbones.make(BACKBONE), objective, ImagePreprocessing(size=SIDE, stored=SIDE), CLASSES, WAY
        )


def task_batch(tasks: int = 2, seed: int = 0, beside: int = 0, size: int = SIDE) -> TaskBatch:
    """Tasks whose classes are of different brightness, with some noise."""
    draw = torch.Generator().manual_seed(seed)

    def side(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        labels = torch.arange(WAY).repeat_interleave(count).expand(tasks, -1)
        noise = torch.randn(tasks, WAY * count, 3, size, size, generator=draw)
        return labels.float()[..., None, None, None] - 1 + 0.5 * noise, labels

    support, query = side(SHOT), side(QUERY)
    classes = torch.stack([torch.randperm(CLASSES, generator=draw)[:WAY] for _ in range(tasks)])
    return TaskBatch(*support, *query, classes, class_batch(beside, seed) if beside else None)


def class_batch(items: int = 12, seed: int = 0) -> ClassBatch:
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(items) % CLASSES
    noise = torch.randn(items, 3, SIDE, SIDE, generator=draw)
    return ClassBatch(labels.float()[:, None, None, None] / 3 - 1 + 0.5 * noise, labels)


def batch_for(objective: Objective[Any], seed: int = 0) -> ClassBatch | TaskBatch | ViewBatch:
    if objective.trains_on == "tasks":
        return task_batch(seed=seed, beside=objective.items_beside)
    items = class_batch(seed=seed)
    if objective.trains_on == "classes":
        return items
    draw = torch.Generator().manual_seed(seed + 1)
    return ViewBatch(items.items, items.items + 0.1 * torch.randn(items.items.shape, generator=draw), items.labels)


def loss_of(objective: Objective[Any], net: FewShotNetwork, batch: Any, seed: int = 0) -> torch.Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return objective.loss(net, batch, torch.Generator().manual_seed(seed))


def write_world(folder: Path, classes: int = 10, items: int = 8, val: int = 4) -> Catalog:
    """A world of shapes whose last classes are the split `val`, and the others `train`."""
    catalog = ShapesWorld(classes=classes, items=items, size=SIDE).write(folder)
    labels = catalog.table.column("label").to_pylist()
    names = list(dict.fromkeys(labels))
    splits = ["val" if names.index(label) >= classes - val else "train" for label in labels]
    place = catalog.table.column_names.index("split")
    return Catalog(catalog.table.set_column(place, "split", pa.array(splits)), catalog.root, catalog.record)


class GivenMaps(BackboneNetwork):
    """A backbone that does nothing: items are maps, and their mean over locations the vector."""

    def __init__(self, map_shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.input_shape, self.map_shape, self.dim = map_shape, map_shape, map_shape[0]

    def stages(self, items: torch.Tensor) -> list[torch.Tensor]:
        return [items]


def given_network(
    objective: Objective[Any], map_shape: tuple[int, int, int] = (8, 1, 1), seed: int = 0
) -> FewShotNetwork:
    """A network in float64 and evaluation mode whose scores are of maps, or vectors, that a test gives."""
    backbone = GivenMaps(map_shape)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return _ExactNetwork(backbone, objective.prepare(backbone, CLASSES, WAY)).double().eval()


class _ExactNetwork(FewShotNetwork):
    """A network whose backbone's output stays in float64."""

    def forward(self, items: torch.Tensor, needs: Needs = "vectors") -> torch.Tensor:
        batch = items.flatten(0, -4)
        seen = batch if needs == "maps" else self.backbone.pool(batch)
        return seen.reshape(*items.shape[:-3], *seen.shape[1:])


def given_tasks(
    map_shape: tuple[int, int, int] = (8, 1, 1), tasks: int = 2, shot: int = SHOT, query: int = QUERY, seed: int = 0
) -> TaskBatch:
    """Tasks of random maps in float64."""
    draw = torch.Generator().manual_seed(seed)

    def side(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        labels = torch.arange(WAY).repeat_interleave(count).expand(tasks, -1)
        return torch.randn(tasks, WAY * count, *map_shape, generator=draw, dtype=torch.float64), labels

    classes = torch.stack([torch.randperm(CLASSES, generator=draw)[:WAY] for _ in range(tasks)])
    return TaskBatch(*side(shot), *side(query), classes)
