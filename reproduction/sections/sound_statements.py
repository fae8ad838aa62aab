"""Statements of SpurAudio about classifiers of sounds, and whether they hold for ours."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from reproduction.markdown import NOT_RUN, number, table
from reproduction.papers import PAPERS
from reproduction.sections.sound_cells import BACKBONES, CONTRASTIVE, SHOTS, Cell, SoundResults, cell_of
from reproduction.train import SOUND_EFFORTS
from shotproof.stats.intervals import Estimate
from shotproof.stats.pairs import conclude

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be judged"


def statement_table(results: SoundResults) -> str:
    """Write each statement of SpurAudio, and whether it holds here."""
    with (PAPERS / "spuraudio-statements.csv").open(encoding="utf-8", newline="") as file:
        published = list(csv.DictReader(file))
    assert [row["statement"] for row in published] == list(STATEMENTS)
    verdicts = [STATEMENTS[row["statement"]](results) for row in published]
    rows = [
        [row["statement"], f"{row['said']} ({row['where']})", *cells]
        for row, cells in zip(published, verdicts, strict=True)
    ]
    return table(["statement", "in the paper", "here", ""], rows)


def judge(cases: Sequence[Sequence[Estimate]]) -> list[str]:
    """Judge whether all estimates of all cases are conclusively above zero; one conclusively below refutes it."""
    if not cases:
        return [NOT_RUN, OPEN]
    signs = [{conclude([estimate], correct=False)[0] for estimate in case} for case in cases]
    confirmed, refuted = sum(sign == {"+"} for sign in signs), sum("-" in sign for sign in signs)
    summary = f"{confirmed} of {len(cases)}{f'; {refuted} to the contrary' if refuted else ''}"
    return [summary, FAILS if refuted else HOLDS if confirmed == len(cases) else OPEN]


def _every_method_loses(results: SoundResults) -> list[str]:
    return judge([[cell.gap()] for cell in results.cells])


def _sets_in_order(results: SoundResults) -> list[str]:
    return judge([[cell.gap(), cell.gap("hard-ood", "ood")] for cell in results.cells if "hard-ood" in cell.by_set])


def _clean_between(results: SoundResults) -> list[str]:
    return judge([[cell.gap("clean"), cell.gap("ood", "clean")] for cell in results.cells if "clean" in cell.by_set])


def _gap_grows_with_shots(results: SoundResults) -> list[str]:
    pairs = [(cell, cell_of(results.cells, cell.backbone, cell.method, 1)) for cell in results.cells if cell.shot == 5]
    return judge([[at_five.gap().minus(at_one.gap())] for at_five, at_one in pairs if at_one])


def _gap_grows_with_dial(results: SoundResults) -> list[str]:
    return judge([[dial.step(a, b) for a, b in itertools.pairwise(sorted(dial.gaps))] for dial in results.dials])


def _gap_levels_off(results: SoundResults) -> list[str]:
    """Judge whether the gap grows from 1 to 5 shots, and more than from 5 to 10; the tasks are independent."""
    means = [{shot: Estimate.over_tasks(gaps) for shot, gaps in curve.gaps.items()} for curve in results.shots]
    doubled = [Estimate.over_tasks(2 * shot.gaps[5]) for shot in results.shots]
    return judge(
        [
            [by_shot[5].minus(by_shot[1]), twice.minus(by_shot[1]).minus(by_shot[10])]
            for by_shot, twice in zip(means, doubled, strict=True)
        ]
    )


def _size_of_gaps(results: SoundResults) -> list[str]:
    ranges = []
    for backbone, title in BACKBONES.items():
        gaps = [cell.gap().mean for cell in results.cells if cell.backbone == backbone]
        ranges += [f"{title}: {number(min(gaps), 1)} to {number(max(gaps), 1)}"] if gaps else []
    return ["; ".join(ranges), "other classes and mixtures: compare the size alone"] if ranges else [NOT_RUN, OPEN]


def _gap_after_each_block(results: SoundResults) -> list[str]:
    return judge([[gap] for gap in results.stages.values()])


def _shorter(results: SoundResults) -> list[str]:
    return _bounded_all(
        results, lambda geometry: (geometry["length"]["change"]["low"], geometry["length"]["change"]["high"]), 0.0
    )


def _small_turn(results: SoundResults) -> list[str]:
    return _bounded_all(
        results, lambda geometry: (-geometry["cosine"]["change"]["high"], -geometry["cosine"]["change"]["low"]), 0.025
    )


def _bounded_all(
    results: SoundResults, ends: Callable[[dict[str, Any]], tuple[float, float]], limit: float
) -> list[str]:
    """Judge whether the intervals of all networks are below a limit; one above it refutes the statement."""
    if not results.geometry:
        return [NOT_RUN, OPEN]
    intervals = [ends(text) for text in results.geometry.values()]
    confirmed, refuted = sum(high < limit for _, high in intervals), sum(low > limit for low, _ in intervals)
    text = f"{confirmed} of {len(intervals)}{f'; {refuted} to the contrary' if refuted else ''}"
    return [text, FAILS if refuted else HOLDS if confirmed == len(intervals) else OPEN]


def _contrastive_keeps_gap(results: SoundResults) -> list[str]:
    """Judge whether every contrastive training loses; MoCo, which the paper does not have, is counted and named."""
    summary, verdict = judge([[cell.gap()] for cell in results.contrastive])
    evaluated = list(dict.fromkeys(cell.method for cell in results.contrastive))
    alone = f" ({' and '.join(evaluated)} alone)" if 0 < len(evaluated) < len(CONTRASTIVE) else ""
    added = ", with MoCo" if "MoCo" in evaluated and not alone else ""
    return [summary + alone + added, verdict]


def _simclr_and_capacity(results: SoundResults) -> list[str]:
    """Judge whether ResNet-12 is worse on ood tasks than Conv64F; this needs trainings of the same length."""
    sides = [
        [cell_of(results.contrastive, backbone, "SimCLR", shot) for backbone in ("conv64f", "resnet12")]
        for shot in SHOTS
    ]
    summary, verdict = judge(
        [
            [Estimate.over_tasks(small.by_set["ood"].mean(0) - large.by_set["ood"].mean(0))]
            for small, large in sides
            if small and large
        ]
    )
    small_epochs, large_epochs = (SOUND_EFFORTS[backbone].epochs_on_views for backbone in ("conv64f", "resnet12"))
    if summary == NOT_RUN or small_epochs == large_epochs:
        return [summary, verdict]
    return [f"{summary}, ResNet-12 after {large_epochs} epochs and Conv64F after {small_epochs}", OPEN]


def _in_order(*methods: str, shots: tuple[int, ...] = SHOTS) -> Callable[[SoundResults], list[str]]:
    """Judge whether the gaps of these methods fall in this order, on every backbone and number of shots."""

    def judge_order(results: SoundResults) -> list[str]:
        texts, cases = [], []
        for (backbone, title), shot in itertools.product(BACKBONES.items(), shots):
            cells = [cell for method in methods if (cell := cell_of(results.cells, backbone, method, shot))]
            if len(cells) == len(methods):
                texts.append(f"{title}, {shot}: {', '.join(number(cell.gap().mean, 1) for cell in cells)}")
                cases.append([_difference(a, b) for a, b in itertools.pairwise(cells)])
        return ["; ".join(texts), judge(cases)[1]] if texts else [NOT_RUN, OPEN]

    return judge_order


def _difference(first: Cell, second: Cell) -> Estimate:
    """Estimate the difference of two methods' gaps: task by task, unless one was tested on fewer tasks."""
    if first.gaps().shape == second.gaps().shape:
        return Estimate.over_tasks(first.gaps() - second.gaps())
    return first.gap().minus(second.gap())


def _needs(requirement: str) -> Callable[[SoundResults], list[str]]:
    def judge_missing(results: SoundResults) -> list[str]:
        return [f"needs {requirement}", OPEN]

    return judge_missing


STATEMENTS: dict[str, Callable[[SoundResults], list[str]]] = {
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
