"""The classifiers on the task sets of one design: means, intervals, ranks, pairs and gaps."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from shotproof.core.arrays import FloatArray
from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.results.origin import PLACEBO, RANDOM, Design
from shotproof.stats.intervals import Covers, Estimate, Interval
from shotproof.stats.pairs import Conclusion, Pair
from shotproof.stats.ranks import RankRange
from shotproof.stats.triples import Triples
from shotproof.tasks.sampler import Axis

# What a group has of each classifier: accuracies in percent; the gap between two task sets, that between their
# placebos, and how far the one exceeds the other, all in points; the share of the skill that is lost, in percent.
Quantity = Literal["accuracy", "gap", "placebo", "excess", "skill_lost"]

Estimates = dict[tuple[Metric, Covers], dict[Classifier, Estimate]]
Differences = dict[tuple[Metric, Covers], dict[tuple[Classifier, Classifier], Estimate]]
ByTask = Mapping[tuple[str, ...], FloatArray]  # values [tasks], by what the tasks are matched by

TITLES: dict[Quantity, str] = {
    **{"accuracy": "", "gap": "gap, ", "placebo": "gap of the placebo, ", "excess": "gap beyond the placebo, "},
    "skill_lost": "skill lost, ",
}


@dataclass(frozen=True)
class ClassifierRow:
    """One classifier on the tasks of a group: the mean of each metric, with its intervals and ranks.

    The interval `depletion` has a mean of its own, because it is on other tasks.

    means: NaN of a share of skill that no interval could be given
    ranks: None for gaps, for what has no number, and under an interval that no pair could be given
    seeds: the mean on each replicate, by seed; empty for what is not a mean or a gap
    """

    classifier: Classifier
    means: dict[Metric, float]
    intervals: dict[Metric, dict[Covers, Interval]]
    ranks: dict[Metric, dict[Covers, RankRange | None]]
    seeds: dict[Metric, dict[int | None, float]]

    def first(self, metric: Metric) -> Interval:
        """The first interval that could be given, or else the first with its reason."""
        return self.intervals[metric][self.first_covers(metric)]

    def first_covers(self, metric: Metric) -> Covers:
        """What the first interval that could be given covers, or else the first."""
        intervals = self.intervals[metric]
        return next((covers for covers, one in intervals.items() if not one.refused), next(iter(intervals)))

    def rank(self, metric: Metric) -> RankRange | None:
        """The rank under the first interval that tells classifiers apart."""
        return next((rank for rank in self.ranks[metric].values() if rank is not None), None)

    def spread(self, metric: Metric) -> float | None:
        """The standard deviation over seeds, in points; None for a single seed."""
        means = list(self.seeds[metric].values())
        return statistics.stdev(means) if len(means) > 1 else None


@dataclass(frozen=True)
class Group:
    """All classifiers on the tasks of one sampler or, where `against` is set, what they lose from a reference to it.

    quantity: what the rows have
    axis: what the tasks stress; None of a reference, and of a placebo
    label: the label of the tasks; where something is lost, that of the reference
    tasks: the number of tasks, over all seeds
    digests, seeds: one per replicate
    paired: for gaps, whether they are taken task by task
    pairs: all pairs of classifiers, by metric and interval
    triples: direct and paired comparisons with and without replacement, by metric; empty unless `sampler` and
        `depletion` were asked for and could be given
    values: the accuracies on each task, in percent; of what is lost, empty
    by_task: where pairs were left out, what they can be made from: of each classifier the values whose means add up to
        its own, apart for tasks that are not matched
    """

    label: str
    sampler: str
    detector: str | None
    tasks: int
    digests: list[str | None]
    seeds: list[int | None]
    against: str | None
    paired: bool
    rows: list[ClassifierRow]
    pairs: dict[tuple[Metric, Covers], list[Pair]]
    quantity: Quantity = "accuracy"
    triples: dict[Metric, Triples] = field(default_factory=dict)
    values: dict[Classifier, dict[Metric, FloatArray]] = field(default_factory=dict, compare=False, repr=False)
    by_task: dict[Metric, dict[Classifier, ByTask]] = field(default_factory=dict, compare=False, repr=False)
    axis: Axis | None = None

    @property
    def is_random(self) -> bool:
        """Return whether these are accuracies on random tasks with as many queries of each class."""
        return self.sampler == RANDOM and self.axis is None and self.against is None

    @property
    def name(self) -> str:
        """E.g. `random`, or for a gap `random - fewstab`."""
        return f"{self.label} - {self.against}" if self.against else self.label

    @property
    def title(self) -> str:
        """The name with the quantity, e.g. `skill lost, random - fewstab`."""
        return f"{TITLES[self.quantity]}{self.name}"

    def row(self, classifier: Classifier) -> ClassifierRow | None:
        """The row of a classifier, if it is there."""
        return self.rows_by_classifier.get(classifier)

    @cached_property
    def rows_by_classifier(self) -> dict[Classifier, ClassifierRow]:
        """The rows by their classifier."""
        return {row.classifier: row for row in self.rows}

    def conclusive(self, metric: Metric, covers: Covers) -> int:
        """The number of conclusive pairs."""
        return sum(pair.conclusion != "0" for pair in self.pairs[metric, covers])

    def signs(self, metric: Metric, covers: Covers) -> dict[tuple[Classifier, Classifier], Conclusion]:
        """The conclusion on each pair of classifiers, in both orders."""
        pairs = self.pairs.get((metric, covers), [])
        return {(pair.a, pair.b): pair.conclusion for one in pairs for pair in (one, one.turned())}

    def correlation(self, pair: Pair, metric: Metric) -> float:
        """Pearson's, between the accuracies of both classifiers of a pair on the same tasks; NaN where one is constant.

        Tasks that are hard for one are mostly hard for the other too, which is why paired comparisons tell more (*Oops,
        I Sampled it Again*, Fig. 1).
        """
        places, standardized = self._standardized[metric]
        if pair.a not in places:
            return math.nan
        return float(standardized[places[pair.a]] @ standardized[places[pair.b]])

    @cached_property
    def _standardized(self) -> dict[Metric, tuple[dict[Classifier, int], FloatArray]]:
        """By metric the row of each classifier, and rows whose products are correlations; of a constant one NaN."""
        places = {classifier: place for place, classifier in enumerate(self.values)}
        found: dict[Metric, tuple[dict[Classifier, int], FloatArray]] = {}
        for metric in METRICS:
            rows = np.array([values[metric] for values in self.values.values()])
            if len(rows):
                constant = np.ptp(rows, axis=1) == 0
                rows = rows - rows.mean(axis=1, keepdims=True)
                rows[constant] = np.nan
                rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            found[metric] = places, rows
        return found


@dataclass(frozen=True)
class DetectorAgreement:
    """Two detectors' attributes in the same sampler: do they rank classifiers alike (FewSTAB, Tables 6, S8 and S11)?

    labels: of the two groups
    correlation: Spearman's, between the two orders of wAcc; NaN where it cannot be computed
    accuracy: the detection accuracy of each with the other taken for true (Eq. 9), in percent; None where the
        attributes were not given
    """

    sampler: str
    labels: tuple[str, str]
    detectors: tuple[str, str]
    classifiers: int
    correlation: float
    accuracy: tuple[float, float] | None = None

    @property
    def is_told(self) -> bool:
        """Whether anything is known of it: there may be too few classifiers for a correlation, and no attributes."""
        return not math.isnan(self.correlation) or self.accuracy is not None


NOTHING_TO_LOSE = "nothing to lose"  # how the reason begins why there is no share of skill


@dataclass(frozen=True)
class Concluded:
    """Whether a classifier loses something (+), gains (-) or neither can be told (0).

    interval: of what it loses, in points, less what guessing loses
    conclusion: corrected for all classifiers and task sets of the comparison
    """

    interval: Interval
    conclusion: Conclusion = "0"


@dataclass(frozen=True)
class Loss:
    """What classifiers lose from a reference to the tasks of another set, in points and as a share of their skill.

    A placebo has the attributes or contexts shuffled within classes; the excess is the gap minus the placebo's gap,
    which is what leaning on them means. The skill is the accuracy above chance on the reference; its lost share is the
    excess, or without a placebo the gap, divided by it.

    axis: what the tasks stress
    chance: what guessing gives on the reference, in percent
    is_shuffled: whether intervals of what is lost are as wide as words that mean nothing make them
    concluded: what each classifier loses, by metric and interval
    """

    axis: Axis
    gap: Group
    placebo: Group | None
    excess: Group | None
    skill: Group
    chance: dict[Metric, float]
    concluded: dict[tuple[Metric, Covers], dict[Classifier, Concluded]]
    is_shuffled: bool = False

    @property
    def reference(self) -> str:
        """The label of the reference."""
        return self.gap.label

    @property
    def label(self) -> str:
        """The label of the tasks that stress."""
        return str(self.gap.against)

    @property
    def lost(self) -> Group:
        """What statements are about, in points: the excess, or without a placebo the gap."""
        return self.excess or self.gap

    @property
    def groups(self) -> list[Group]:
        """All that is there, the gap first."""
        return [one for one in (self.gap, self.placebo, self.excess, self.skill) if one is not None]


@dataclass(frozen=True)
class Block:
    """One design: its groups, what is lost between them, and why intervals could be given to no classifier.

    placebos: the label of each task set's placebo, by the set's
    """

    design: Design
    groups: list[Group]
    losses: list[Loss]
    placebos: dict[str, str] = field(default_factory=dict)
    refused: dict[Covers, str] = field(default_factory=dict)
    detectors: list[DetectorAgreement] = field(default_factory=list)

    @property
    def gaps(self) -> list[Group]:
        """The gaps, in points."""
        return [loss.gap for loss in self.losses]

    @property
    def lost(self) -> list[Group]:
        """All that is lost between groups, in points and in skill."""
        return [group for loss in self.losses for group in loss.groups]

    @property
    def measured(self) -> list[Group]:
        """The groups that are no placebos."""
        return [group for group in self.groups if group.sampler != PLACEBO]

    @property
    def classifiers(self) -> list[Classifier]:
        """All classifiers, in the order of the results."""
        return list(dict.fromkeys(row.classifier for group in self.groups for row in group.rows))

    def group(self, label: str) -> Group:
        """The group with this label."""
        return next(group for group in self.groups if group.label == label)

    def sides(self, loss: Loss) -> list[tuple[ClassifierRow, ClassifierRow]]:
        """For each classifier of a loss, its row on the reference and its row on the other tasks."""
        reference, other = self.group(loss.reference), self.group(loss.label)
        both = [[group.row(row.classifier) for group in (reference, other)] for row in loss.gap.rows]
        return [(first, second) for first, second in both if first and second]
