"""SpurAudio and MetaCoCo on mixed ESC-50: trained networks on iid, ood, hard-ood and clean tasks."""

from __future__ import annotations

import csv
import itertools
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reproduction.kept import OWN_HEAD, Evaluated, Table, read_kept
from reproduction.markdown import NOT_RUN, estimate, number, table
from reproduction.papers import PAPERS
from shotproof.core.arrays import FloatArray
from shotproof.pipeline.steps.steps import file_name
from shotproof.stats.intervals import Estimate

BACKBONES = {"conv64f": "Conv64F", "resnet12": "ResNet-12"}
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
    "ANIL": ("anil", "anil", True),
    "MAML": ("maml", "maml", True),
}
HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be judged"


@dataclass(frozen=True)
class Cell:
    """A method on a backbone at a number of shots: what each seed's network gave on each set, [seeds, tasks]."""

    backbone: str
    method: str
    shot: int
    by_set: dict[str, FloatArray]

    def mean(self, name: str) -> float:
        """Acc on a set, over seeds and tasks."""
        return float(self.by_set[name].mean())

    def deviation(self, name: str) -> str:
        """The standard deviation over seeds; nothing for a single one."""
        means = self.by_set[name].mean(1).tolist()
        return f" ±{statistics.stdev(means):.2f}" if len(means) > 1 else ""

    def gap(self, name: str = "ood") -> Estimate:
        """From iid to another set, task by task, with the mean over seeds of each task."""
        return Estimate.over_tasks((self.by_set["iid"] - self.by_set[name]).mean(0))


def sections() -> dict[str, str]:
    """Each derived section by its name."""
    kept = {backbone: read_kept(f"sounds-{backbone}") for backbone in BACKBONES}
    cells = [
        cell
        for backbone, found in kept.items()
        for method in METHODS
        for shot in SHOTS
        if (cell := find_cell(found, backbone, method, shot)) is not None
    ]
    return {
        "sounds": accuracy_table(cells),
        "sounds-statements": statement_table(cells),
        "sounds-stages": stage_table(),
    }


def find_cell(kept: Table, backbone: str, method: str, shot: int) -> Cell | None:
    """The results of all seeds that were run; None where some set has none."""
    objective, head, by_shot = METHODS[method]
    stem = f"{backbone}-{objective}{f'-{shot}' if by_shot else ''}"
    by_set: dict[str, FloatArray] = {}
    for name in SETS:
        found = [kept.find(f"{name}-5way-{shot}shot", f"{stem}-s{seed}", head) for seed in SEEDS]
        accuracies = [one.accuracy for one in found if one is not None]
        if not accuracies:
            return None
        by_set[name] = np.stack(accuracies)
    return Cell(backbone, method, shot, by_set)


def accuracy_table(cells: list[Cell]) -> str:
    """One row per backbone, number of shots and method."""
    header = [
        "backbone",
        "shots",
        "method",
        *(f"Acc, {name}" for name in SETS),
        *(f"iid − {name}" for name in SETS[1:]),
    ]
    rows = []
    for backbone, title in BACKBONES.items():
        for shot in SHOTS:
            for method in METHODS:
                found = _of(cells, backbone, method, shot)
                cell = [f"{number(found.mean(name))}{found.deviation(name)}" for name in SETS] if found else [NOT_RUN]
                gaps = [estimate(found.gap(name)) for name in SETS[1:]] if found else [""] * 6
                rows.append([title, str(shot), method, *cell, *gaps])
    return table(header, rows)


def statement_table(cells: list[Cell]) -> str:
    """What SpurAudio says, and whether it holds here."""
    with (PAPERS / "spuraudio-statements.csv").open(encoding="utf-8", newline="") as file:
        said = list(csv.DictReader(file))
    assert [row["statement"] for row in said] == list(STATEMENTS)
    judged = [STATEMENTS[row["statement"]](cells) for row in said]
    rows = [
        [row["statement"], f"{row['said']} ({row['where']})", *told] for row, told in zip(said, judged, strict=True)
    ]
    return table(["statement", "in the paper", "here", ""], rows)


def stage_table() -> str:
    """Tables 9 and 10: the gap from iid to ood after each block, by class means."""
    rows = []
    for backbone, title in BACKBONES.items():
        kept = read_kept(f"sounds-{backbone}-stages")
        models = list(dict.fromkeys(one.model for one in kept.evaluated))
        if not models:
            rows.append([title, NOT_RUN, "", ""])
        for model in models:
            told = []
            for shot in SHOTS:
                iid, ood = (_one(kept, f"{name}-5way-{shot}shot", model) for name in ("iid", "ood"))
                told.append(estimate(Estimate.over_tasks(iid.accuracy - ood.accuracy)) if iid and ood else NOT_RUN)
            rows.append([title, model, *told])
    return table(["backbone", "model and block", "iid − ood, 1 shot", "5 shots"], rows)


def _counted(cells: list[Cell], holds: Callable[[Cell], bool]) -> list[str]:
    if not cells:
        return [NOT_RUN, OPEN]
    count = sum(map(holds, cells))
    return [f"{count} of {len(cells)}", HOLDS if count == len(cells) else FAILS]


def _every_method_loses(cells: list[Cell]) -> list[str]:
    return _counted(cells, lambda cell: cell.gap().interval().low > 0)


def _sets_in_order(cells: list[Cell]) -> list[str]:
    return _counted(cells, lambda cell: cell.mean("iid") > cell.mean("ood") > cell.mean("hard-ood"))


def _clean_between(cells: list[Cell]) -> list[str]:
    return _counted(cells, lambda cell: cell.mean("iid") > cell.mean("clean") > cell.mean("ood"))


def _gap_grows_with_shots(cells: list[Cell]) -> list[str]:
    five = [cell for cell in cells if cell.shot == 5 and _of(cells, cell.backbone, cell.method, 1)]
    return _counted(five, lambda cell: cell.gap().mean > _gap(cells, cell.backbone, cell.method, 1))


def _size_of_gaps(cells: list[Cell]) -> list[str]:
    if not cells:
        return [NOT_RUN, OPEN]
    told = []
    for backbone, title in BACKBONES.items():
        gaps = [cell.gap().mean for cell in cells if cell.backbone == backbone]
        told += [f"{title}: {number(min(gaps), 1)} to {number(max(gaps), 1)}"] if gaps else []
    return ["; ".join(told), "other classes and mixtures: compare the size alone"]


def _in_order(*methods: str, shots: tuple[int, ...] = SHOTS) -> Callable[[list[Cell]], list[str]]:
    """Whether the gaps of these methods fall in the order given, on every backbone and number of shots."""

    def judge(cells: list[Cell]) -> list[str]:
        told, right = [], []
        for backbone, title in BACKBONES.items():
            for shot in shots:
                if all(_of(cells, backbone, method, shot) for method in methods):
                    gaps = [_gap(cells, backbone, method, shot) for method in methods]
                    told.append(f"{title}, {shot}: {', '.join(number(gap, 1) for gap in gaps)}")
                    right.append(all(first > second for first, second in itertools.pairwise(gaps)))
        return ["; ".join(told), HOLDS if all(right) else FAILS] if told else [NOT_RUN, OPEN]

    return judge


STATEMENTS: dict[str, Callable[[list[Cell]], list[str]]] = {
    "every method loses from iid to ood": _every_method_loses,
    "iid above ood above hard-ood": _sets_in_order,
    "clean between ood and iid": _clean_between,
    "the gap grows from 1 to 5 shots": _gap_grows_with_shots,
    "the gap of the final embedding": _size_of_gaps,
    "gap: Baseline > DiffKendall > Meta-Baseline > Baseline++": _in_order(
        "Baseline", "DiffKendall", "Meta-Baseline", "Baseline++", shots=(5,)
    ),
    "gap of DN4 below that of ProtoNet": _in_order("ProtoNet", "DN4"),
    "gap of MAML below that of ANIL": _in_order("ANIL", "MAML"),
}


def _of(cells: list[Cell], backbone: str, method: str, shot: int) -> Cell | None:
    wanted = (backbone, method, shot)
    return next((one for one in cells if (one.backbone, one.method, one.shot) == wanted), None)


def _gap(cells: list[Cell], backbone: str, method: str, shot: int) -> float:
    found = _of(cells, backbone, method, shot)
    assert found is not None
    return found.gap().mean


def _one(kept: Table, tasks: str, model: str) -> Evaluated | None:
    return kept.find(tasks, model, "cosine")
