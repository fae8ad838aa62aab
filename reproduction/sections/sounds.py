"""SpurAudio and MetaCoCo on mixed ESC-50: trained networks on iid, ood, hard-ood and clean tasks."""

from __future__ import annotations

import csv
import itertools
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reproduction.geometry import read_geometry
from reproduction.kept import OWN_HEAD, Evaluated, Table, read_kept
from reproduction.markdown import MINUS, NOT_RUN, estimate, number, table
from reproduction.papers import PAPERS
from shotproof.core.arrays import FloatArray
from shotproof.pipeline.steps.steps import file_name
from shotproof.stats.intervals import Estimate
from shotproof.stats.pairs import conclude

SECOND = "conv64f-1s"
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
    "ANIL": ("anil", "anil", True),
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


def read_sounds(backbone: str) -> Table:
    """What was kept of all experiments on one backbone's networks but those on stages, dials and shots."""
    names = [*(f"s{seed}" for seed in SEEDS), "more"]
    return Table(tuple(one for name in names for one in read_kept(f"sounds-{backbone}-{name}").evaluated))


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


def sections() -> dict[str, str]:
    """Each derived section by its name."""
    found = read_found()
    return {
        "sounds": accuracy_table(found.cells, METHODS),
        "sounds-statements": statement_table(found),
        "sounds-dial": curve_table(found.dials, "dial"),
        "sounds-shots": curve_table(found.shots, "shots"),
        "sounds-stages": stage_table(),
        "sounds-geometry": geometry_table(found.geometry),
        "sounds-contrastive": accuracy_table(found.contrastive, CONTRASTIVE),
        "sounds-stress": stress_table(find_cells(TRAINED_ON, shots=(5,))),
    }


def find_cells(methods: dict[str, tuple[str, str, bool]], shots: Iterable[int] = SHOTS) -> list[Cell]:
    """Those of all backbones that were run."""
    kept = {backbone: read_sounds(backbone) for backbone in BACKBONES}
    return [
        cell
        for (backbone, found), shot, method in itertools.product(kept.items(), shots, methods)
        if (cell := find_cell(found, backbone, method, shot, methods)) is not None
    ]


def find_cell(
    kept: Table, backbone: str, method: str, shot: int, methods: dict[str, tuple[str, str, bool]] | None = None
) -> Cell | None:
    """The results of all seeds that were run; None where some set has none."""
    objective, head, by_shot = (methods or METHODS)[method]
    stem = f"{backbone}-{objective}{f'-{shot}' if by_shot else ''}"
    by_set: dict[str, FloatArray] = {}
    for name in SETS:
        found = [kept.find(f"{name}-5way-{shot}shot", f"{stem}-s{seed}", head) for seed in SEEDS]
        accuracies = [one.accuracy for one in found if one is not None]
        if not accuracies:
            return None
        by_set[name] = np.stack(accuracies)
    return Cell(backbone, method, shot, by_set)


def accuracy_table(cells: Sequence[Cell], methods: Iterable[str]) -> str:
    """One row per backbone, number of shots and method; what was not run yet in one row each."""
    header = ["backbone", "shots", "method", *(f"Acc, {name}" for name in SETS)]
    rows = []
    for (backbone, title), shot in itertools.product(BACKBONES.items(), SHOTS):
        missing = []
        for method in methods:
            found = _of(cells, backbone, method, shot)
            if found is None:
                missing.append(method)
                continue
            told = [f"{number(found.mean(name))}{found.deviation(name)}" for name in SETS]
            rows.append([title, str(shot), method, *told, *(estimate(found.gap(name)) for name in SETS[1:])])
        rows += [[title, str(shot), ", ".join(missing), NOT_RUN, *[""] * 6]] if missing else []
    return table([*header, *(f"iid {MINUS} {name}" for name in SETS[1:])], rows)


def stress_table(cells: Sequence[Cell]) -> str:
    """ProtoNet at 5 shots by the tasks that it was trained on, and the change from iid tasks."""
    rows = []
    for backbone, title in BACKBONES.items():
        usual = _of(cells, backbone, "iid tasks", 5)
        for name in TRAINED_ON:
            found = _of(cells, backbone, name, 5)
            if found is None or usual is None:
                rows.append([title, name, NOT_RUN, *[""] * 7])
                continue
            told = [title, name]
            for of in ("iid", "hard-ood"):
                higher = Estimate.over_tasks(found.by_set[of].mean(0) - usual.by_set[of].mean(0))
                told += [number(found.mean(of)), "" if found is usual else estimate(higher)]
            for to in ("ood", "hard-ood"):
                smaller = "" if found is usual else estimate(Estimate.over_tasks(usual.gaps(to) - found.gaps(to)))
                told += [estimate(found.gap(to)), smaller]
            rows.append(told)
    sets = [text for of in ("iid", "hard-ood") for text in (f"Acc, {of}", "higher by")]
    gaps = [text for to in ("ood", "hard-ood") for text in (f"iid {MINUS} {to}", "smaller by")]
    return table(["backbone", "trained on", *sets, *gaps], rows)


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


def curve_table(curves: Sequence[Curve], what: str) -> str:
    """One row per network, one column per value, and the step from each value to the next."""
    values = list(DIALS) if what == "dial" else [float(shot) for shot in ALL_SHOTS]
    steps = list(itertools.pairwise(values))
    header = [f"iid {MINUS} ood by {what}", *(f"{one:g}" for one in values), *(f"{a:g} to {b:g}" for a, b in steps)]
    rows = [
        [
            one.name,
            *(estimate(Estimate.over_tasks(one.gaps[value])) if value in one.gaps else NOT_RUN for value in values),
            *(estimate(one.step(a, b)) if a in one.gaps and b in one.gaps else NOT_RUN for a, b in steps),
        ]
        for one in curves
    ]
    return table(header, rows or [[name, *[NOT_RUN] * (len(header) - 1)] for name in CURVES])


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


def stage_table() -> str:
    """Tables 9 and 10: the gap from iid to ood after each block, by class means."""
    gaps, rows = stage_gaps(), []
    for title in BACKBONES.values():
        of_backbone = [
            [title, model, *(estimate(told[shot]) for shot in SHOTS)] for of, model, told in gaps if of == title
        ]
        rows += of_backbone or [[title, NOT_RUN, "", ""]]
    return table(["backbone", "model and block", f"iid {MINUS} ood, 1 shot", "5 shots"], rows)


def geometry_table(geometry: dict[str, dict[str, Any]]) -> str:
    """Tables 7 and 8: what mixing does to the length and direction of features."""
    rows = [
        [
            model,
            _bounded(told["ratio"], 3),
            f"{told['length']['p_recordings']:.0e}",
            _bounded(told["cosine"]["change"], 3),
            _bounded(told["others"]["clean"], 3),
            _bounded(told["turn"], 1),
        ]
        for model, told in geometry.items()
    ]
    header = ["network", "length, mixed over clean", "p", "change of cosine", "to other classes", "turn in degrees"]
    return table(header, rows or [[NOT_RUN, *[""] * 5]])


def statement_table(found: Found) -> str:
    """What SpurAudio says, and whether it holds here."""
    with (PAPERS / "spuraudio-statements.csv").open(encoding="utf-8", newline="") as file:
        said = list(csv.DictReader(file))
    assert [row["statement"] for row in said] == list(STATEMENTS)
    judged = [STATEMENTS[row["statement"]](found) for row in said]
    rows = [
        [row["statement"], f"{row['said']} ({row['where']})", *told] for row, told in zip(said, judged, strict=True)
    ]
    return table(["statement", "in the paper", "here", ""], rows)


def judge(cases: Sequence[Sequence[Estimate]]) -> list[str]:
    """Whether all estimates of all cases are conclusively above zero; one that is conclusively below refutes it."""
    if not cases:
        return [NOT_RUN, OPEN]
    signs = [{conclude([one], correct=False)[0] for one in case} for case in cases]
    held, against = sum(one == {"+"} for one in signs), sum("-" in one for one in signs)
    told = f"{held} of {len(cases)}{f'; {against} to the contrary' if against else ''}"
    return [told, FAILS if against else HOLDS if held == len(cases) else OPEN]


def _every_method_loses(found: Found) -> list[str]:
    return judge([[cell.gap()] for cell in found.cells])


def _sets_in_order(found: Found) -> list[str]:
    return judge([[cell.gap(), cell.gap("hard-ood", "ood")] for cell in found.cells])


def _clean_between(found: Found) -> list[str]:
    return judge([[cell.gap("clean"), cell.gap("ood", "clean")] for cell in found.cells])


def _gap_grows_with_shots(found: Found) -> list[str]:
    pairs = [(cell, _of(found.cells, cell.backbone, cell.method, 1)) for cell in found.cells if cell.shot == 5]
    return judge([[five.gap().minus(one.gap())] for five, one in pairs if one])


def _gap_grows_with_dial(found: Found) -> list[str]:
    return judge([[one.step(a, b) for a, b in itertools.pairwise(sorted(one.gaps))] for one in found.dials])


def _gap_levels_off(found: Found) -> list[str]:
    """It grows from 1 to 5 shots, and by more than from 5 to 10; the tasks of unequal shots are independent."""
    means = [{shot: Estimate.over_tasks(gaps) for shot, gaps in one.gaps.items()} for one in found.shots]
    doubled = [Estimate.over_tasks(2 * one.gaps[5]) for one in found.shots]
    return judge(
        [[of[5].minus(of[1]), twice.minus(of[1]).minus(of[10])] for of, twice in zip(means, doubled, strict=True)]
    )


def _size_of_gaps(found: Found) -> list[str]:
    told = []
    for backbone, title in BACKBONES.items():
        gaps = [cell.gap().mean for cell in found.cells if cell.backbone == backbone]
        told += [f"{title}: {number(min(gaps), 1)} to {number(max(gaps), 1)}"] if gaps else []
    return ["; ".join(told), "other classes and mixtures: compare the size alone"] if told else [NOT_RUN, OPEN]


def _gap_after_each_block(found: Found) -> list[str]:
    return judge([[gap] for gap in found.stages.values()])


def _shorter(found: Found) -> list[str]:
    return _bounded_all(found, lambda told: (told["length"]["change"]["low"], told["length"]["change"]["high"]), 0.0)


def _small_turn(found: Found) -> list[str]:
    return _bounded_all(
        found, lambda told: (-told["cosine"]["change"]["high"], -told["cosine"]["change"]["low"]), 0.025
    )


def _bounded_all(found: Found, ends: Callable[[dict[str, Any]], tuple[float, float]], limit: float) -> list[str]:
    """Whether the intervals of all networks are below a limit; one that is above refutes it."""
    if not found.geometry:
        return [NOT_RUN, OPEN]
    intervals = [ends(told) for told in found.geometry.values()]
    held, against = sum(high < limit for _, high in intervals), sum(low > limit for low, _ in intervals)
    told = f"{held} of {len(intervals)}{f'; {against} to the contrary' if against else ''}"
    return [told, FAILS if against else HOLDS if held == len(intervals) else OPEN]


def _contrastive_keeps_gap(found: Found) -> list[str]:
    told, verdict = judge([[cell.gap()] for cell in found.contrastive])
    run = list(dict.fromkeys(cell.method for cell in found.contrastive))
    alone = f" ({' and '.join(run)} alone)" if 0 < len(run) < len(CONTRASTIVE) else ""
    return [told + alone, verdict]


def _simclr_and_capacity(found: Found) -> list[str]:
    """Whether ResNet-12 is worse on ood tasks than Conv64F."""
    sides = [
        [_of(found.contrastive, backbone, "SimCLR", shot) for backbone in ("conv64f", "resnet12")] for shot in SHOTS
    ]
    return judge(
        [
            [Estimate.over_tasks(small.by_set["ood"].mean(0) - large.by_set["ood"].mean(0))]
            for small, large in sides
            if small and large
        ]
    )


def _in_order(*methods: str, shots: tuple[int, ...] = SHOTS) -> Callable[[Found], list[str]]:
    """Whether the gaps of these methods fall in the order given, on every backbone and number of shots."""

    def judged(found: Found) -> list[str]:
        told, cases = [], []
        for (backbone, title), shot in itertools.product(BACKBONES.items(), shots):
            cells = [cell for method in methods if (cell := _of(found.cells, backbone, method, shot))]
            if len(cells) == len(methods):
                told.append(f"{title}, {shot}: {', '.join(number(cell.gap().mean, 1) for cell in cells)}")
                cases.append([Estimate.over_tasks(a.gaps() - b.gaps()) for a, b in itertools.pairwise(cells)])
        return ["; ".join(told), judge(cases)[1]] if told else [NOT_RUN, OPEN]

    return judged


def _needs(what: str) -> Callable[[Found], list[str]]:
    def judged(found: Found) -> list[str]:
        return [f"needs {what}", OPEN]

    return judged


STATEMENTS: dict[str, Callable[[Found], list[str]]] = {
    "every method loses from iid to ood": _every_method_loses,
    "iid above ood above hard-ood": _sets_in_order,
    "clean between ood and iid": _clean_between,
    "the gap grows with the dial": _gap_grows_with_dial,
    "the gap grows from 1 to 5 shots": _gap_grows_with_shots,
    "the gap levels off after 5 shots": _gap_levels_off,
    "the gap of the final embedding": _size_of_gaps,
    "a gap after each block": _gap_after_each_block,
    "mixing shortens features": _shorter,
    "the cosine to the clean mean falls by less than 0.025": _small_turn,
    "gap: Baseline > DiffKendall > Meta-Baseline > Baseline++": _in_order(
        "Baseline", "DiffKendall", "Meta-Baseline", "Baseline++", shots=(5,)
    ),
    "gap of DN4 below that of ProtoNet": _in_order("ProtoNet", "DN4"),
    "gap of MAML below that of ANIL": _in_order("ANIL", "MAML"),
    "gap of R2D2 above that of DN4": _in_order("R2D2", "DN4"),
    "contrastive training keeps the gap": _contrastive_keeps_gap,
    "SimCLR gets worse with capacity": _simclr_and_capacity,
    "large encoders: iid near 96; gaps by head": _needs("CLAP's or AST's weights"),
    "distance to FSD50K": _needs("CLAP's weights and FSD50K"),
}


def _of(cells: Sequence[Cell], backbone: str, method: str, shot: int) -> Cell | None:
    wanted = (backbone, method, shot)
    return next((one for one in cells if (one.backbone, one.method, one.shot) == wanted), None)


def _task_gaps(kept: Table, name: str, shot: int) -> FloatArray | None:
    sides: list[Evaluated | None] = [kept.find(f"{tasks}-5way-{shot}shot", *CURVES[name]) for tasks in ("iid", "ood")]
    iid, ood = sides
    return None if iid is None or ood is None else iid.accuracy - ood.accuracy


def _bounded(told: dict[str, float], digits: int) -> str:
    return f"{number(told['mean'], digits)} ±{(told['high'] - told['low']) / 2:.{digits}f}"
