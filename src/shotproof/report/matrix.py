"""Which methods can be told apart: all pairs of a task set as a matrix of `+ 0 -`, a sign for each interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shotproof.evaluation.evaluated import Metric
from shotproof.evaluation.results import Results
from shotproof.evaluation.sources import UNKNOWN, Design, Source, reference, sources_of
from shotproof.report.comparison import Comparison
from shotproof.report.wording import MINUS, bounds, points, typeset
from shotproof.stats.compare import MethodGroup, MethodTable, compare
from shotproof.stats.intervals import Covers
from shotproof.stats.material import Material
from shotproof.stats.pairs import Conclusion, Pair

# Worst-class accuracy is what the page is about.
METRIC: Metric = "wacc"
OPPOSITE: dict[Conclusion, Conclusion] = {"+": "-", "0": "0", "-": "+"}


@dataclass(frozen=True)
class Cell:
    """A pair as its row's method sees it: a sign for each interval, and the difference in words."""

    signs: list[str]
    told: str


@dataclass(frozen=True)
class Matrix:
    """All pairs of one task set, or of the gaps: methods from the highest mean down.

    rows: a method with its rank and a cell for each method, None for itself
    conclusive: the number of conclusive pairs under each interval
    """

    name: str
    is_gap: bool
    covers: tuple[Covers, ...]
    rows: list[tuple[str, int | None, list[Cell | None]]]
    conclusive: dict[Covers, int]
    pairs: int


def method_tables(
    results: Sequence[Results], intervals: Sequence[str] | None, material: Material
) -> list[tuple[Design, MethodTable]]:
    """A comparison for each design: of all its task sets where one is a reference, else of each alone."""
    sources = sources_of(results)
    by_design: dict[Design, list[Source]] = {}
    for source in sources:
        by_design.setdefault(source.design, []).append(source)
    batches: dict[tuple[Design, str | None], list[Results]] = {}
    for source, given in zip(sources, results, strict=True):
        together = reference(by_design[source.design]) is not None and source.sampler != UNKNOWN
        batches.setdefault((source.design, None if together else source.sampler), []).append(given)
    return [
        (design, compare(batch, intervals=intervals, metric=METRIC, material=material))
        for (design, _), batch in batches.items()
    ]


def matrices(comparison: Comparison, tables: Sequence[tuple[Design, MethodTable]]) -> list[Matrix]:
    """The matrix of every task set, and of every gap, that more than one method has."""
    return [
        _matrix(group_name(comparison, design, group), group, table)
        for design, table in sorted(tables, key=lambda entry: comparison.designs.index(entry[0]))
        for group in [*table.groups, *table.gaps]
        if len(group.methods) > 1
    ]


def group_name(comparison: Comparison, design: Design, group: MethodGroup) -> str:
    """E.g. `fewstab, 5-way 5-shot` or `gap (random - fewstab), 5-way 5-shot`."""
    return f"{f'gap ({group.name})' if group.biased else group.name}, {comparison.design_name(design)}"


def _matrix(name: str, group: MethodGroup, table: MethodTable) -> Matrix:
    by_interval = [group.pairs[METRIC, covers] for covers in table.covers]
    found: dict[tuple[str, str], list[Pair]] = {}
    for pairs in by_interval:
        for pair in [*pairs, *map(_turned, pairs)]:
            found.setdefault((pair.a, pair.b), []).append(pair)
    ordered = sorted(group.methods, key=lambda row: -row.means[METRIC])
    rows = [
        (a.method, a.rank, [None if a is b else _cell(found[a.method, b.method]) for b in ordered]) for a in ordered
    ]
    conclusive = {covers: group.conclusive(METRIC, covers) for covers in table.covers}
    return Matrix(name, group.biased is not None, table.covers, rows, conclusive, len(by_interval[0]))


def _turned(pair: Pair) -> Pair:
    """The same pair as the other method sees it."""
    interval = replace(pair.interval, mean=-pair.interval.mean, low=-pair.interval.high, high=-pair.interval.low)
    return replace(pair, a=pair.b, b=pair.a, interval=interval, conclusion=OPPOSITE[pair.conclusion])


def _cell(pairs: Sequence[Pair]) -> Cell:
    told = [f"{points(one.interval.mean)} {bounds(one.interval)} {one.interval.covers}" for one in pairs]
    signs = [MINUS if one.conclusion == "-" else one.conclusion for one in pairs]
    return Cell(signs, typeset(f"{pairs[0].a} against {pairs[0].b}: {'; '.join(told)}"))
