"""Results of trained networks on sounds, by backbone, method and number of shots."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reproduction.geometry import read_geometry
from reproduction.kept import OWN_HEAD, Evaluated, Table, read_kept
from reproduction.train import SECOND
from shotproof.core.arrays import FloatArray
from shotproof.pipeline.steps.steps import file_name
from shotproof.stats.intervals import Estimate

BACKBONES = {"conv64f": "Conv64F", "resnet12": "ResNet-12", SECOND: "Conv64F, 1 s"}
SETS = ("iid", "ood", "hard-ood", "clean")
SHOTS, SEEDS = (1, 5), (0, 1, 2)
# What the papers call a method; the objective; the head; whether there is a model for each number of shots.
METHODS = {
    "Baseline": ("baseline", "linear", False),
    "Baseline++": ("baseline++", file_name("baseline++"), False),
    "DiffKendall": ("baseline", "diffkendall", False),
    "Meta-Baseline": ("meta-baseline", OWN_HEAD, True),
    "ProtoNet": ("protonet", OWN_HEAD, True),
    "DN4": ("dn4", OWN_HEAD, True),
    "R2D2": ("r2d2", OWN_HEAD, True),
    "ANIL": ("anil", OWN_HEAD, True),
    "MAML": ("maml", "maml", True),
}
CONTRASTIVE = {
    "SimCLR": ("simclr", OWN_HEAD, False),
    "MoCo": ("moco", OWN_HEAD, False),
    "contrastive prototypes": ("contrastive-proto", OWN_HEAD, False),
}
TRAINED_ON = {
    "iid tasks": ("protonet", OWN_HEAD, True),
    "random tasks": ("protonet-random", OWN_HEAD, True),
    "ood tasks": ("protonet-ood", OWN_HEAD, True),
    "hard-ood tasks": ("protonet-hard-ood", OWN_HEAD, True),
}
# Two networks on one second whose gap is measured at each dial and number of shots.
CURVES = {
    "Baseline, class means": (f"{SECOND}-baseline-s0", "cosine"),
    "ProtoNet": (f"{SECOND}-protonet-5-s0", OWN_HEAD),
}
DIALS = {0.0: "dial-0", 0.5: "dial-half", 1.0: "shots", 2.0: "dial-2"}
ALL_SHOTS = (1, 3, 5, 8, 10)


@dataclass(frozen=True)
class Cell:
    """Method on a backbone at a number of shots: the accuracies of each seed's network on each set, [seeds, tasks].

    by_set: has iid and ood at least
    """

    backbone: str
    method: str
    shot: int
    by_set: dict[str, FloatArray]

    @property
    def trainings(self) -> int:
        """Count the seeds."""
        return len(self.by_set["iid"])

    def mean(self, name: str) -> float:
        """Compute Acc on a set, over seeds and tasks."""
        return float(self.by_set[name].mean())

    def deviation(self, name: str) -> str:
        """Write the standard deviation over seeds; empty for a single seed."""
        means = self.by_set[name].mean(1).tolist()
        return f" ±{statistics.stdev(means):.2f}" if len(means) > 1 else ""

    def gaps(self, name: str = "ood", start: str = "iid") -> FloatArray:
        """Compute the gap from one set to another on each task, with the mean over seeds: [tasks]."""
        gaps_: FloatArray = (self.by_set[start] - self.by_set[name]).mean(0)
        return gaps_

    def gap(self, name: str = "ood", start: str = "iid") -> Estimate:
        """Estimate the mean gap over tasks."""
        return Estimate.over_tasks(self.gaps(name, start))


@dataclass(frozen=True)
class Curve:
    """Gap from iid to ood of one network against the dial or the shots, by task: [tasks] each.

    paired: whether the tasks of all values belong together
    """

    name: str
    gaps: dict[float, FloatArray]
    paired: bool

    def step(self, first: float, second: float) -> Estimate:
        """Estimate how much the gap grows from one value to another."""
        before, after = self.gaps[first], self.gaps[second]
        if self.paired:
            return Estimate.over_tasks(after - before)
        return Estimate.over_tasks(after).minus(Estimate.over_tasks(before))


@dataclass(frozen=True)
class SoundResults:
    """Results that statements are judged by; empty if they have not been run yet.

    dials: by the number of shots
    geometry: what mixing does to the features, by model
    stages: the gap after each block, by its name
    """

    cells: Sequence[Cell] = ()
    contrastive: Sequence[Cell] = ()
    dials: Sequence[Curve] = ()
    shots: Sequence[Curve] = ()
    geometry: dict[str, dict[str, Any]] = field(default_factory=dict)
    stages: dict[str, Estimate] = field(default_factory=dict)


def read_sound_results() -> SoundResults:
    """Read all kept results on sounds."""
    geometry = {
        model: change for backbone in BACKBONES for model, change in read_geometry(f"sounds-{backbone}-s0").items()
    }
    return SoundResults(
        find_cells(METHODS),
        find_cells(CONTRASTIVE),
        dial_curves(),
        shot_curves(),
        geometry,
        {f"{title}, {model}, {shot}": gap for title, model, gaps in stage_gaps() for shot, gap in gaps.items()},
    )


def read_sounds(backbone: str) -> Table:
    """Read the kept results of one backbone's networks, except those on stages, dials and shots."""
    names = [*(f"s{seed}" for seed in SEEDS), "more"]
    return Table(tuple(result for name in names for result in read_kept(f"sounds-{backbone}-{name}").evaluated))


def find_cells(
    methods: dict[str, tuple[str, str, bool]], shots: Iterable[int] = SHOTS, seeds: Sequence[int] = SEEDS
) -> list[Cell]:
    """Build the cells of all backbones that have been run."""
    tables = {backbone: read_sounds(backbone) for backbone in BACKBONES}
    return [
        cell
        for (backbone, table), shot, method in itertools.product(tables.items(), shots, methods)
        if (cell := find_cell(table, backbone, method, shot, methods, seeds)) is not None
    ]


def find_cell(
    table: Table,
    backbone: str,
    method: str,
    shot: int,
    methods: dict[str, tuple[str, str, bool]] | None = None,
    seeds: Sequence[int] = SEEDS,
) -> Cell | None:
    """Build a cell from the seeds that were run on iid and ood, with the other sets that all of these were run on."""
    objective, head, by_shot = (methods or METHODS)[method]
    stem = f"{backbone}-{objective}{f'-{shot}' if by_shot else ''}"
    by_seed = [
        {name: table.find(f"{name}-5way-{shot}shot", f"{stem}-s{seed}", head) for name in SETS} for seed in seeds
    ]
    complete = [
        {name: result.accuracy for name, result in sets.items() if result}
        for sets in by_seed
        if sets["iid"] and sets["ood"]
    ]
    if not complete:
        return None
    by_set = {
        name: np.stack([sets[name] for sets in complete]) for name in SETS if all(name in sets for sets in complete)
    }
    return Cell(backbone, method, shot, by_set)


def cell_of(cells: Sequence[Cell], backbone: str, method: str, shot: int) -> Cell | None:
    """Return the cell of a method on a backbone at a number of shots; None if it has not been run."""
    key = (backbone, method, shot)
    return next((cell for cell in cells if (cell.backbone, cell.method, cell.shot) == key), None)


def dial_curves() -> list[Curve]:
    """Collect the gap against the dial at each number of shots: the same tasks at every dial."""
    tables = {dial: read_kept(f"sounds-{SECOND}-{name}") for dial, name in DIALS.items()}
    curves = []
    for name, shot in itertools.product(CURVES, SHOTS):
        gaps = {dial: gap for dial, table in tables.items() if (gap := _task_gaps(table, name, shot)) is not None}
        curves += [Curve(f"{name}, {shot} {'shot' if shot == 1 else 'shots'}", gaps, paired=True)] if gaps else []
    return curves


def shot_curves() -> list[Curve]:
    """Collect the gap against the shots."""
    table, curves = read_kept(f"sounds-{SECOND}-shots"), []
    for name in CURVES:
        gaps = {float(shot): gap for shot in ALL_SHOTS if (gap := _task_gaps(table, name, shot)) is not None}
        curves += [Curve(name, gaps, paired=False)] if gaps else []
    return curves


def stage_gaps() -> list[tuple[str, str, dict[int, Estimate]]]:
    """List backbone, model with its block, and the gap from iid to ood by class means at each number of shots."""
    rows = []
    for backbone, title in BACKBONES.items():
        table = read_kept(f"sounds-{backbone}-stages")
        for model in dict.fromkeys(result.model for result in table.evaluated):
            gaps = {}
            for shot in SHOTS:
                iid, ood = (table.find(f"{name}-5way-{shot}shot", model, "cosine") for name in ("iid", "ood"))
                if iid and ood:
                    gaps[shot] = Estimate.over_tasks(iid.accuracy - ood.accuracy)
            rows.append((title, model, gaps))
    return rows


def _task_gaps(table: Table, name: str, shot: int) -> FloatArray | None:
    sides: list[Evaluated | None] = [table.find(f"{tasks}-5way-{shot}shot", *CURVES[name]) for tasks in ("iid", "ood")]
    iid, ood = sides
    return None if iid is None or ood is None else iid.accuracy - ood.accuracy
