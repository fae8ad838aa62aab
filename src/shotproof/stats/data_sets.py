"""Several data sets side by side: their names, and means over them.

A mean over data sets is the mean of their means, each with the same weight, as in Hard-Meta-Dataset++ and *Oops, I
Sampled it Again*. The data sets are treated as fixed: the interval is valid for new tasks, images or classes of each,
not for other data sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from shotproof.results.evaluated import Classifier, Metric
from shotproof.results.origin import Design
from shotproof.stats.block import Block, Differences, Estimates, Group
from shotproof.stats.intervals import Estimate, IntervalName
from shotproof.stats.rows import classifier_rows, compared_pairs

Value = TypeVar("Value")
MEAN = "mean"  # label of the row below the data sets


@dataclass(frozen=True)
class AcrossDataSets:
    """Tasks of one sampler and size on several data sets, or the losses between two such.

    designs, groups: one per data set
    mean: the means over the data sets, for the classifiers that were evaluated on all of them
    """

    designs: list[Design]
    groups: list[Group]
    mean: Group

    @property
    def name(self) -> str:
        """Return the title with the task size, e.g. `random, 5-way 5-shot`."""
        return f"{self.mean.title}, {self.designs[0].shape}"

    @property
    def rows(self) -> list[tuple[str, Group]]:
        """Return each data set's name and group, with the mean last."""
        names = [design.data_set for design in self.designs]
        return [*zip(names, self.groups, strict=True), (f"{MEAN} of {len(names)}", self.mean)]


def across_data_sets(blocks: Sequence[Block], level: float, corrected: bool) -> Iterator[AcrossDataSets]:
    """Yield each kind of tasks, and of losses, that several data sets share, with its mean over them."""
    by_kind: dict[tuple[object, ...], dict[str | None, tuple[Design, Group]]] = {}
    for block in blocks:
        for group in [*block.groups, *block.lost]:
            design = block.design
            size = (design.way, design.shot, design.query, design.dial)
            by_catalog = by_kind.setdefault((group.quantity, group.label, group.against, *size), {})
            # If a data set has several splits, use the first.
            by_catalog.setdefault(design.catalog, (design, group))
    for by_catalog in by_kind.values():
        designs, groups = zip(*by_catalog.values(), strict=True)
        shared = [row.classifier for row in groups[0].rows if all(group.row(row.classifier) for group in groups)]
        if len(groups) > 1 and shared:
            yield AcrossDataSets(list(designs), list(groups), _mean_group(groups, shared, level, corrected))


def with_data_set_names(by_design: Mapping[Design, Value]) -> dict[Design, Value]:
    """Sort the designs, and give each data set a name that no other has.

    It is the catalog's name; data sets that share one, or have none, are numbered.
    """
    ordered = sorted(by_design, key=lambda design: design.order)
    catalogs: dict[str, list[str | None]] = {}
    for design in ordered:
        same_name = catalogs.setdefault(design.data_set, [])
        # Sounds mixed at several loudness levels are one data set.
        if design.dial is None and design.catalog not in same_name:
            same_name.append(design.catalog)
    has_several = len({design.catalog for design in ordered}) > 1

    def with_name(design: Design) -> Design:
        same_name = catalogs[design.data_set]
        number = same_name.index(design.catalog) + 1 if len(same_name) > 1 and design.dial is None else None
        if not design.data_set:
            return replace(design, data_set=f"data set {number or 1}") if has_several else design
        return design if number is None else replace(design, data_set=f"{design.data_set} ({number})")

    return {with_name(design): by_design[design] for design in ordered}


def _mean_group(groups: Sequence[Group], shared: Sequence[Classifier], level: float, corrected: bool) -> Group:
    """Average the groups of several data sets, for the classifiers that all of them have."""
    first = groups[0]
    rows_by_group = [group.rows_by_classifier for group in groups]
    estimates: Estimates = {
        (metric, interval_name): {
            classifier: Estimate.average(
                [group_rows[classifier].intervals[metric][interval_name].estimate for group_rows in rows_by_group]
            )
            for classifier in shared
        }
        for metric, intervals in first.rows[0].intervals.items()
        for interval_name in intervals
    }
    differences: Differences = {
        key: {
            (pair.a, pair.b): Estimate.average([_difference(group, key, pair.a, pair.b) for group in groups])
            for pair in pairs
            if {pair.a, pair.b} <= set(shared)
        }
        for key, pairs in first.pairs.items()
    }
    pairs = compared_pairs(estimates, differences, level, corrected)
    return Group(
        label=first.label,
        sampler=first.sampler,
        detector=first.detector,
        tasks=sum(group.tasks for group in groups),
        digests=[],
        seeds=[],
        against=first.against,
        paired=all(group.paired for group in groups),
        rows=classifier_rows(estimates, pairs, first.quantity, level),
        pairs=pairs,
        quantity=first.quantity,
    )


def _difference(group: Group, key: tuple[Metric, IntervalName], a: Classifier, b: Classifier) -> Estimate:
    """Return the difference of a pair, in this order."""
    pair = next(candidate for candidate in group.pairs[key] if {candidate.a, candidate.b} == {a, b})
    return (pair if pair.a == a else pair.turned()).interval.estimate
