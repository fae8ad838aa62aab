"""The one model of a comparison: classifiers on task sets, in points, under every interval that was asked for.

`compare_sets` makes it; the command line prints it, the page draws it, and the modules in `export` write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shotproof.comparison.estimate_rows import EstimateRow, block_rows
from shotproof.results.encoder_names import short_encoder_names
from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.results.metrics import average_drop, rank_correlation
from shotproof.results.origin import PLACEBO, Design, design_name
from shotproof.stats.block import Block, Group, Quantity
from shotproof.stats.costs import AttributeCosts
from shotproof.stats.data_sets import AcrossDataSets, across_data_sets
from shotproof.stats.intervals import Covers, Interval
from shotproof.stats.pairs import Pair
from shotproof.tasks.sampler import Axis

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.figure import Figure


CONTEXT = "context"  # what contexts are called where their column has no name of its own


@dataclass(frozen=True)
class Agreement:
    """How far the reference tells what other tasks show, over all classifiers.

    Spearman's correlations are NaN where they cannot be computed; `average_drop` is the mean gap in wAcc, in points.
    """

    design: Design
    reference: str
    label: str
    classifiers: int
    accuracy_with_worst: float
    worst_with_worst: float
    average_drop: float


@dataclass(frozen=True)
class Comparison:
    """Classifiers on any number of data sets, designs and task sets: accuracies in percent, differences in points.

    level: of the intervals
    metric: what ranks and printed pairs are by
    corrected: whether Holm's correction for the number of pairs was made
    covers: the intervals, the first of which tables show
    blocks: one per design
    notes: what a reader must know of the intervals, and of task sets that are the same
    medium: what the items are, `image` or `sound`; None where it is not known, or both
    context: what the contexts are called, by the catalog's column
    costs: what each planted attribute or context costs, by design and label of the task set, and by classifier

    Example:
        >>> import shotproof as sp
        >>> world = sp.worlds.ShapesWorld(classes=6, items=40)
        >>> features = sp.encode(world.catalog(), "dial(share=0.5)")
        >>> random = sp.sample(world.catalog(), "random", tasks=20)
        >>> biased = sp.sample(world.catalog(), "fewstab", attributes=world.attributes(), tasks=20)
        >>> comparison = sp.compare([sp.evaluate(tasks, features, "ncc") for tasks in (random, biased)])
        >>> comparison
        <Comparison of ncc on dial; 5-way 5-shot: random, fewstab>
        >>> [gap.name for gap in comparison.gaps]
        ['random - fewstab']
        >>> comparison.estimates.column("quantity").unique().to_pylist()
        ['accuracy', 'gap', 'skill_lost']
    """

    level: float
    metric: Metric
    corrected: bool
    covers: tuple[Covers, ...]
    blocks: list[Block]
    notes: list[str] = field(default_factory=list)
    medium: str | None = None
    context: str = CONTEXT
    costs: Mapping[tuple[Design, str], Mapping[Classifier, AttributeCosts]] = field(default_factory=dict)

    @property
    def refused(self) -> dict[Covers, str]:
        """The reason of each interval that no classifier of any design could be given."""
        reasons = {name: [block.refused.get(name) for block in self.blocks] for name in self.covers}
        return {name: found[0] for name, found in reasons.items() if found[0] is not None and all(found)}

    @property
    def first_covers(self) -> Covers:
        """The first interval that some classifier could be given, which numbers are by where no other is named."""
        return next((name for name in self.covers if name not in self.refused), self.covers[0])

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
    def classifiers(self) -> list[Classifier]:
        """All classifiers, in the order of the results."""
        return list(dict.fromkeys(classifier for block in self.blocks for classifier in block.classifiers))

    @cached_property
    def encoders(self) -> list[str]:
        """The encoders, in the order of the results."""
        return list(dict.fromkeys(classifier.encoder for classifier in self.classifiers))

    @cached_property
    def methods(self) -> list[str]:
        """The methods, in the order of the results."""
        return list(dict.fromkeys(classifier.method for classifier in self.classifiers))

    @cached_property
    def all_rows(self) -> list[EstimateRow]:
        """Every number under every interval: what `estimates` has."""
        return [row for block in self.blocks for row in block_rows(block)]

    def rows(
        self, quantity: Quantity = "accuracy", metric: Metric | None = None, axis: Axis | None = None
    ) -> list[EstimateRow]:
        """The rows of one quantity, each by the first interval that could be given.

        Args:
            quantity: accuracies, or what is lost; accuracies on placebos are left out
            metric: None is the comparison's
            axis: what the tasks stress; None is all
        """
        by = metric or self.metric
        return [
            row
            for row in self.all_rows
            if row.is_first and (row.quantity, row.metric) == (quantity, by) and row.sampler != PLACEBO
            if axis is None or row.axis == axis
        ]

    def beside(
        self,
        row: EstimateRow,
        quantity: Quantity | None = None,
        metric: Metric | None = None,
        tasks: str | None = None,
    ) -> EstimateRow | None:
        """Another row of the same classifier and design, by the first interval that could be given.

        Args:
            row: where to start from
            quantity, metric: what the other row has; None is as in the row
            tasks: the label of its task set; None is the row's

        Returns:
            None if there is none. Its rank is under the first interval that tells classifiers apart.
        """
        place = (row.design, tasks or row.tasks, row.classifier, quantity or row.quantity, metric or row.metric)
        of_place = self._by_place.get(place, [])
        rank = next((one.rank for one in of_place if one.rank is not None), None)
        return next((replace(one, rank=rank) for one in of_place if one.is_first), None)

    def number(self, row: EstimateRow, quantity: Quantity, metric: Metric, tasks: str | None = None) -> Interval | None:
        """The number of another row, as `beside` finds it; None if there is none."""
        other = self.beside(row, quantity, metric, tasks)
        return None if other is None else other.interval

    @cached_property
    def _by_place(self) -> dict[tuple[object, ...], list[EstimateRow]]:
        """All rows by their design, task set, classifier, quantity and metric."""
        found: dict[tuple[object, ...], list[EstimateRow]] = {}
        for row in self.all_rows:
            found.setdefault((row.design, row.tasks, row.classifier, row.quantity, row.metric), []).append(row)
        return found

    @cached_property
    def data_sets(self) -> list[AcrossDataSets]:
        """Where there are several data sets: each kind of tasks and of what is lost, with its mean over them."""
        return list(across_data_sets(self.blocks, self.level, self.corrected))

    @cached_property
    def agreements(self) -> list[Agreement]:
        """Over all classifiers, for each design and task set but the reference."""
        return [one for block in self.blocks for one in _agreements(block)]

    @cached_property
    def encoder_names(self) -> dict[str, str]:
        """What people read in place of each encoder's spelling."""
        return short_encoder_names(self.encoders)

    def classifier_name(self, classifier: Classifier) -> str:
        """The method, after its encoder where the comparison has more than one: `lite0: ncc`."""
        several = len(self.encoders) > 1
        return f"{self.encoder_names[classifier.encoder]}: {classifier.method}" if several else classifier.method

    def classifier_title(self, classifier: Classifier) -> str:
        """The method and its encoder, as in a sentence: `ncc on lite0`."""
        return str(classifier._replace(encoder=self.encoder_names[classifier.encoder]))

    def pair_names(self, pair: Pair) -> tuple[str, str]:
        """The names of both classifiers of a pair."""
        return self.classifier_name(pair.a), self.classifier_name(pair.b)

    def design_name(self, design: Design) -> str:
        """E.g. `5-way 1-shot`, with the data set, the queries and the split where they tell designs apart."""
        return design_name(design, self.designs)

    def summary(self) -> list[str]:
        """Say what the classifiers lean on most, whom it hurts and which to take, in at most three plain sentences."""
        from shotproof.comparison.summary import summary

        return summary(self)

    def verdict(self) -> list[str]:
        """What was measured and what came out, in at most five sentences: nothing that an interval does not support."""
        from shotproof.comparison.sentences import headline

        return headline(self)

    def to_json(self) -> dict[str, Any]:
        """All tables as plain values: accuracies in percent, differences in points, null where there is no number."""
        from shotproof.comparison.comparison_tables import to_json

        return to_json(self)

    def to_csv(self) -> str:
        """All tables as CSV, each with a heading, an empty line between."""
        from shotproof.comparison.comparison_tables import to_csv

        return to_csv(self)

    def to_latex(self) -> str:
        """One table per design, by booktabs; in bold if none is conclusively better under the first interval."""
        from shotproof.comparison.latex import to_latex

        return to_latex(self)

    @property
    def estimates(self) -> pa.Table:
        """Every number: one row per classifier, task set, quantity, metric and interval (`comparison_tables`)."""
        from shotproof.comparison.comparison_tables import to_arrow

        return to_arrow(self, "estimates")

    @property
    def pairs(self) -> pa.Table:
        """Every difference of two classifiers, with the conclusion: one row per pair and what `estimates` is by."""
        from shotproof.comparison.comparison_tables import to_arrow

        return to_arrow(self, "pairs")

    def to_pandas(self, table: str = "estimates") -> pd.DataFrame:
        """A table as a data frame: accuracies in percent, differences in points.

        Args:
            table: `estimates` (one row per classifier, task set, quantity, metric and interval), `pairs` (one row per
                pair of classifiers, likewise), `triples` (direct and paired comparisons with and without replacement),
                `data_sets` (one row per data set, and means over them), `costs` (what each planted attribute costs each
                classifier that loses something), `seeds`, `detectors` or `agreements`

        Returns:
            The data frame; what does not exist, such as a refused interval, is null.

        Raises:
            UnknownName: there is no such table.
            MissingExtra: pandas is not installed.
        """
        from shotproof.comparison.comparison_tables import to_pandas

        return to_pandas(self, table)

    def to_html(self) -> str:
        """One HTML table per design: accuracies and gaps with half-widths, in bold as in `to_latex`."""
        from shotproof.comparison.wide import to_html

        return to_html(self)

    def plot(self, figure: str | None = None) -> Figure:
        """A figure by matplotlib.

        Args:
            figure: `gaps`, `scatter`, `intervals`, `pairs`, `tasks`, `seeds`, `heat` or `stages`; by default the gaps,
                or where there are none the intervals

        Returns:
            A matplotlib figure, which a notebook shows.

        Raises:
            UnknownName: there is no such figure.
            InputError: the comparison has nothing that the figure shows.
            MissingExtra: matplotlib is not installed.
        """
        from shotproof.comparison.plot import plot

        return plot(self, figure)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        on = "; ".join(
            f"{self.design_name(block.design)}: {', '.join(group.label for group in block.groups)}"
            for block in self.blocks
        )
        return f"<Comparison of {', '.join(self.methods)} on {', '.join(self.encoder_names.values())}; {on}>"


def _agreements(block: Block) -> list[Agreement]:
    found = []
    for loss in block.losses:
        sides = block.sides(loss)
        accuracy, worst = ([first.means[metric] for first, _ in sides] for metric in METRICS)
        biased = [second.means["wacc"] for _, second in sides]
        correlations = (rank_correlation(accuracy, biased), rank_correlation(worst, biased))
        drop = average_drop(worst, biased)
        found.append(Agreement(block.design, loss.reference, loss.label, len(sides), *correlations, drop))
    return found
