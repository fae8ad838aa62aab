"""Several data sets side by side: what each is called, and means over them.

A mean over data sets is of their means, each with the same weight, as Hard-Meta-Dataset++ and *Oops, I Sampled it
Again* have it. The data sets are taken as they are: the interval says what new tasks, images or classes of each would
change, not what other data sets would.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from shotproof.results.evaluated import Classifier, Metric
from shotproof.results.origin import Design
from shotproof.stats.block import Block, Differences, Estimates, Group
from shotproof.stats.intervals import Covers, Estimate
from shotproof.stats.rows import classifier_rows, compared_pairs

Value = TypeVar("Value")
MEAN = "mean"  # what the row below the data sets is called


@dataclass(frozen=True)
class AcrossDataSets:
    """Tasks of one sampler and size on several data sets, or what is lost between two such.

    designs, groups: one per data set
    mean: the means over the data sets, of the classifiers that were evaluated on all of them
    """

    designs: list[Design]
    groups: list[Group]
    mean: Group

    @property
    def name(self) -> str:
        """E.g. `random, 5-way 5-shot`."""
        return f"{self.mean.title}, {self.designs[0].shape}"

    @property
    def rows(self) -> list[tuple[str, Group]]:
        """Each data set by its name, and the mean last."""
        names = [design.data_set for design in self.designs]
        return [*zip(names, self.groups, strict=True), (f"{MEAN} of {len(names)}", self.mean)]


def across_data_sets(blocks: Sequence[Block], level: float, corrected: bool) -> Iterator[AcrossDataSets]:
    """Every kind of tasks, and of what is lost, that more than one data set has, with its mean over these."""
    found: dict[tuple[object, ...], dict[str | None, tuple[Design, Group]]] = {}
    for block in blocks:
        for group in [*block.groups, *block.lost]:
            design = block.design
            size = (design.way, design.shot, design.query, design.dial)
            of_kind = found.setdefault((group.quantity, group.label, group.against, *size), {})
            # Of several splits of one data set, the first.
            of_kind.setdefault(design.catalog, (design, group))
    for of_kind in found.values():
        designs, groups = zip(*of_kind.values(), strict=True)
        shared = [row.classifier for row in groups[0].rows if all(group.row(row.classifier) for group in groups)]
        if len(groups) > 1 and shared:
            yield AcrossDataSets(list(designs), list(groups), _mean_group(groups, shared, level, corrected))


def with_data_set_names(given: Mapping[Design, Value]) -> dict[Design, Value]:
    """The designs in order, each with a name that is that of its data set alone.

    It is the catalog's name; data sets that share one, or have none, are numbered.
    """
    ordered = sorted(given, key=lambda design: design.order)
    catalogs: dict[str, list[str | None]] = {}
    for design in ordered:
        of_name = catalogs.setdefault(design.data_set, [])
        # Sounds that are mixed at several loudnesses are one data set.
        if design.dial is None and design.catalog not in of_name:
            of_name.append(design.catalog)
    several = len({design.catalog for design in ordered}) > 1

    def named(design: Design) -> Design:
        of_name = catalogs[design.data_set]
        number = of_name.index(design.catalog) + 1 if len(of_name) > 1 and design.dial is None else None
        if not design.data_set:
            return replace(design, data_set=f"data set {number or 1}") if several else design
        return design if number is None else replace(design, data_set=f"{design.data_set} ({number})")

    return {named(design): given[design] for design in ordered}


def _mean_group(groups: Sequence[Group], shared: Sequence[Classifier], level: float, corrected: bool) -> Group:
    first = groups[0]
    rows = [group.rows_by_classifier for group in groups]
    estimates: Estimates = {
        (metric, covers): {
            one: Estimate.average([of_group[one].intervals[metric][covers].estimate for of_group in rows])
            for one in shared
        }
        for metric, of_metric in first.rows[0].intervals.items()
        for covers in of_metric
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


def _difference(group: Group, key: tuple[Metric, Covers], a: Classifier, b: Classifier) -> Estimate:
    """The difference of a pair, whichever of the two a data set's results have first."""
    pair = next(one for one in group.pairs[key] if {one.a, one.b} == {a, b})
    return (pair if pair.a == a else pair.turned()).interval.estimate
