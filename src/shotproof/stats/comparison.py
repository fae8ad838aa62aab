"""The one model of a comparison: classifiers on task sets, in points, under every interval that was asked for.

`compare_sets` makes it; the command line prints it, the page draws it, and the modules in `export` write it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shotproof.core.records import UNKNOWN
from shotproof.evaluation.evaluated import METRICS, Classifier, Metric
from shotproof.evaluation.metrics import average_drop, rank_correlation
from shotproof.evaluation.origin import RANDOM, Design
from shotproof.stats.block import Block, Group
from shotproof.stats.intervals import Covers, Interval
from shotproof.stats.pairs import Pair

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Agreement:
    """How far the reference tells what other tasks show, over all classifiers.

    Spearman's correlations are NaN where they cannot be computed; `average_drop` is the mean gap in wAcc, in points.
    """

    design: Design
    label: str
    classifiers: int
    accuracy_with_worst: float
    worst_with_worst: float
    average_drop: float


@dataclass(frozen=True)
class Measurement:
    """One classifier on one task set: Acc and wAcc in percent, each with its interval."""

    sampler: str
    tasks_digest: str | None
    tasks: int
    accuracy: Interval
    worst: Interval


@dataclass(frozen=True)
class GapRow:
    """A classifier on one design: the reference (random or iid tasks) against another sampler's tasks.

    `gap` is the reference's wAcc minus the other's (FewSTAB: wAcc-R minus wAcc-A), `accuracy_gap` the same of Acc.
    """

    encoder: str
    method: str
    design: Design
    reference: Measurement | None
    biased: Measurement | None
    gap: Interval | None
    accuracy_gap: Interval | None


@dataclass(frozen=True)
class Comparison:
    """Classifiers on any number of data sets, designs and task sets: accuracies in percent, differences in points.

    level: of the intervals
    metric: what ranks and printed pairs are by
    corrected: whether Holm's correction for the number of pairs was made
    covers: the intervals, the first of which tables show
    blocks: one per design
    notes: what a reader must know of the intervals

    Example:
        >>> import shotproof as sp
        >>> world = sp.ShapesWorld(classes=6, items=40)
        >>> features = sp.encode(world.catalog(), "dial(share=0.5)")
        >>> random = sp.sample(world.catalog(), "random", tasks=20)
        >>> biased = sp.sample(world.catalog(), "fewstab", attributes=world.attributes(), tasks=20)
        >>> comparison = sp.compare([sp.evaluate(tasks, features, "ncc") for tasks in (random, biased)])
        >>> comparison
        <Comparison of ncc on dial; 5-way 5-shot: random, fewstab>
        >>> [gap.name for gap in comparison.gaps]
        ['random - fewstab']
        >>> comparison.to_pandas("gaps").shape[0]
        2
    """

    level: float
    metric: Metric
    corrected: bool
    covers: tuple[Covers, ...]
    blocks: list[Block]
    notes: list[str] = field(default_factory=list)

    @property
    def refused(self) -> dict[Covers, str]:
        """The reason of each interval that no classifier of any design could be given."""
        reasons = {name: [block.refused.get(name) for block in self.blocks] for name in self.covers}
        return {name: found[0] for name, found in reasons.items() if found[0] is not None and all(found)}

    @property
    def groups(self) -> list[Group]:
        """The groups of all designs."""
        return [group for block in self.blocks for group in block.groups]

    @property
    def gaps(self) -> list[Group]:
        """The gaps of all designs."""
        return [gap for block in self.blocks for gap in block.gaps]

    @cached_property
    def designs(self) -> list[Design]:
        """The designs, by data set, smallest first."""
        return [block.design for block in self.blocks]

    @cached_property
    def encoders(self) -> list[str]:
        """The encoders, in the order of the results."""
        return list(dict.fromkeys(row.classifier.encoder for group in self.groups for row in group.rows))

    @cached_property
    def methods(self) -> list[str]:
        """The methods, in the order of the results."""
        return list(dict.fromkeys(row.classifier.method for group in self.groups for row in group.rows))

    @cached_property
    def references(self) -> list[str]:
        """The samplers that the others are measured against; `random` where there is none."""
        return list(dict.fromkeys(block.reference.label for block in self.blocks if block.reference)) or [RANDOM]

    @cached_property
    def biased_samplers(self) -> list[str]:
        """The samplers other than the reference."""
        return list(dict.fromkeys(row.biased.sampler for row in self.rows if row.biased))

    @cached_property
    def rows(self) -> list[GapRow]:
        """One row per classifier, design and task set but the reference; or one with the reference alone."""
        return [row for block in self.blocks for row in _rows(block, self.covers[0])]

    @cached_property
    def agreements(self) -> list[Agreement]:
        """Over all classifiers, for each design and task set but the reference."""
        return [one for block in self.blocks for one in _agreements(block)]

    def classifier_name(self, classifier: Classifier) -> str:
        """The method, with its encoder where the comparison has more than one."""
        return f"{classifier.encoder}: {classifier.method}" if len(self.encoders) > 1 else classifier.method

    def pair_names(self, pair: Pair) -> tuple[str, str]:
        """The names of both classifiers of a pair."""
        return self._names[pair.a], self._names[pair.b]

    @cached_property
    def _names(self) -> dict[str, str]:
        """What tables call each classifier, by what pairs call it."""
        known = dict.fromkeys(one for block in self.blocks for one in block.classifiers)
        return {str(one): self.classifier_name(one) for one in known}

    def design_name(self, design: Design) -> str:
        """E.g. `5-way 1-shot`, with the data set, the queries and the split where they tell designs apart."""
        names = {other.data_set for other in self.designs}
        catalogs = {other.catalog for other in self.designs if other.dial is None}
        extras: list[tuple[Callable[[Design], Any], str]] = [
            (lambda d: d.query, "queries that vary" if design.query is None else f"{design.query} queries"),
            (lambda d: d.dial, f"a = {design.dial:g}" if design.dial is not None else "not mixed"),
            (lambda d: d.split, f"split {design.split or UNKNOWN}"),
        ]
        differing = [text for value, text in extras if len({value(other) for other in self.designs}) > 1]
        data_set = [design.data_set] if len(names) > 1 and design.data_set else []
        if len(catalogs) > len(names) and design.dial is None:
            differing.append(f"catalog {(design.catalog or UNKNOWN)[:8]}")
        return ", ".join([*data_set, design.shape, *differing])

    def to_json(self) -> dict[str, Any]:
        """All tables as plain values: accuracies in percent, differences in points, null where there is no number."""
        from shotproof.stats.export.tables import to_json

        return to_json(self)

    def to_csv(self) -> str:
        """All tables as CSV, each with a heading, an empty line between."""
        from shotproof.stats.export.tables import to_csv

        return to_csv(self)

    def to_latex(self) -> str:
        """One table per design, by booktabs: in bold the best, and all that the first interval cannot tell from it."""
        from shotproof.stats.export.latex import to_latex

        return to_latex(self)

    def to_pandas(self, table: str = "methods") -> pd.DataFrame:
        """A tidy table as a data frame: accuracies in percent, differences in points.

        Args:
            table: `methods` or `gaps` (one row per classifier, task set, metric and interval), `pairs` or `gap_pairs`
                (one row per pair of classifiers, likewise), `seeds`, `detectors` or `agreements`

        Returns:
            The data frame; what does not exist, such as a refused interval, is null.

        Raises:
            UnknownName: there is no such table.
            MissingExtra: pandas is not installed.
        """
        from shotproof.stats.export.tables import to_pandas

        return to_pandas(self, table)

    def to_html(self) -> str:
        """One HTML table per design: accuracies and gaps with half-widths, in bold as in `to_latex`."""
        from shotproof.stats.export.html import to_html

        return to_html(self)

    def plot(self, figure: str | None = None) -> Figure:
        """A figure by matplotlib.

        Args:
            figure: `gaps`, `scatter`, `intervals`, `pairs`, `seeds` or `heat`; by default the gaps, or where there are
                none the intervals

        Returns:
            A matplotlib figure, which a notebook shows.

        Raises:
            UnknownName: there is no such figure.
            InputError: the comparison has nothing that the figure shows.
            MissingExtra: matplotlib is not installed.
        """
        from shotproof.stats.export.plot import plot

        return plot(self, figure)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        on = "; ".join(
            f"{self.design_name(block.design)}: {', '.join(group.label for group in block.groups)}"
            for block in self.blocks
        )
        return f"<Comparison of {', '.join(self.methods)} on {', '.join(self.encoders)}; {on}>"


def _rows(block: Block, covers: Covers) -> list[GapRow]:
    rows = []
    for classifier in block.classifiers:
        first = _measure(block.reference, classifier, covers)
        others = [group for group in block.groups if group is not block.reference and group.row(classifier)]
        for group in others:
            gap = next((one for one in block.gaps if one.against == group.label), None)
            row = None if gap is None else gap.row(classifier)
            gaps = (None, None) if row is None else (row.intervals["wacc"][covers], row.intervals["acc"][covers])
            rows.append(GapRow(*classifier, block.design, first, _measure(group, classifier, covers), *gaps))
        if not others:
            rows.append(GapRow(*classifier, block.design, first, None, None, None))
    return rows


def _measure(group: Group | None, classifier: Classifier, covers: Covers) -> Measurement | None:
    row = None if group is None else group.row(classifier)
    if group is None or row is None:
        return None
    return Measurement(
        group.label, group.digests[0], group.tasks, row.intervals["acc"][covers], row.intervals["wacc"][covers]
    )


def _agreements(block: Block) -> list[Agreement]:
    found = []
    for gap in block.gaps:
        sides = block.sides(gap)
        accuracy, worst = ([first.means[metric] for first, _ in sides] for metric in METRICS)
        biased = [second.means["wacc"] for _, second in sides]
        correlations = (rank_correlation(accuracy, biased), rank_correlation(worst, biased))
        found.append(Agreement(block.design, str(gap.against), len(sides), *correlations, average_drop(worst, biased)))
    return found
