"""Conclusions on all pairs of classifiers of a task set, as a matrix of `+ 0 -`, one sign for each interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shotproof.comparison.changed_sets import AXIS as CHANGES
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import MINUS, bounds, points, typeset
from shotproof.comparison.sentences import fates_sentence
from shotproof.results.evaluated import Classifier
from shotproof.results.origin import Design
from shotproof.stats.block import Group
from shotproof.stats.pairs import Pair
from shotproof.stats.ranks import RankRange
from shotproof.stats.triples import Triple


@dataclass(frozen=True)
class PairCell:
    """Pair from the view of the row's classifier: one sign for each interval, and a tooltip with the difference.

    inverted: whether the signs contradict each other
    """

    signs: list[str]
    tooltip: str
    inverted: bool = False


Cells = dict[tuple[Classifier, Classifier], PairCell]


@dataclass(frozen=True)
class Matrix:
    """All pairs of one task set, or of the skill lost on it, with classifiers from the best to the worst.

    rows: each classifier with its rank and a cell for each classifier, None for itself
    conclusive: number of conclusive pairs under each interval, or for each kind of comparison
    note: further remark
    is_changed: whether the items of the tasks are changed
    """

    name: str
    is_lost: bool
    rows: list[tuple[str, RankRange | None, list[PairCell | None]]]
    conclusive: Mapping[str, int]
    pairs: int
    note: str = ""
    is_changed: bool = False


def matrices(comparison: Comparison) -> list[Matrix]:
    """Build the matrices of all task sets with more than one classifier, and of the skill lost on them."""
    return [
        _pair_matrix(comparison, group_name(comparison, block.design, group), group)
        for block in comparison.blocks
        for group in [*block.measured, *(loss.skill for loss in block.losses)]
        if len(group.rows) > 1
    ]


def triple_matrices(comparison: Comparison) -> list[Matrix]:
    """Build the matrices of direct and paired comparisons on random tasks."""
    metric, result = comparison.metric, []
    for block in comparison.blocks:
        for group in (group for group in block.groups if metric in group.triples):
            triples = group.triples[metric]
            names = _best_first(comparison, group)
            cells = {
                key: cell
                for triple, pair in zip(triples.pairs, group.pairs[metric, "sampler"], strict=True)
                for key, cell in _triple_cells(triple, names, group.correlation(pair, metric)).items()
            }
            matrix = _matrix(comparison, group_name(comparison, block.design, group), group, names, cells)
            result.append(replace(matrix, conclusive=triples.conclusive, note=fates_sentence([triples])))
    return result


def group_name(comparison: Comparison, design: Design, group: Group) -> str:
    """Name a group, e.g. `fewstab, 5-way 5-shot` or `skill lost, random - fewstab, 5-way 5-shot`."""
    return f"{group.title}, {comparison.design_name(design)}"


def _pair_matrix(comparison: Comparison, name: str, group: Group) -> Matrix:
    """Build the matrix of all pairs, with one sign for each interval."""
    pairs_by_key: dict[tuple[Classifier, Classifier], list[Pair]] = {}
    for interval_name in comparison.interval_names:
        for pair in group.pairs[comparison.metric, interval_name]:
            for view in (pair, pair.turned()):
                pairs_by_key.setdefault((view.a, view.b), []).append(view)
    names = _best_first(comparison, group)
    cells = {(a, b): _cell(f"{names[a]} against {names[b]}", pairs) for (a, b), pairs in pairs_by_key.items()}
    return _matrix(comparison, name, group, names, cells)


def _best_first(comparison: Comparison, group: Group) -> dict[Classifier, str]:
    """Return the names of the classifiers, the best first; for skill lost, the lowest loss first."""
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
    conclusive: dict[str, int] = {
        interval_name: group.conclusive(comparison.metric, interval_name) for interval_name in comparison.interval_names
    }
    is_changed = group.axis == CHANGES
    return Matrix(name, group.against is not None, rows, conclusive, len(cells) // 2, is_changed=is_changed)


def _triple_cells(
    triple: Triple, names: Mapping[Classifier, str], r: float
) -> dict[tuple[Classifier, Classifier], PairCell]:
    """Build the cells of a pair from the view of each of its classifiers."""
    correlation = "" if math.isnan(r) else f", r = {r:.2f}"
    flag = "; inverted" if triple.inverted else ""
    cells: Cells = {}
    for a, b, opposite in ((triple.a, triple.b, {}), (triple.b, triple.a, {"+": MINUS, "-": "+"})):
        signs = [opposite.get(sign, MINUS if sign == "-" else sign) for sign in triple.signs]
        cells[a, b] = PairCell(signs, f"{names[a]} against {names[b]}{correlation}{flag}", triple.inverted)
    return cells


def _cell(heading: str, pairs: Sequence[Pair]) -> PairCell:
    differences = [f"{points(pair.interval.mean)} {bounds(pair.interval)} {pair.interval.covers}" for pair in pairs]
    signs = [MINUS if pair.conclusion == "-" else pair.conclusion for pair in pairs]
    return PairCell(signs, typeset(f"{heading}: {'; '.join(differences)}"))
