"""Coverage of the four intervals on Gaussian worlds with known truth, and of the gap between random and FewSTAB tasks.

    python -m benchmarks.coverage --worlds 400

An interval of level 95% should contain the truth in 95 of 100 worlds. `images` is held against the expected accuracy on
new images of the world's own classes, `classes` against that on new classes, the other two against both. Worlds are
drawn and evaluated in batches, on a GPU if there is one; the intervals are made by the package's own functions.

    python -m benchmarks.coverage --only unusual --worlds 400

is on worlds that are not Gaussian (`unusual_worlds.py`), one per process, on all cores.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks import batched
from benchmarks.batched import Shape, Tasks
from benchmarks.unusual_worlds import WORLDS as UNUSUAL
from benchmarks.unusual_worlds import UnusualWorld, measure_worlds
from shotproof.learners.method import Method, make_method
from shotproof.stats.halves import HalfMoments, Halves
from shotproof.stats.intervals import Estimate, FloatArray, Interval
from shotproof.worlds.gaussian import Classes, DrawnItems, GaussianWorld

METHODS = ("ncc", "cosine")
ESTIMATED = ("Acc", "wAcc", "Acc, difference", "wAcc, difference")
Sampler = Callable[[DrawnItems, int, Shape, torch.Generator], Tasks]


@dataclass(frozen=True)
class Setting:
    """The size of a world and of its tasks."""

    classes: int
    items: int
    shape: Shape = field(default_factory=Shape)
    tasks: int = 600
    world: GaussianWorld = field(default_factory=GaussianWorld)

    @property
    def samplers(self) -> dict[str, Sampler]:
        """Return the samplers by name; FewSTAB only if the world has words."""
        samplers: dict[str, Sampler] = {"random": batched.random_tasks}
        return {**samplers, "fewstab": batched.fewstab_tasks} if self.world.families else samplers

    @property
    def contrasts(self) -> dict[str, list[float]]:
        """Return the estimates as weights of Acc and wAcc of both methods on random and, if drawn, FewSTAB tasks."""
        if not self.world.families:
            return {
                "Acc": [1, 0, 0, 0],
                "wAcc": [0, 1, 0, 0],
                "Acc, difference": [1, 0, -1, 0],
                "wAcc, difference": [0, 1, 0, -1],
            }
        return {
            "Acc, gap": [1, 0, 0, 0, -1, 0, 0, 0],
            "wAcc, gap": [0, 1, 0, 0, 0, -1, 0, 0],
            "wAcc-A": [0, 0, 0, 0, 0, 1, 0, 0],
            "wAcc-A, difference": [0, 0, 0, 0, 0, 1, 0, -1],
        }

    @property
    def name(self) -> str:
        """Return the name of the setting in a table."""
        return f"{self.classes} classes x {self.items} items, {self.shape.shot}-shot"


SETTINGS = [Setting(c, n, Shape(shot=s)) for c in (10, 20, 50) for n in (40, 100) for s in (1, 5)]
WITH_WORDS = GaussianWorld(families=2)
GAP_SETTINGS = [Setting(c, n, Shape(shot=s), world=WITH_WORDS) for c, n, s in ((20, 100, 5), (20, 100, 1), (50, 60, 1))]


@dataclass(frozen=True)
class Effort:
    """Random splits per world, tasks on each half, and tasks per world from which the truth is computed."""

    splits: int = 100
    half_tasks: int = 200
    truth_tasks: int = 20_000


@dataclass(frozen=True)
class EvaluatedWorlds:
    """Batch of worlds of one setting: estimates and the truths to compare them with; k means per world."""

    values: FloatArray  # [worlds, tasks, k], of the reported tasks
    depletion: list[FloatArray]  # per world: [tasks of Algorithm 2, k]; random tasks only
    halves: dict[str, list[Halves]]  # by units, per world
    new_images: FloatArray  # [worlds, k]
    new_classes: FloatArray  # [k]


@dataclass(frozen=True)
class Coverage:
    """How often an interval contained the truth, in percent, and its mean half-width, in points."""

    setting: str
    estimated: str
    interval: str
    new_images: float
    new_classes: float
    half_width: float
    worlds: int


def measure(setting: Setting, worlds: int, effort: Effort, generator: torch.Generator) -> EvaluatedWorlds:
    """Draw worlds, evaluate the reported tasks and those on halves, and find the truth."""
    methods = [make_method(name) for name in METHODS]
    classes = setting.world.draw_classes((worlds, setting.classes), generator)
    data = setting.world.draw_items(classes, setting.items, generator)
    values = evaluate_all(setting, data, setting.tasks, methods, generator)
    drawn, exist = batched.depletion_tasks(data, setting.shape, generator)
    depletion = batched.evaluate(data, drawn, setting.shape, methods).unflatten(0, exist.shape).cpu().numpy()
    return EvaluatedWorlds(
        values.cpu().numpy(),
        [rows[there] for rows, there in zip(depletion, exist.cpu().numpy(), strict=True)],
        {units: split_halves(setting, data, units, methods, effort, generator) for units in ("images", "classes")},
        truth_for_new_images(setting, classes, methods, effort.truth_tasks, generator).cpu().numpy(),
        truth_for_new_classes(setting, methods, 100 * effort.truth_tasks, generator).cpu().numpy(),
    )


def evaluate_all(
    setting: Setting, data: DrawnItems, tasks: int, methods: list[Method], generator: torch.Generator
) -> Tensor:
    """Compute the k means' values on tasks of each sampler: [worlds, tasks, k]."""
    by_sampler = [
        batched.evaluate(data, sampler(data, tasks, setting.shape, generator), setting.shape, methods)
        for sampler in setting.samplers.values()
    ]
    return torch.cat(by_sampler, 1).unflatten(0, (-1, tasks))


def split_halves(
    setting: Setting, data: DrawnItems, units: str, methods: list[Method], effort: Effort, generator: torch.Generator
) -> list[Halves]:
    """Compute the differences between halves of each world, as the package does."""
    worlds, classes, items = data.values.shape[:3]
    moments: dict[str, list[Tensor]] = {"difference": [], "difference noise": [], "mean": [], "mean noise": []}
    sides = []
    for _ in range(effort.splits):
        first, second, side = _one_split(setting, data, units, methods, effort.half_tasks, generator)
        for name, values in (("difference", (first - second) / 2), ("mean", (first + second) / 2)):
            around = values - values.mean(1, keepdim=True)
            moments[name].append(values.mean(1))
            moments[f"{name} noise"].append(around.mT @ around / (effort.half_tasks * (effort.half_tasks - 1)))
        sides.append(side)
    arrays = {name: torch.stack(each, 1).cpu().numpy() for name, each in moments.items()}
    each_side = torch.stack(sides, 1).cpu().numpy()
    return [
        Halves(
            HalfMoments(arrays["difference"][w], arrays["difference noise"][w].mean(0)),
            HalfMoments(arrays["mean"][w], arrays["mean noise"][w].mean(0)),
            freedom=classes - 1 if units == "classes" else classes * (items - 1),
            sides=each_side[w] if units == "classes" else None,
        )
        for w in range(worlds)
    ]


def _one_split(
    setting: Setting, data: DrawnItems, units: str, methods: list[Method], tasks: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the values on both halves [worlds, tasks, k], and the sides of the classes [worlds, classes]."""
    worlds, classes, items = data.values.shape[:3]
    world = torch.arange(worlds, device=generator.device)
    if units == "classes":
        order = torch.rand(worlds, classes, generator=generator, device=generator.device).argsort(-1)
        halves = [data.at(world[:, None], half) for half in order.split(classes // 2, dim=1)]
        side = torch.ones_like(order, dtype=torch.int8).scatter_(1, order[:, classes // 2 :], -1)
    else:
        order = torch.rand(worlds, classes, items, generator=generator, device=generator.device).argsort(-1)
        each = torch.arange(classes, device=generator.device)[:, None]
        halves = [data.at(world[:, None, None], each, half) for half in order.split(items // 2, dim=2)]
        side = torch.empty(worlds, 0, dtype=torch.int8, device=generator.device)
    # On halves of the items, random tasks meet the same classes in both, as they do in the package.
    same = batched.distinct(worlds * tasks, classes, setting.shape.way, generator) if units == "images" else None
    values = []
    for half in halves[:2]:
        drawn = {
            name: batched.random_tasks(half, tasks, setting.shape, generator, same)
            if name == "random"
            else sampler(half, tasks, setting.shape, generator)
            for name, sampler in setting.samplers.items()
        }
        each = [batched.evaluate(half, of_sampler, setting.shape, methods) for of_sampler in drawn.values()]
        values.append(torch.cat(each, 1).unflatten(0, (worlds, tasks)))
    return values[0], values[1], side


def truth_for_new_images(
    setting: Setting, classes: Classes, methods: list[Method], tasks: int, generator: torch.Generator
) -> Tensor:
    """Estimate the expected values on new images of the same classes, from so many tasks per world: [worlds, k].

    Random tasks are drawn with images of their own; FewSTAB chooses among a data set's, so whole data sets are drawn.
    """
    worlds, means = len(classes.means), []
    if setting.world.families:
        for _ in range(max(tasks // 200, 1)):
            data = setting.world.draw_items(classes, setting.items, generator)
            means.append(evaluate_all(setting, data, 200, methods, generator).mean(1))
        return torch.stack(means).mean(0)
    at_once = max(1, 100_000 // worlds)
    world = torch.arange(worlds, device=generator.device).repeat_interleave(at_once)
    for _ in range(max(tasks // at_once, 1)):
        chosen = batched.distinct(len(world), setting.classes, setting.shape.way, generator)
        fresh = setting.world.draw_items(classes.at(world[:, None], chosen), setting.shape.items, generator)
        means.append(batched.score(fresh.values, setting.shape, methods).unflatten(0, (worlds, at_once)).mean(1))
    return torch.stack(means).mean(0)


def truth_for_new_classes(setting: Setting, methods: list[Method], tasks: int, generator: torch.Generator) -> Tensor:
    """Estimate the expected values on new classes and images, from so many tasks: [k]."""
    means = []
    at_once = min(tasks, 50_000)
    for _ in range(tasks // at_once):
        if setting.world.families:
            classes = setting.world.draw_classes((at_once // 50, setting.classes), generator)
            data = setting.world.draw_items(classes, setting.items, generator)
            means.append(evaluate_all(setting, data, 50, methods, generator).mean((0, 1)))
        else:
            classes = setting.world.draw_classes((at_once, setting.shape.way), generator)
            fresh = setting.world.draw_items(classes, setting.shape.items, generator)
            means.append(batched.score(fresh.values, setting.shape, methods).mean(0))
    return torch.stack(means).mean(0)


def weighted_intervals(
    setting: Setting, measured: EvaluatedWorlds, world: int, weights: FloatArray
) -> Iterator[Interval]:
    """Yield all intervals of one weighted sum in one world."""
    by_set = [k for k in np.split(np.arange(len(weights)), len(setting.samplers)) if weights[k].any()]
    values = measured.values[world]
    estimate = Estimate.over_tasks(values[:, by_set[0]] @ weights[by_set[0]])
    for k in by_set[1:]:
        estimate = estimate.minus(Estimate.over_tasks(values[:, k] @ -weights[k]))
    yield estimate.interval("sampler")
    if not setting.world.families:
        yield Estimate.over_tasks(measured.depletion[world] @ weights).interval("depletion")
    for units, halves in measured.halves.items():
        yield estimate.plus(halves[world].spread(weights)).interval(units)


def coverage(setting: Setting, measured: EvaluatedWorlds) -> list[Coverage]:
    """Count how often each interval of each estimate contains each truth."""
    rows = []
    for estimated, contrast in setting.contrasts.items():
        weights = np.array(contrast, dtype=np.float64)
        contained: dict[str, list[tuple[bool, bool, float]]] = {}
        for world in range(len(measured.values)):
            truths = (measured.new_images[world] @ weights, measured.new_classes @ weights)
            for interval in weighted_intervals(setting, measured, world, weights):
                if interval.refused is None:
                    contains = [interval.low <= truth <= interval.high for truth in truths]
                    contained.setdefault(interval.covers, []).append((contains[0], contains[1], interval.half_width))
        for interval_name, each in contained.items():
            images, classes, half_width = np.array(each, dtype=np.float64).mean(0).tolist()
            rows.append(
                Coverage(setting.name, estimated, interval_name, 100 * images, 100 * classes, half_width, len(each))
            )
    return rows


def study(
    settings: list[Setting], worlds: int, effort: Effort, at_once: int = 1000, seed: int = 0
) -> Iterator[Coverage]:
    """Yield the coverage in every setting; `at_once` worlds are in memory."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for number, setting in enumerate(settings):
        generator = torch.Generator(device).manual_seed(seed + number)
        sizes = [min(at_once, worlds - start) for start in range(0, worlds, at_once)]
        yield from coverage(setting, _join_worlds([measure(setting, size, effort, generator) for size in sizes]))


def _join_worlds(parts: list[EvaluatedWorlds]) -> EvaluatedWorlds:
    return EvaluatedWorlds(
        np.concatenate([part.values for part in parts]),
        [rows for part in parts for rows in part.depletion],
        {units: [halves for part in parts for halves in part.halves[units]] for units in parts[0].halves},
        np.concatenate([part.new_images for part in parts]),
        np.mean([part.new_classes for part in parts], axis=0),
    )


def unusual_study(
    kinds: list[UnusualWorld], worlds: int, halvings: int | None = None, seed: int = 0
) -> Iterator[Coverage]:
    """Yield the coverage of new images on every kind of unusual world."""
    for kind in kinds:
        contained: dict[tuple[str, str], list[tuple[bool, float]]] = {}
        for measured in measure_worlds(kind, worlds, halvings=halvings, seed=seed):
            for key, (truth, interval) in measured.items():
                if interval.refused is None:
                    contains = interval.low <= truth <= interval.high
                    contained.setdefault(key, []).append((contains, interval.half_width))
        for (estimated, interval_name), each in contained.items():
            images, half_width = np.array(each, dtype=np.float64).mean(0).tolist()
            yield Coverage(kind.name, estimated, interval_name, 100 * images, float("nan"), half_width, len(each))


def show(rows: Iterator[Coverage]) -> list[Coverage]:
    """Print rows as they come, as a table in Markdown."""
    print("| setting | estimate | interval | covers new images | covers new classes | half-width |")
    print("|---|---|---|---|---|---|")
    printed = []
    for row in rows:
        numbers = f"{row.new_images:.1f}% | {row.new_classes:.1f}% | {row.half_width:.2f}"
        print(f"| {row.setting} | {row.estimated} | {row.interval} | {numbers} |", flush=True)
        printed.append(row)
    return printed


def show_unusual(rows: Iterator[Coverage]) -> list[Coverage]:
    """Print one row per kind of world as they come, as a table in Markdown: coverage of new images, in percent."""
    print(f"| worlds | {' | '.join(f'`images`: {name}' for name in ESTIMATED)} | half-width of Acc | `sampler`: Acc |")
    print("|---" * (len(ESTIMATED) + 3) + "|")
    printed: list[Coverage] = []
    for kind, of_kind in groupby(rows, key=lambda row: row.setting):
        by_key = {(row.estimated, row.interval): row for row in of_kind}
        cells = [f"{by_key[name, 'images'].new_images:.1f}" for name in ESTIMATED]
        cells += [f"{by_key['Acc', 'images'].half_width:.1f}", f"{by_key['Acc', 'sampler'].new_images:.1f}"]
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)
        printed += by_key.values()
    return printed


def run() -> None:
    """Run a short version: one setting, few worlds."""
    show(study([Setting(20, 100)], 40, Effort(splits=30, half_tasks=50, truth_tasks=5000)))


def main() -> None:
    """Run all settings, with as many worlds as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=400, help="worlds per setting")
    parser.add_argument("--splits", type=int, default=100, help="random splits per world")
    parser.add_argument("--half-tasks", type=int, default=200, help="tasks on each half")
    parser.add_argument("--at-once", type=int, default=1000, help="worlds in memory")
    parser.add_argument(
        "--only", choices=["plain", "gap", "unusual"], help="worlds without words, with words, or not Gaussian"
    )
    parser.add_argument("--kind", action="append", help="of the unusual worlds, those of this name; may be repeated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the rows to a file too")
    options = parser.parse_args()
    if options.only == "unusual":
        kinds = [world for world in UNUSUAL if options.kind is None or world.name in options.kind]
        rows = show_unusual(unusual_study(kinds, options.worlds, options.splits, options.seed))
    else:
        settings = {"plain": SETTINGS, "gap": GAP_SETTINGS, None: SETTINGS + GAP_SETTINGS}[options.only]
        effort = Effort(options.splits, options.half_tasks)
        rows = show(study(settings, options.worlds, effort, options.at_once, options.seed))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
