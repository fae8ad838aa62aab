"""Classifiers on the task sets of one design: means, intervals, ranks, pairs and gaps."""

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
from shotproof.stats.intervals import Estimate, Interval, IntervalName
from shotproof.stats.pairs import Conclusion, Pair
from shotproof.stats.ranks import RankRange
from shotproof.stats.triples import Triples
from shotproof.tasks.sampler import Axis

# Accuracies, in percent; the gap between two task sets, the gap between their placebos, and the first minus the second,
# all in points; the share of the skill that is lost, in percent.
Quantity = Literal["accuracy", "gap", "placebo", "excess", "skill_lost"]

Estimates = dict[tuple[Metric, IntervalName], dict[Classifier, Estimate]]
Differences = dict[tuple[Metric, IntervalName], dict[tuple[Classifier, Classifier], Estimate]]
ByTask = Mapping[tuple[str, ...], FloatArray]  # values [tasks], by the keys that match tasks

TITLES: dict[Quantity, str] = {
    **{"accuracy": "", "gap": "gap, ", "placebo": "gap of the placebo, ", "excess": "gap beyond the placebo, "},
    "skill_lost": "skill lost, ",
}


@dataclass(frozen=True)
class ClassifierRow:
    """Means of one classifier on the tasks of a group, by metric, with their intervals and ranks.

    The interval `depletion` has a different mean, because it is on different tasks.

    means: NaN for a share of skill that has no interval
    ranks: None for gaps, if there is no mean, and under an interval that no pair has
    seeds: the mean on each replicate, by seed; empty if the quantity is neither a mean nor a gap
    """

    classifier: Classifier
    means: dict[Metric, float]
    intervals: dict[Metric, dict[IntervalName, Interval]]
    ranks: dict[Metric, dict[IntervalName, RankRange | None]]
    seeds: dict[Metric, dict[int | None, float]]

    def first(self, metric: Metric) -> Interval:
        """Return the first interval that could be computed, or else the first with its reason."""
        return self.intervals[metric][self.first_interval_name(metric)]

    def first_interval_name(self, metric: Metric) -> IntervalName:
        """Return the name of the first interval that could be computed, or else the first name."""
        intervals = self.intervals[metric]
        return next(
            (interval_name for interval_name, interval in intervals.items() if not interval.refused),
            next(iter(intervals)),
        )

    def rank(self, metric: Metric) -> RankRange | None:
        """Return the rank under the first interval that has one; None if no interval can rank the classifier."""
        return next((rank for rank in self.ranks[metric].values() if rank is not None), None)

    def spread(self, metric: Metric) -> float | None:
        """Compute the standard deviation over seeds, in points; None for a single seed."""
        means = list(self.seeds[metric].values())
        return statistics.stdev(means) if len(means) > 1 else None


@dataclass(frozen=True)
class Group:
    """All classifiers on the tasks of one sampler or, if `against` is set, their losses from a reference to it.

    quantity: what the rows contain
    axis: what the tasks stress; None for a reference or a placebo
    label: the label of the tasks; for losses, the label of the reference
    tasks: the number of tasks, over all seeds
    digests, seeds: one per replicate
    paired: for gaps, whether they are computed task by task
    pairs: all pairs of classifiers, by metric and interval
    triples: direct and paired comparisons with and without replacement, by metric; empty unless `sampler` and
        `depletion` were requested and could be computed
    values: the accuracies on each task, in percent; empty for losses
    by_task: if pairs were left out, the values to compute them from: for each classifier, values whose means add
        up to its mean, separately for tasks that are not matched
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
    pairs: dict[tuple[Metric, IntervalName], list[Pair]]
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
        """Return the label, e.g. `random`, or for a gap `random - fewstab`."""
        return f"{self.label} - {self.against}" if self.against else self.label

    @property
    def title(self) -> str:
        """Return the name with the quantity, e.g. `skill lost, random - fewstab`."""
        return f"{TITLES[self.quantity]}{self.name}"

    def row(self, classifier: Classifier) -> ClassifierRow | None:
        """Return the row of a classifier; None if it has none."""
        return self.rows_by_classifier.get(classifier)

    @cached_property
    def rows_by_classifier(self) -> dict[Classifier, ClassifierRow]:
        """Index the rows by classifier."""
        return {row.classifier: row for row in self.rows}

    def conclusive(self, metric: Metric, interval_name: IntervalName) -> int:
        """Count the conclusive pairs."""
        return sum(pair.conclusion != "0" for pair in self.pairs[metric, interval_name])

    def signs(self, metric: Metric, interval_name: IntervalName) -> dict[tuple[Classifier, Classifier], Conclusion]:
        """Return the conclusion on each pair of classifiers, in both orders."""
        pairs = self.pairs.get((metric, interval_name), [])
        return {
            (ordered_pair.a, ordered_pair.b): ordered_pair.conclusion
            for pair in pairs
            for ordered_pair in (pair, pair.turned())
        }

    def correlation(self, pair: Pair, metric: Metric) -> float:
        """Compute Pearson's correlation between the accuracies of a pair on the same tasks; NaN if one is constant.

        Tasks that are hard for one classifier are mostly hard for the other too, which is why paired comparisons have
        more power (*Oops, I Sampled it Again*, Fig. 1).
        """
        indices, standardized = self._standardized[metric]
        if pair.a not in indices:
            return math.nan
        return float(standardized[indices[pair.a]] @ standardized[indices[pair.b]])

    @cached_property
    def _standardized(self) -> dict[Metric, tuple[dict[Classifier, int], FloatArray]]:
        """Compute by metric each classifier's index, and rows whose products are correlations; NaN if constant."""
        indices = {classifier: index for index, classifier in enumerate(self.values)}
        by_metric: dict[Metric, tuple[dict[Classifier, int], FloatArray]] = {}
        for metric in METRICS:
            rows = np.array([values[metric] for values in self.values.values()])
            if len(rows):
                is_constant = np.ptp(rows, axis=1) == 0
                rows = rows - rows.mean(axis=1, keepdims=True)
                rows[is_constant] = np.nan
                rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            by_metric[metric] = indices, rows
        return by_metric


@dataclass(frozen=True)
class DetectorAgreement:
    """Agreement of two detectors, with the same sampler, on the ranking of classifiers (FewSTAB, Tables 6, S8, S11).

    labels: the labels of the two groups
    correlation: Spearman's correlation between the two orders of wAcc; NaN if it cannot be computed
    accuracy: the detection accuracy of each detector with the other as ground truth (Eq. 9), in percent; None
        without attributes
    """

    sampler: str
    labels: tuple[str, str]
    detectors: tuple[str, str]
    classifiers: int
    correlation: float
    accuracy: tuple[float, float] | None = None

    @property
    def has_result(self) -> bool:
        """Return whether there is a correlation (it needs enough classifiers) or a detection accuracy."""
        return not math.isnan(self.correlation) or self.accuracy is not None


NOTHING_TO_LOSE = "nothing to lose"  # start of the reason if there is no share of skill


@dataclass(frozen=True)
class Concluded:
    """Conclusion on whether a classifier loses accuracy (+), gains (-) or neither is shown (0).

    interval: its loss in points, minus the loss of guessing
    conclusion: corrected for all classifiers and task sets of the comparison
    """

    interval: Interval
    conclusion: Conclusion = "0"


@dataclass(frozen=True)
class Loss:
    """Losses of classifiers on stressed tasks, compared with a reference, in points and as a share of their skill.

    A placebo has the attributes or contexts shuffled within classes. The excess is the gap minus the placebo's gap:
    it shows how much a classifier relies on them. The skill is the accuracy above chance on the reference; its lost
    share is the excess (without a placebo, the gap) divided by the skill.

    axis: what the tasks stress
    chance: the accuracy of guessing on the reference, in percent
    is_shuffled: whether the intervals are at least as wide as the null distribution of shuffled words
    concluded: the loss of each classifier, by metric and interval
    """

    axis: Axis
    gap: Group
    placebo: Group | None
    excess: Group | None
    skill: Group
    chance: dict[Metric, float]
    concluded: dict[tuple[Metric, IntervalName], dict[Classifier, Concluded]]
    is_shuffled: bool = False

    @property
    def reference(self) -> str:
        """Return the label of the reference."""
        return self.gap.label

    @property
    def label(self) -> str:
        """Return the label of the stressed tasks."""
        return str(self.gap.against)

    @property
    def lost(self) -> Group:
        """Return the group that statements are about, in points: the excess, or without a placebo the gap."""
        return self.excess or self.gap

    @property
    def groups(self) -> list[Group]:
        """Return all groups that exist, the gap first."""
        return [group for group in (self.gap, self.placebo, self.excess, self.skill) if group is not None]


@dataclass(frozen=True)
class Block:
    """Results of one design: its groups, the losses between them, and intervals that no classifier could have.

    placebos: the label of each task set's placebo, by the label of the set
    refused: the reason, by interval
    """

    design: Design
    groups: list[Group]
    losses: list[Loss]
    placebos: dict[str, str] = field(default_factory=dict)
    refused: dict[IntervalName, str] = field(default_factory=dict)
    detectors: list[DetectorAgreement] = field(default_factory=list)

    @property
    def gaps(self) -> list[Group]:
        """Return the gaps, in points."""
        return [loss.gap for loss in self.losses]

    @property
    def lost(self) -> list[Group]:
        """Return the groups of all losses, in points and in skill."""
        return [group for loss in self.losses for group in loss.groups]

    @property
    def measured(self) -> list[Group]:
        """Return the groups that are not placebos."""
        return [group for group in self.groups if group.sampler != PLACEBO]

    @property
    def classifiers(self) -> list[Classifier]:
        """Return all classifiers, in the order of the results."""
        return list(dict.fromkeys(row.classifier for group in self.groups for row in group.rows))

    def group(self, label: str) -> Group:
        """Return the group with this label."""
        return next(group for group in self.groups if group.label == label)

    def sides(self, loss: Loss) -> list[tuple[ClassifierRow, ClassifierRow]]:
        """Return the rows of each classifier of a loss: on the reference, and on the stressed tasks."""
        reference, stressed = self.group(loss.reference), self.group(loss.label)
        rows = [[group.row(row.classifier) for group in (reference, stressed)] for row in loss.gap.rows]
        return [(reference_row, stressed_row) for reference_row, stressed_row in rows if reference_row and stressed_row]
