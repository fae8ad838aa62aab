"""What SpurAudio says of classifiers of sounds, and whether it holds of ours."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from reproduction.markdown import NOT_RUN, number, table
from reproduction.papers import PAPERS
from reproduction.sections.sound_cells import BACKBONES, CONTRASTIVE, SHOTS, Cell, Found, cell_of
from reproduction.train import SOUND_EFFORTS
from shotproof.stats.intervals import Estimate
from shotproof.stats.pairs import conclude

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be judged"


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
    held, against = sum(sign == {"+"} for sign in signs), sum("-" in sign for sign in signs)
    told = f"{held} of {len(cases)}{f'; {against} to the contrary' if against else ''}"
    return [told, FAILS if against else HOLDS if held == len(cases) else OPEN]


def _every_method_loses(found: Found) -> list[str]:
    return judge([[cell.gap()] for cell in found.cells])


def _sets_in_order(found: Found) -> list[str]:
    return judge([[cell.gap(), cell.gap("hard-ood", "ood")] for cell in found.cells if "hard-ood" in cell.by_set])


def _clean_between(found: Found) -> list[str]:
    return judge([[cell.gap("clean"), cell.gap("ood", "clean")] for cell in found.cells if "clean" in cell.by_set])


def _gap_grows_with_shots(found: Found) -> list[str]:
    pairs = [(cell, cell_of(found.cells, cell.backbone, cell.method, 1)) for cell in found.cells if cell.shot == 5]
    return judge([[five.gap().minus(one.gap())] for five, one in pairs if one])


def _gap_grows_with_dial(found: Found) -> list[str]:
    return judge([[dial.step(a, b) for a, b in itertools.pairwise(sorted(dial.gaps))] for dial in found.dials])


def _gap_levels_off(found: Found) -> list[str]:
    """It grows from 1 to 5 shots, and by more than from 5 to 10; the tasks of unequal shots are independent."""
    means = [{shot: Estimate.over_tasks(gaps) for shot, gaps in one.gaps.items()} for one in found.shots]
    doubled = [Estimate.over_tasks(2 * shot.gaps[5]) for shot in found.shots]
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
    """Whether ResNet-12 is worse on ood tasks than Conv64F, which can be judged after trainings of the same length."""
    sides = [
        [cell_of(found.contrastive, backbone, "SimCLR", shot) for backbone in ("conv64f", "resnet12")] for shot in SHOTS
    ]
    told, verdict = judge(
        [
            [Estimate.over_tasks(small.by_set["ood"].mean(0) - large.by_set["ood"].mean(0))]
            for small, large in sides
            if small and large
        ]
    )
    of_small, of_large = (SOUND_EFFORTS[backbone].epochs_on_views for backbone in ("conv64f", "resnet12"))
    if told == NOT_RUN or of_small == of_large:
        return [told, verdict]
    return [f"{told}, ResNet-12 after {of_large} epochs and Conv64F after {of_small}", OPEN]


def _in_order(*methods: str, shots: tuple[int, ...] = SHOTS) -> Callable[[Found], list[str]]:
    """Whether the gaps of these methods fall in the order given, on every backbone and number of shots."""

    def judged(found: Found) -> list[str]:
        told, cases = [], []
        for (backbone, title), shot in itertools.product(BACKBONES.items(), shots):
            cells = [cell for method in methods if (cell := cell_of(found.cells, backbone, method, shot))]
            if len(cells) == len(methods):
                told.append(f"{title}, {shot}: {', '.join(number(cell.gap().mean, 1) for cell in cells)}")
                cases.append([_difference(a, b) for a, b in itertools.pairwise(cells)])
        return ["; ".join(told), judge(cases)[1]] if told else [NOT_RUN, OPEN]

    return judged


def _difference(first: Cell, second: Cell) -> Estimate:
    """Of the gaps of two methods: task by task, unless one was tested on fewer tasks."""
    if first.gaps().shape == second.gaps().shape:
        return Estimate.over_tasks(first.gaps() - second.gaps())
    return first.gap().minus(second.gap())


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
