"""Training: ProtoNet per task against a plain data-loader loop, class training per epoch, inner loops batched or not.

python -m benchmarks.training [--quick] [--compile] [tasks] [classes] [inner]

On a GPU, the sizes of the papers; without one, or with --quick, small ones that only show that it runs. Every ratio
compares two measurements of the same run. The data are random: images of the size of CUB's photographs, saved as JPEG.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from PIL import Image, ImageEnhance
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, Sampler

import shotproof as sp
from shotproof.catalog.catalog import Catalog
from shotproof.models.backbone import backbones
from shotproof.models.inner_loop import stateless_batch_norm
from shotproof.models.model import blank_network
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskBatch, objectives
from shotproof.models.preprocessing import MEAN, STD, ImagePreprocessing

WAY, SHOT, QUERY = 5, 5, 15
PARTS = ("tasks", "classes", "inner")
INNER = {"maml": (0.01, 5), "anil": (0.01, 5), "boil": (0.5, 1)}  # learning rate and steps within a task


@dataclass(frozen=True)
class Sizes:
    """Sizes of the measurement."""

    side: int = 84
    backbone: str = "resnet12"
    photograph: tuple[int, int] = (500, 375)
    classes: int = 100  # of training, as in CUB
    items: int = 59
    few_tasks: int = 200
    many_tasks: int = 1400
    tasks_per_update: int = 4
    plain_tasks: int = 150
    epochs: int = 100
    inner_side: int = 84
    inner_repeats: int = 20


QUICK = Sizes(
    side=32,
    backbone="conv64f(pools=2, pooling='mean')",
    photograph=(60, 45),
    classes=6,
    items=24,
    few_tasks=4,
    many_tasks=12,
    plain_tasks=4,
    epochs=2,
    inner_side=32,
    inner_repeats=2,
)


def run() -> None:
    """Measure everything, at sizes that suit the machine."""
    measure(Sizes() if torch.cuda.is_available() else QUICK, PARTS, compiled=False)


def measure(sizes: Sizes, parts: tuple[str, ...], compiled: bool) -> None:
    """Measure some parts."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    processor = torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {processor}, {sizes.backbone} at {sizes.side} pixels", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with sp.runtime(cache=folder / "cache", device=device.type, progress=False):
            if "tasks" in parts or "classes" in parts:
                catalog = draw_photographs(folder / "photographs", sizes)
            if "tasks" in parts:
                measure_tasks(catalog, sizes, device, compiled)
            if "classes" in parts:
                measure_classes(catalog, sizes, compiled)
            if "inner" in parts:
                measure_inner(sizes, device, compiled)


def draw_photographs(folder: Path, sizes: Sizes) -> Catalog:
    """Write JPEG files of smooth noise, by class."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    names, labels = [], []
    for label in range(sizes.classes):
        for number in range(sizes.items):
            noise = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
            name = f"{label:03d}-{number:03d}.jpg"
            noise.resize(sizes.photograph, Image.Resampling.BICUBIC).save(folder / name, quality=90)
            names.append(name)
            labels.append(f"class{label:03d}")
    table = {"item": names, "path": names, "label": labels, "split": ["train"] * len(names)}
    return Catalog(pa.table({key: pa.array(values, pa.string()) for key, values in table.items()}), folder)


def measure_tasks(catalog: Catalog, sizes: Sizes, device: torch.device, compiled: bool) -> None:
    """Time ProtoNet on tasks: ours as the difference of a long and a short training, and the plain loop."""

    def train(tasks: int) -> None:
        sp.train(
            catalog,
            "protonet",
            backbone=sizes.backbone,
            val_split=None,
            way=WAY,
            shot=SHOT,
            query=QUERY,
            size=sizes.side,
            epochs=1,
            tasks=tasks,
            tasks_per_update=sizes.tasks_per_update,
            augment="resized-crop",
            compile=compiled,
        )

    once = seconds(lambda: train(sizes.few_tasks), device)  # decodes the photographs
    short, long = (seconds(lambda count=count: train(count), device) for count in (sizes.few_tasks, sizes.many_tasks))
    ours = 1000 * (long - short) / (sizes.many_tasks - sizes.few_tasks)
    print(f"items are decoded once, in about {max(once - short, 0):.1f} s", flush=True)
    plain = 1000 * plain_loop(catalog, sizes, device)
    shape = f"{WAY}-way {SHOT}-shot {QUERY}-query, {sizes.tasks_per_update} tasks per update"
    print(f"ProtoNet, {shape}: {ours:.2f} ms per task; plain loop {plain:.1f} ms; ratio {plain / ours:.1f}", flush=True)


def measure_classes(catalog: Catalog, sizes: Sizes, compiled: bool) -> None:
    """Time a classification of all classes, with the settings of RFS, from the decoded items to the model."""
    settings: dict[str, Any] = {"optimizer": "sgd", "lr": 0.05, "batch": 64, "schedule": "step", "milestones": (60, 80)}
    settings |= {"backbone": sizes.backbone, "size": sizes.side, "augment": "resized-crop", "compile": compiled}
    with tempfile.TemporaryDirectory() as name:
        output = Path(name) / "classes.model"
        sp.train(catalog, "baseline", val_split=None, epochs=1, **settings)  # decodes, and warms up
        started = time.perf_counter()
        sp.train(catalog, "baseline", val_split=None, epochs=sizes.epochs, output=output, **settings)
        duration = time.perf_counter() - started
    print(
        f"classes, {len(catalog):,} items in batches of 64: {duration / sizes.epochs:.2f} s per epoch, "
        f"{sizes.epochs} epochs in {duration:.0f} s, with a checkpoint after each",
        flush=True,
    )


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """Measure wall-clock seconds until all work is done."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


class Photographs(Dataset[tuple[Tensor, int]]):
    """Dataset as in LibFewShot: a worker opens, decodes, crops, flips, recolors and normalizes each item."""

    def __init__(self, catalog: Catalog, side: int) -> None:
        self.paths = list(catalog.paths)
        names = sorted(set(catalog.table.column("label").to_pylist()))
        self.labels = [names.index(label) for label in catalog.table.column("label").to_pylist()]
        self.side = side

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        image = Image.open(self.paths[row]).convert("RGB")
        rng = np.random.default_rng()
        share = float(rng.uniform(0.35, 1.0)) ** 0.5
        wide, high = (round(length * share) for length in image.size)
        left, top = (int(rng.integers(0, have - want + 1)) for have, want in zip(image.size, (wide, high), strict=True))
        part = image.resize((self.side, self.side), Image.Resampling.BILINEAR, box=(left, top, left + wide, top + high))
        if rng.random() < 0.5:
            part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        for change in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
            part = change(part).enhance(float(rng.uniform(0.6, 1.4)))
        values = torch.from_numpy(np.array(part)).permute(2, 0, 1).float() / 255
        return (values - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1), self.labels[row]


class Episodes(Sampler[list[int]]):
    """Sampler of the rows of one task at a time: support then query of each class."""

    def __init__(self, labels: list[int], tasks: int) -> None:
        self.rows = [np.flatnonzero(np.array(labels) == label) for label in range(max(labels) + 1)]
        self.tasks = tasks

    def __len__(self) -> int:
        return self.tasks

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng(0)
        for _ in range(self.tasks):
            chosen = rng.choice(len(self.rows), WAY, replace=False)
            drawn = [rng.choice(self.rows[class_], SHOT + QUERY, replace=False) for class_ in chosen]
            yield np.concatenate(drawn).tolist()


def plain_loop(catalog: Catalog, sizes: Sizes, device: torch.device) -> float:
    """Time a loop like LibFewShot's, in seconds per task: workers decode, one task per update, float32, loss read."""
    data = Photographs(catalog, sizes.side)
    warm_up = max(2, sizes.plain_tasks // 5)
    workers = min(8, os.cpu_count() or 1) if device.type == "cuda" else 0
    loader = DataLoader(
        data,
        batch_sampler=Episodes(data.labels, sizes.plain_tasks + warm_up),
        num_workers=workers,
        pin_memory=device.type == "cuda",
    )
    network = backbones.make(sizes.backbone).build((3, sizes.side, sizes.side)).to(device).train()
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    labels = torch.arange(WAY, device=device).repeat_interleave(QUERY)
    losses, started = [], time.perf_counter()
    for number, (items, _) in enumerate(loader):
        if number == warm_up:
            started = time.perf_counter()
        vectors = network(items.to(device)).unflatten(0, (WAY, SHOT + QUERY))
        means, query = vectors[:, :SHOT].mean(1), vectors[:, SHOT:].flatten(0, 1)
        scores = -torch.cdist(query, means).square()
        loss = functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy = (scores.argmax(1) == labels).float().mean()
        losses.append((loss.item(), accuracy.item()))
    return (time.perf_counter() - started) / sizes.plain_tasks


def measure_inner(sizes: Sizes, device: torch.device, compiled: bool) -> None:
    """Time inner loops of four tasks, forward and backward: batched, task by task, and task by task with `higher`."""
    side, tasks = sizes.inner_side, 4
    batch = draw_tasks(tasks, side, device)
    for name, (rate, steps) in INNER.items():
        objective = objectives.make(f"{name}(rate={rate}, steps={steps})")
        torch.manual_seed(0)
        preprocessing = ImagePreprocessing(size=side, stored=side)
        net = blank_network(backbones.make("conv64f"), objective, preprocessing, 64, WAY).to(device).train()
        if compiled:
            net.compile_training()
        ways = {"batched": functools.partial(objective.loss, net, batch, torch.Generator(device))}
        ways["task by task"] = functools.partial(task_by_task, net, batch, name, rate, steps)
        if importlib.util.find_spec("higher"):
            ways["task by task with higher"] = functools.partial(
                task_by_task_with_higher, net, batch, name, rate, steps
            )
        texts, ours = [], 0.0
        for way, loss in ways.items():
            value, duration = timed(loss, net, sizes.inner_repeats, device)
            ours = ours or duration
            ratio = "" if way == "batched" else f", ratio {duration / ours:.1f}"
            texts.append(f"{way} {1000 * duration / tasks:.2f} ms per task (loss {value:.5f}{ratio})")
        prefix = "compiled, " if compiled else ""
        print(f"{name}, {prefix}conv64f at {side} pixels, {steps} steps, 4 tasks: {'; '.join(texts)}", flush=True)


def timed(loss: Callable[[], Tensor], net: nn.Module, repeats: int, device: torch.device) -> tuple[float, float]:
    """Return the loss, and the seconds of one forward and backward pass after a warm-up."""

    def once() -> Tensor:
        net.zero_grad(set_to_none=True)
        value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        return value.detach()

    value = float(once())
    once()

    def several() -> None:
        for _ in range(repeats):
            once()

    return value, seconds(several, device) / repeats


def draw_tasks(tasks: int, side: int, device: torch.device) -> TaskBatch:
    """Draw random items."""
    torch.manual_seed(0)

    def half(count: int) -> tuple[Tensor, Tensor]:
        labels = torch.arange(WAY, device=device).repeat_interleave(count).expand(tasks, -1)
        return torch.randn(tasks, WAY * count, 3, side, side, device=device), labels

    return TaskBatch(*half(SHOT), *half(QUERY), torch.arange(WAY, device=device).expand(tasks, -1))


class Logits(nn.Module):
    """Network with the blocks of `conv64f` and the head as one module, plain enough for `higher` to copy."""

    def __init__(self, net: FewShotNetwork) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*net.backbone.get_submodule("blocks").children())
        self.head = net.head

    def forward(self, items: Tensor) -> Tensor:
        """Compute logits of items, as the network does."""
        if items.is_cuda:
            items = items.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16, enabled=items.is_cuda):
            vectors = self.blocks(items).flatten(1)
        logits: Tensor = self.head(vectors.float())
        return logits


def adapts(objective: str, parameter: str) -> bool:
    """Return whether a parameter of `Logits` takes steps within a task."""
    of_head = parameter.startswith("head.")
    return {"maml": True, "anil": of_head, "boil": not of_head}[objective]


def task_by_task(net: FewShotNetwork, batch: TaskBatch, objective: str, rate: float, steps: int) -> Tensor:
    """Compute the mean query loss, each task with its own copy of the weights, second order, by plain autograd."""
    module, losses = Logits(net), []
    with stateless_batch_norm(module):
        for support, labels, query, truth in zip(*sides(batch), strict=True):
            fast = {name: each.clone() for name, each in module.named_parameters()}
            steady = [name for name in fast if adapts(objective, name)]
            for _ in range(steps):
                loss = functional.cross_entropy(functional_call(module, fast, support), labels)
                slopes = torch.autograd.grad(loss, [fast[name] for name in steady], create_graph=True)
                fast |= {name: fast[name] - rate * slope for name, slope in zip(steady, slopes, strict=True)}
            losses.append(functional.cross_entropy(functional_call(module, fast, query), truth))
    return torch.stack(losses).mean()


def task_by_task_with_higher(net: FewShotNetwork, batch: TaskBatch, objective: str, rate: float, steps: int) -> Tensor:
    """Compute the same with the package `higher`."""
    import higher  # type: ignore[import-not-found]

    module, losses = Logits(net), []
    groups = [
        {"params": [each], "lr": rate if adapts(objective, name) else 0.0} for name, each in module.named_parameters()
    ]
    with stateless_batch_norm(module):
        for support, labels, query, truth in zip(*sides(batch), strict=True):
            optimizer = torch.optim.SGD(groups, lr=rate)
            with higher.innerloop_ctx(module, optimizer, copy_initial_weights=False) as (fast, steps_of):
                for _ in range(steps):
                    steps_of.step(functional.cross_entropy(fast(support), labels))
                losses.append(functional.cross_entropy(fast(query), truth))
    return torch.stack(losses).mean()


def sides(batch: TaskBatch) -> tuple[Tensor, ...]:
    """Return support, its labels, query, its labels."""
    return batch.support, batch.support_labels, batch.query, batch.query_labels


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"any of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--compile", action="store_true", help="compile the networks")
    parser.add_argument("--tasks-per-update", type=int, default=4)
    options = parser.parse_args()
    chosen = QUICK if options.quick or not torch.cuda.is_available() else Sizes()
    measure(replace(chosen, tasks_per_update=options.tasks_per_update), tuple(options.parts), options.compile)
