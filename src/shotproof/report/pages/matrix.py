"""Which methods can be told apart: all pairs of a task set as a matrix of `+ 0 -`, one sign for each interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import MINUS, bounds, points, typeset
from shotproof.comparison.sentences import fates_of
from shotproof.results.evaluated import Classifier
from shotproof.results.origin import Design
from shotproof.stats.block import Group
from shotproof.stats.pairs import Pair
from shotproof.stats.ranks import RankRange
from shotproof.stats.triples import Triple


@dataclass(frozen=True)
class PairCell:
    """A pair as its row's classifier sees it: one sign for each interval, and the difference in words.

    inverted: whether the signs contradict each other
    """

    signs: list[str]
    told: str
    inverted: bool = False


Cells = dict[tuple[Classifier, Classifier], PairCell]


@dataclass(frozen=True)
class Matrix:
    """All pairs of one task set, or of the skill lost on it: classifiers from the best down.

    rows: a classifier with its rank and a cell for each classifier, None for itself
    conclusive: the number of conclusive pairs under each interval, or by each kind of comparison
    note: what else is to be said of it
    """

    name: str
    is_lost: bool
    rows: list[tuple[str, RankRange | None, list[PairCell | None]]]
    conclusive: Mapping[str, int]
    pairs: int
    note: str = ""


def matrices(comparison: Comparison) -> list[Matrix]:
    """Return the matrix of every task set, and of the skill lost on every one, that more than one classifier has."""
    return [
        _pair_matrix(comparison, group_name(comparison, block.design, group), group)
        for block in comparison.blocks
        for group in [*block.measured, *(loss.skill for loss in block.losses)]
        if len(group.rows) > 1
    ]


def triple_matrices(comparison: Comparison) -> list[Matrix]:
    """Return the matrix of direct and paired comparisons, of every set of random tasks that has them."""
    metric, found = comparison.metric, []
    for block in comparison.blocks:
        for group in (group for group in block.groups if metric in group.triples):
            triples = group.triples[metric]
            names = _best_first(comparison, group)
            cells = {
                key: cell
                for one, pair in zip(triples.pairs, group.pairs[metric, "sampler"], strict=True)
                for key, cell in _triple_cells(one, names, group.correlation(pair, metric)).items()
            }
            matrix = _matrix(comparison, group_name(comparison, block.design, group), group, names, cells)
            found.append(replace(matrix, conclusive=triples.conclusive, note=fates_of([triples])))
    return found


def group_name(comparison: Comparison, design: Design, group: Group) -> str:
    """E.g. `fewstab, 5-way 5-shot` or `skill lost, random - fewstab, 5-way 5-shot`."""
    return f"{group.title}, {comparison.design_name(design)}"


def _pair_matrix(comparison: Comparison, name: str, group: Group) -> Matrix:
    """Return all pairs, with one sign for each interval."""
    found: dict[tuple[Classifier, Classifier], list[Pair]] = {}
    for covers in comparison.covers:
        for pair in group.pairs[comparison.metric, covers]:
            for one in (pair, pair.turned()):
                found.setdefault((one.a, one.b), []).append(one)
    names = _best_first(comparison, group)
    cells = {(a, b): _cell(f"{names[a]} against {names[b]}", pairs) for (a, b), pairs in found.items()}
    return _matrix(comparison, name, group, names, cells)


def _best_first(comparison: Comparison, group: Group) -> dict[Classifier, str]:
    """What the page calls each classifier; of skill that is lost, the least first."""
    metric, sign = comparison.metric, 1 if group.quantity == "skill_lost" else -1
    ordered = sorted(group.rows, key=lambda row: (math.isnan(row.means[metric]), sign * row.means[metric]))
    return {row.classifier: comparison.classifier_name(row.classifier) for row in ordered}


def _matrix(
    comparison: Comparison,
    name: str,
    group: Group,
    names: Mapping[Classifier, str],
    cells: Cells,
) -> Matrix:
    ranks = {row.classifier: row.rank(comparison.metric) for row in group.rows}
    rows = [(names[a], ranks[a], [cells.get((a, b)) for b in names]) for a in names]
    conclusive: dict[str, int] = {covers: group.conclusive(comparison.metric, covers) for covers in comparison.covers}
    return Matrix(name, group.against is not None, rows, conclusive, len(cells) // 2)


def _triple_cells(
    one: Triple, names: Mapping[Classifier, str], r: float
) -> dict[tuple[Classifier, Classifier], PairCell]:
    """Return the pair as each of the two sees it."""
    told = "" if math.isnan(r) else f", r = {r:.2f}"
    flagged = "; inverted" if one.inverted else ""
    cells: Cells = {}
    for a, b, opposite in ((one.a, one.b, {}), (one.b, one.a, {"+": MINUS, "-": "+"})):
        signs = [opposite.get(sign, MINUS if sign == "-" else sign) for sign in one.signs]
        cells[a, b] = PairCell(signs, f"{names[a]} against {names[b]}{told}{flagged}", one.inverted)
    return cells


def _cell(both: str, pairs: Sequence[Pair]) -> PairCell:
    told = [f"{points(pair.interval.mean)} {bounds(pair.interval)} {pair.interval.covers}" for pair in pairs]
    signs = [MINUS if pair.conclusion == "-" else pair.conclusion for pair in pairs]
    return PairCell(signs, typeset(f"{both}: {'; '.join(told)}"))
