"""Rows of `estimates`: every number of a comparison, one row each. Tables, figures, pages and cards filter them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.results.origin import Design
from shotproof.stats.block import TITLES, Block, Group, Loss, Quantity
from shotproof.stats.intervals import Interval, IntervalName
from shotproof.stats.pairs import Conclusion
from shotproof.stats.ranks import RankRange
from shotproof.tasks.sampler import Axis


@dataclass(frozen=True)
class EstimateRow:
    """Number of a classifier on a task set, with its interval.

    tasks, sampler: label of the task set, and name of its sampler
    reference: label of the task set that it is compared with; None for an accuracy
    axis: what the tasks stress
    digest: digest of the task set; with several seeds, that of the first
    rank: rank by this metric and interval; None if it is not ranked
    conclusion: whether accuracy is lost (+), gained (-) or neither is conclusive (0), corrected for all losses of the
        comparison; None for numbers that no statement is about
    deviation: standard deviation over seeds, in points; None for a single seed
    chance: accuracy of guessing on the reference, in percent
    is_first: whether the interval is the first available one, which tables show
    """

    classifier: Classifier
    metric: Metric
    quantity: Quantity
    interval: Interval
    design: Design
    tasks: str
    sampler: str
    reference: str | None = None
    axis: Axis | None = None
    detector: str | None = None
    digest: str | None = None
    task_count: int = 0
    seeds: Sequence[int | None] = ()
    rank: RankRange | None = None
    conclusion: Conclusion | None = None
    deviation: float | None = None
    chance: float | None = None
    is_first: bool = True

    @property
    def title(self) -> str:
        """Return the task set with the quantity, e.g. `skill lost, random - fewstab`."""
        return f"{TITLES[self.quantity]}{self.tasks if self.reference is None else f'{self.reference} - {self.tasks}'}"


def block_rows(block: Block) -> Iterator[EstimateRow]:
    """Yield all numbers of a design: accuracies, then losses."""
    for group in block.groups:
        yield from group_rows(block.design, group)
    for loss in block.losses:
        digest = block.group(loss.label).digests[0]
        for group in loss.groups:
            yield from group_rows(block.design, group, loss, digest)


def group_rows(
    design: Design, group: Group, loss: Loss | None = None, digest: str | None = None
) -> Iterator[EstimateRow]:
    """Yield the numbers of one quantity on one task set.

    Args:
        design: design of the tasks
        group: measured numbers
        loss: loss that the group is part of; None for an accuracy
        digest: digest of the task set, if it is not that of the group
    """
    for row in group.rows:
        for metric in METRICS:
            first = row.first_interval_name(metric)
            for interval_name, interval in row.intervals[metric].items():
                yield EstimateRow(
                    classifier=row.classifier,
                    metric=metric,
                    quantity=group.quantity,
                    interval=interval,
                    design=design,
                    tasks=group.against or group.label,
                    sampler=group.sampler,
                    reference=group.label if group.against else None,
                    axis=loss.axis if loss else group.axis,
                    detector=group.detector,
                    digest=digest or (group.digests[0] if group.digests else None),
                    task_count=group.tasks,
                    seeds=group.seeds,
                    rank=row.ranks[metric][interval_name],
                    conclusion=_conclusion(loss, group, row.classifier, metric, interval_name),
                    deviation=row.spread(metric),
                    chance=loss.chance.get(metric) if loss else None,
                    is_first=interval_name == first,
                )


def _conclusion(
    loss: Loss | None, group: Group, classifier: Classifier, metric: Metric, interval_name: IntervalName
) -> Conclusion | None:
    if loss is None or group is not loss.lost or (metric, interval_name) not in loss.concluded:
        return None
    return loss.concluded[metric, interval_name][classifier].conclusion
