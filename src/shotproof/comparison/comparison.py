"""Comparison of classifiers on task sets, in points, under every requested interval.

`compare_sets` makes it; the command line prints it, pages draw it, and the modules beside this one export it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shotproof.comparison.estimate_rows import EstimateRow, block_rows
from shotproof.results.applied_change import AppliedChange
from shotproof.results.encoder_names import short_encoder_names
from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.results.metrics import average_drop, rank_correlation
from shotproof.results.origin import PLACEBO, Design, design_name
from shotproof.stats.block import Block, Group, Quantity
from shotproof.stats.costs import AttributeCosts
from shotproof.stats.data_sets import AcrossDataSets, across_data_sets
from shotproof.stats.intervals import Interval, IntervalName
from shotproof.stats.pairs import Pair
from shotproof.tasks.sampler import Axis

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.figure import Figure


CONTEXT = "context"  # name of the contexts if it does not come from a column


@dataclass(frozen=True)
class Agreement:
    """Agreement between the reference and other tasks, over all classifiers.

    Spearman's correlations are NaN if they cannot be computed; `average_drop` is the mean gap in wAcc, in points.
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

    level: level of the intervals
    metric: metric of ranks and printed pairs
    corrected: whether Holm's correction for the number of pairs was applied
    interval_names: names of the intervals; tables show the first
    blocks: one per design
    notes: what readers need to know about the intervals, and about identical task sets
    medium: what the items are, `image` or `sound`; None if unknown, or both
    context: name of the contexts, from the catalog's column
    costs: cost of each planted attribute or context, by design and label of the task set, and by classifier
    changes: what is changed in the items of a task set, by design and label of the set

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
    interval_names: tuple[IntervalName, ...]
    blocks: list[Block]
    notes: list[str] = field(default_factory=list)
    medium: str | None = None
    context: str = CONTEXT
    costs: Mapping[tuple[Design, str], Mapping[Classifier, AttributeCosts]] = field(default_factory=dict)
    changes: Mapping[tuple[Design, str], AppliedChange] = field(default_factory=dict)

    @property
    def refused(self) -> dict[IntervalName, str]:
        """Return the reason for each interval that is not available for any classifier of any design."""
        reasons = {name: [block.refused.get(name) for block in self.blocks] for name in self.interval_names}
        return {
            name: of_blocks[0] for name, of_blocks in reasons.items() if of_blocks[0] is not None and all(of_blocks)
        }

    @property
    def first_interval_name(self) -> IntervalName:
        """Return the first interval that is available for any classifier, the default of all numbers."""
        return next((name for name in self.interval_names if name not in self.refused), self.interval_names[0])

    @property
    def groups(self) -> list[Group]:
        """Return the groups of all designs."""
        return [group for block in self.blocks for group in block.groups]

    @property
    def gaps(self) -> list[Group]:
        """Return the gaps of all designs."""
        return [gap for block in self.blocks for gap in block.gaps]

    @cached_property
    def designs(self) -> list[Design]:
        """Return the designs, by data set, smallest first."""
        return [block.design for block in self.blocks]

    @cached_property
    def classifiers(self) -> list[Classifier]:
        """Return all classifiers, in the order of the results."""
        return list(dict.fromkeys(classifier for block in self.blocks for classifier in block.classifiers))

    @cached_property
    def encoders(self) -> list[str]:
        """Return the encoders, in the order of the results."""
        return list(dict.fromkeys(classifier.encoder for classifier in self.classifiers))

    @cached_property
    def methods(self) -> list[str]:
        """Return the methods, in the order of the results."""
        return list(dict.fromkeys(classifier.method for classifier in self.classifiers))

    @cached_property
    def all_rows(self) -> list[EstimateRow]:
        """Return every number under every interval, the rows of `estimates`."""
        return [row for block in self.blocks for row in block_rows(block)]

    def rows(
        self, quantity: Quantity = "accuracy", metric: Metric | None = None, axis: Axis | None = None
    ) -> list[EstimateRow]:
        """Select the rows of one quantity, each under the first available interval.

        Args:
            quantity: accuracies, or a kind of loss; accuracies on placebos are left out
            metric: None for that of the comparison
            axis: what the tasks stress; None for all
        """
        by_metric = metric or self.metric
        return [
            row
            for row in self.all_rows
            if row.is_first and (row.quantity, row.metric) == (quantity, by_metric) and row.sampler != PLACEBO
            if axis is None or row.axis == axis
        ]

    def matching_row(
        self,
        row: EstimateRow,
        quantity: Quantity | None = None,
        metric: Metric | None = None,
        tasks: str | None = None,
    ) -> EstimateRow | None:
        """Find another row of the same classifier and design, under the first available interval.

        Args:
            row: row to start from
            quantity, metric: quantity and metric of the other row; None for those of the row
            tasks: label of its task set; None for that of the row

        Returns:
            The row, with its rank under the first interval that ranks classifiers; None if there is no such row.
        """
        key = (row.design, tasks or row.tasks, row.classifier, quantity or row.quantity, metric or row.metric)
        matches = self._rows_by_key.get(key, [])
        rank = next((match.rank for match in matches if match.rank is not None), None)
        return next((replace(match, rank=rank) for match in matches if match.is_first), None)

    def number(self, row: EstimateRow, quantity: Quantity, metric: Metric, tasks: str | None = None) -> Interval | None:
        """Return the number of the row that `matching_row` finds; None if there is none."""
        other = self.matching_row(row, quantity, metric, tasks)
        return None if other is None else other.interval

    @cached_property
    def _rows_by_key(self) -> dict[tuple[object, ...], list[EstimateRow]]:
        """Return all rows by their design, task set, classifier, quantity and metric."""
        rows: dict[tuple[object, ...], list[EstimateRow]] = {}
        for row in self.all_rows:
            rows.setdefault((row.design, row.tasks, row.classifier, row.quantity, row.metric), []).append(row)
        return rows

    @cached_property
    def data_sets(self) -> list[AcrossDataSets]:
        """Return each kind of tasks and of loss with its mean over data sets; empty if there is a single data set."""
        return list(across_data_sets(self.blocks, self.level, self.corrected))

    @cached_property
    def agreements(self) -> list[Agreement]:
        """Return the agreement with the reference over all classifiers, for each design and other task set."""
        return [agreement for block in self.blocks for agreement in _agreements(block)]

    @cached_property
    def encoder_names(self) -> dict[str, str]:
        """Return the display name of each encoder spelling."""
        return short_encoder_names(self.encoders)

    def classifier_name(self, classifier: Classifier) -> str:
        """Return the method, after its encoder if the comparison has more than one: `lite0: ncc`."""
        several = len(self.encoders) > 1
        return f"{self.encoder_names[classifier.encoder]}: {classifier.method}" if several else classifier.method

    def classifier_title(self, classifier: Classifier) -> str:
        """Return the method and its encoder, as in a sentence: `ncc on lite0`."""
        return str(classifier._replace(encoder=self.encoder_names[classifier.encoder]))

    def pair_names(self, pair: Pair) -> tuple[str, str]:
        """Return the names of both classifiers of a pair."""
        return self.classifier_name(pair.a), self.classifier_name(pair.b)

    def design_name(self, design: Design) -> str:
        """Return e.g. `5-way 1-shot`, with the data set, queries and split if designs differ in them."""
        return design_name(design, self.designs)

    def summary(self) -> list[str]:
        """Say what the classifiers rely on most, what it costs and which to choose, in at most three sentences."""
        from shotproof.comparison.summary import summary

        return summary(self)

    def verdict(self) -> list[str]:
        """Report what was measured and found, in at most five statements, each supported by an interval."""
        from shotproof.comparison.sentences import headline

        return headline(self)

    def to_json(self) -> dict[str, Any]:
        """Return all tables as plain values: accuracies in percent, differences in points, null if missing."""
        from shotproof.comparison.comparison_tables import to_json

        return to_json(self)

    def to_csv(self) -> str:
        """Write all tables as CSV, each with a heading, with an empty line between."""
        from shotproof.comparison.comparison_tables import to_csv

        return to_csv(self)

    def to_latex(self) -> str:
        """Write one booktabs table per design, in bold what no other classifier conclusively beats."""
        from shotproof.comparison.latex import to_latex

        return to_latex(self)

    @property
    def estimates(self) -> pa.Table:
        """Return every number: a row per classifier, task set, quantity, metric and interval (`comparison_tables`)."""
        from shotproof.comparison.comparison_tables import to_arrow

        return to_arrow(self, "estimates")

    @property
    def pairs(self) -> pa.Table:
        """Return every difference of two classifiers with its conclusion: a row per pair, otherwise as `estimates`."""
        from shotproof.comparison.comparison_tables import to_arrow

        return to_arrow(self, "pairs")

    def to_pandas(self, table: str = "estimates") -> pd.DataFrame:
        """Return a table as a data frame: accuracies in percent, differences in points.

        Args:
            table: `estimates` (one row per classifier, task set, quantity, metric and interval), `pairs` (one row per
                pair of classifiers, likewise), `triples` (direct and paired comparisons with and without replacement),
                `data_sets` (one row per data set, and means over them), `costs` (cost of each planted attribute for
                each classifier that loses accuracy), `seeds`, `detectors` or `agreements`

        Returns:
            The data frame; missing values, such as an interval that is not available, are null.

        Raises:
            UnknownName: if there is no such table.
            MissingExtra: if pandas is not installed.
        """
        from shotproof.comparison.comparison_tables import to_pandas

        return to_pandas(self, table)

    def to_html(self) -> str:
        """Write one HTML table per design: accuracies and gaps with half-widths, in bold as in `to_latex`."""
        from shotproof.comparison.wide import to_html

        return to_html(self)

    def plot(self, figure: str | None = None) -> Figure:
        """Draw a matplotlib figure.

        Args:
            figure: `gaps`, `scatter`, `intervals`, `pairs`, `tasks`, `seeds`, `heat` or `stages`; by default the gaps,
                or the intervals if there are no gaps

        Returns:
            A matplotlib figure, which a notebook displays.

        Raises:
            UnknownName: if there is no such figure.
            InputError: if the comparison has nothing to show in the figure.
            MissingExtra: if matplotlib is not installed.
        """
        from shotproof.comparison.plot import plot

        return plot(self, figure)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        designs = "; ".join(
            f"{self.design_name(block.design)}: {', '.join(group.label for group in block.groups)}"
            for block in self.blocks
        )
        return f"<Comparison of {', '.join(self.methods)} on {', '.join(self.encoder_names.values())}; {designs}>"


def _agreements(block: Block) -> list[Agreement]:
    agreements = []
    for loss in block.losses:
        sides = block.sides(loss)
        accuracy, worst = ([reference.means[metric] for reference, _ in sides] for metric in METRICS)
        biased = [stressed.means["wacc"] for _, stressed in sides]
        correlations = (rank_correlation(accuracy, biased), rank_correlation(worst, biased))
        drop = average_drop(worst, biased)
        agreements.append(Agreement(block.design, loss.reference, loss.label, len(sides), *correlations, drop))
    return agreements
