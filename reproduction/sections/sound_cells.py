"""Trained networks on sounds: what was kept of their results, by backbone, method and shots."""

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
    """A method on a backbone at a number of shots: what each seed's network gave on each set, [seeds, tasks].

    by_set: has iid and ood at least
    """

    backbone: str
    method: str
    shot: int
    by_set: dict[str, FloatArray]

    @property
    def trainings(self) -> int:
        """How many seeds there are."""
        return len(self.by_set["iid"])

    def mean(self, name: str) -> float:
        """Acc on a set, over seeds and tasks."""
        return float(self.by_set[name].mean())

    def deviation(self, name: str) -> str:
        """The standard deviation over seeds; nothing for a single one."""
        means = self.by_set[name].mean(1).tolist()
        return f" ±{statistics.stdev(means):.2f}" if len(means) > 1 else ""

    def gaps(self, name: str = "ood", start: str = "iid") -> FloatArray:
        """From one set to another, with the mean over seeds of each task: [tasks]."""
        found: FloatArray = (self.by_set[start] - self.by_set[name]).mean(0)
        return found

    def gap(self, name: str = "ood", start: str = "iid") -> Estimate:
        """The same as a mean over tasks."""
        return Estimate.over_tasks(self.gaps(name, start))


@dataclass(frozen=True)
class Curve:
    """The gap from iid to ood of one network against the dial or the shots, by task: [tasks] each.

    paired: whether the tasks of all values belong together
    """

    name: str
    gaps: dict[float, FloatArray]
    paired: bool

    def step(self, first: float, second: float) -> Estimate:
        """By how much the gap grows from one value to another."""
        before, after = self.gaps[first], self.gaps[second]
        if self.paired:
            return Estimate.over_tasks(after - before)
        return Estimate.over_tasks(after).minus(Estimate.over_tasks(before))


@dataclass(frozen=True)
class Found:
    """All that statements are judged by; what was not run yet is empty.

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


def read_found() -> Found:
    """All that was kept."""
    geometry = {model: told for one in BACKBONES for model, told in read_geometry(f"sounds-{one}-s0").items()}
    return Found(
        find_cells(METHODS),
        find_cells(CONTRASTIVE),
        dial_curves(),
        shot_curves(),
        geometry,
        {f"{title}, {model}, {shot}": gap for title, model, gaps in stage_gaps() for shot, gap in gaps.items()},
    )


def read_sounds(backbone: str) -> Table:
    """What was kept of all experiments on one backbone's networks but those on stages, dials and shots."""
    names = [*(f"s{seed}" for seed in SEEDS), "more"]
    return Table(tuple(one for name in names for one in read_kept(f"sounds-{backbone}-{name}").evaluated))


def find_cells(
    methods: dict[str, tuple[str, str, bool]], shots: Iterable[int] = SHOTS, seeds: Sequence[int] = SEEDS
) -> list[Cell]:
    """Those of all backbones that were run."""
    kept = {backbone: read_sounds(backbone) for backbone in BACKBONES}
    return [
        cell
        for (backbone, found), shot, method in itertools.product(kept.items(), shots, methods)
        if (cell := find_cell(found, backbone, method, shot, methods, seeds)) is not None
    ]


def find_cell(
    kept: Table,
    backbone: str,
    method: str,
    shot: int,
    methods: dict[str, tuple[str, str, bool]] | None = None,
    seeds: Sequence[int] = SEEDS,
) -> Cell | None:
    """The results of all seeds that were run on iid and ood; of the other sets, those that all of these were run on."""
    objective, head, by_shot = (methods or METHODS)[method]
    stem = f"{backbone}-{objective}{f'-{shot}' if by_shot else ''}"
    found = [{name: kept.find(f"{name}-5way-{shot}shot", f"{stem}-s{seed}", head) for name in SETS} for seed in seeds]
    run = [{name: one.accuracy for name, one in of.items() if one} for of in found if of["iid"] and of["ood"]]
    if not run:
        return None
    by_set = {name: np.stack([of[name] for of in run]) for name in SETS if all(name in of for of in run)}
    return Cell(backbone, method, shot, by_set)


def cell_of(cells: Sequence[Cell], backbone: str, method: str, shot: int) -> Cell | None:
    """The cell of a method on a backbone at a number of shots; None where it was not run."""
    wanted = (backbone, method, shot)
    return next((cell for cell in cells if (cell.backbone, cell.method, cell.shot) == wanted), None)


def dial_curves() -> list[Curve]:
    """The gap against the dial, at each number of shots: the same tasks at every dial."""
    kept = {dial: read_kept(f"sounds-{SECOND}-{name}") for dial, name in DIALS.items()}
    found = []
    for name, shot in itertools.product(CURVES, SHOTS):
        gaps = {dial: gap for dial, of_dial in kept.items() if (gap := _task_gaps(of_dial, name, shot)) is not None}
        found += [Curve(f"{name}, {shot} {'shot' if shot == 1 else 'shots'}", gaps, paired=True)] if gaps else []
    return found


def shot_curves() -> list[Curve]:
    """The gap against the shots."""
    kept, found = read_kept(f"sounds-{SECOND}-shots"), []
    for name in CURVES:
        gaps = {float(shot): gap for shot in ALL_SHOTS if (gap := _task_gaps(kept, name, shot)) is not None}
        found += [Curve(name, gaps, paired=False)] if gaps else []
    return found


def stage_gaps() -> list[tuple[str, str, dict[int, Estimate]]]:
    """Backbone, model with its block, and the gap from iid to ood by class means at each number of shots."""
    found = []
    for backbone, title in BACKBONES.items():
        kept = read_kept(f"sounds-{backbone}-stages")
        for model in dict.fromkeys(one.model for one in kept.evaluated):
            gaps = {}
            for shot in SHOTS:
                iid, ood = (kept.find(f"{name}-5way-{shot}shot", model, "cosine") for name in ("iid", "ood"))
                if iid and ood:
                    gaps[shot] = Estimate.over_tasks(iid.accuracy - ood.accuracy)
            found.append((title, model, gaps))
    return found


def _task_gaps(kept: Table, name: str, shot: int) -> FloatArray | None:
    sides: list[Evaluated | None] = [kept.find(f"{tasks}-5way-{shot}shot", *CURVES[name]) for tasks in ("iid", "ood")]
    iid, ood = sides
    return None if iid is None or ood is None else iid.accuracy - ood.accuracy
