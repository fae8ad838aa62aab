"""Which methods can be told apart: all pairs of a task set as a matrix of `+ 0 -`, one sign for each interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shotproof.evaluation.origin import Design
from shotproof.report.pages.wording import MINUS, bounds, points, typeset
from shotproof.stats.block import Group
from shotproof.stats.comparison import Comparison
from shotproof.stats.intervals import Covers
from shotproof.stats.pairs import Pair


@dataclass(frozen=True)
class PairCell:
    """A pair as its row's classifier sees it: one sign for each interval, and the difference in words."""

    signs: list[str]
    told: str


@dataclass(frozen=True)
class Matrix:
    """All pairs of one task set, or of the skill lost on it: classifiers from the best down.

    rows: a classifier with its rank and a cell for each classifier, None for itself
    conclusive: the number of conclusive pairs under each interval
    """

    name: str
    is_lost: bool
    rows: list[tuple[str, int | None, list[PairCell | None]]]
    conclusive: dict[Covers, int]
    pairs: int


def matrices(comparison: Comparison) -> list[Matrix]:
    """The matrix of every task set, and of the skill lost on every one, that more than one classifier has."""
    return [
        _matrix(comparison, group_name(comparison, block.design, group), group)
        for block in comparison.blocks
        for group in [*block.measured, *(loss.skill for loss in block.losses)]
        if len(group.rows) > 1
    ]


def group_name(comparison: Comparison, design: Design, group: Group) -> str:
    """E.g. `fewstab, 5-way 5-shot` or `skill lost, random - fewstab, 5-way 5-shot`."""
    return f"{group.title}, {comparison.design_name(design)}"


def _matrix(comparison: Comparison, name: str, group: Group) -> Matrix:
    metric = comparison.metric
    found: dict[tuple[str, str], list[Pair]] = {}
    for covers in comparison.covers:
        for pair in group.pairs[metric, covers]:
            for one in (pair, pair.turned()):
                found.setdefault((one.a, one.b), []).append(one)
    sign = 1 if group.quantity == "skill" else -1  # the best first
    ordered = sorted(group.rows, key=lambda row: (math.isnan(row.means[metric]), sign * row.means[metric]))
    names = {str(row.classifier): comparison.classifier_name(row.classifier) for row in ordered}
    cells = [[None if a == b else _cell(f"{names[a]} against {names[b]}", found[a, b]) for b in names] for a in names]
    rows = [(names[str(row.classifier)], row.rank(metric), of) for row, of in zip(ordered, cells, strict=True)]
    conclusive = {covers: group.conclusive(metric, covers) for covers in comparison.covers}
    return Matrix(name, group.against is not None, rows, conclusive, len(found) // 2)


def _cell(both: str, pairs: Sequence[Pair]) -> PairCell:
    told = [f"{points(one.interval.mean)} {bounds(one.interval)} {one.interval.covers}" for one in pairs]
    signs = [MINUS if one.conclusion == "-" else one.conclusion for one in pairs]
    return PairCell(signs, typeset(f"{both}: {'; '.join(told)}"))
