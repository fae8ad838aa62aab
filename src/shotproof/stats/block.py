"""The classifiers on the task sets of one design: means, intervals, ranks, pairs and gaps."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from shotproof.evaluation.evaluated import Classifier, Metric
from shotproof.evaluation.origin import Design
from shotproof.stats.intervals import Covers, Interval
from shotproof.stats.pairs import Pair


@dataclass(frozen=True)
class ClassifierRow:
    """One classifier on the tasks of a group: the mean of each metric, with its intervals and ranks.

    The interval `depletion` has a mean of its own, because it is on other tasks.

    ranks: None where the interval is refused, and for gaps
    seeds: the mean on each replicate, by seed
    """

    classifier: Classifier
    means: dict[Metric, float]
    intervals: dict[Metric, dict[Covers, Interval]]
    ranks: dict[Metric, dict[Covers, int | None]]
    seeds: dict[Metric, dict[int | None, float]]

    def rank(self, metric: Metric) -> int | None:
        """The rank under the first interval that could be given."""
        return next((rank for rank in self.ranks[metric].values() if rank is not None), None)

    def spread(self, metric: Metric) -> float | None:
        """The standard deviation over seeds, in points; None for a single seed."""
        means = list(self.seeds[metric].values())
        return statistics.stdev(means) if len(means) > 1 else None


@dataclass(frozen=True)
class Group:
    """All classifiers on the tasks of one sampler or, where `against` is set, their gaps: the reference minus it.

    label: the label of the tasks; for gaps, that of the reference
    tasks: the number of tasks, over all seeds
    digests, seeds: one per replicate
    paired: for gaps, whether they are taken task by task
    pairs: all pairs of classifiers, by metric and interval
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

    @property
    def name(self) -> str:
        """E.g. `random`, or for a gap `random - fewstab`."""
        return f"{self.label} - {self.against}" if self.against else self.label

    def row(self, classifier: Classifier) -> ClassifierRow | None:
        """The row of a classifier, if it is there."""
        return next((row for row in self.rows if row.classifier == classifier), None)

    def conclusive(self, metric: Metric, covers: Covers) -> int:
        """The number of conclusive pairs."""
        return sum(pair.conclusion != "0" for pair in self.pairs[metric, covers])


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


@dataclass(frozen=True)
class Block:
    """One design: its groups, the gaps from its reference, and why intervals could be given to no classifier."""

    design: Design
    groups: list[Group]
    gaps: list[Group]
    reference: Group | None
    refused: dict[Covers, str] = field(default_factory=dict)
    detectors: list[DetectorAgreement] = field(default_factory=list)

    @property
    def classifiers(self) -> list[Classifier]:
        """All classifiers, in the order of the results."""
        return list(dict.fromkeys(row.classifier for group in self.groups for row in group.rows))

    def sides(self, gap: Group) -> list[tuple[ClassifierRow, ClassifierRow]]:
        """For each classifier of a gap, its row on the reference and its row on the other tasks."""
        other = next(group for group in self.groups if group.label == gap.against)
        both = [[group and group.row(row.classifier) for group in (self.reference, other)] for row in gap.rows]
        return [(first, second) for first, second in both if first and second]
