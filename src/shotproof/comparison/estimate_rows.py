"""The rows of `estimates`: every number of a comparison, one row each. Tables, figures, pages and cards filter them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.results.origin import Design
from shotproof.stats.block import TITLES, Block, Group, Loss, Quantity
from shotproof.stats.intervals import Covers, Interval
from shotproof.stats.pairs import Conclusion
from shotproof.stats.ranks import RankRange
from shotproof.tasks.sampler import Axis


@dataclass(frozen=True)
class EstimateRow:
    """One number: of which classifier, what, on which tasks, and its interval.

    tasks, sampler: the label of the task set, and its sampler's name
    reference: the label of the set that it is measured against; None of an accuracy
    axis: what the tasks stress
    digest: of the task set; of several seeds, that of the first
    rank: by this metric and interval; None of what is not ranked
    conclusion: whether something is lost (+), gained (-) or neither can be told (0), corrected for all losses of the
        comparison; None of what statements are not about
    deviation: over seeds, in points; None of a single seed
    chance: what guessing gives on the reference, in percent
    is_first: whether the interval is the first that could be given, which tables show
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
        """The task set with the quantity, e.g. `skill lost, random - fewstab`."""
        return f"{TITLES[self.quantity]}{self.tasks if self.reference is None else f'{self.reference} - {self.tasks}'}"


def block_rows(block: Block) -> Iterator[EstimateRow]:
    """Give all numbers of a design: accuracies, then what is lost."""
    for group in block.groups:
        yield from group_rows(block.design, group)
    for loss in block.losses:
        digest = block.group(loss.label).digests[0]
        for group in loss.groups:
            yield from group_rows(block.design, group, loss, digest)


def group_rows(
    design: Design, group: Group, loss: Loss | None = None, digest: str | None = None
) -> Iterator[EstimateRow]:
    """Give the numbers of one quantity on one task set.

    Args:
        design: of the tasks
        group: what was measured
        loss: that the group is part of; None of an accuracy
        digest: of the task set, if it is not the group's own
    """
    for row in group.rows:
        for metric in METRICS:
            first = row.first_covers(metric)
            for covers, interval in row.intervals[metric].items():
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
                    rank=row.ranks[metric][covers],
                    conclusion=_conclusion(loss, group, row.classifier, metric, covers),
                    deviation=row.spread(metric),
                    chance=loss.chance.get(metric) if loss else None,
                    is_first=covers == first,
                )


def _conclusion(
    loss: Loss | None, group: Group, classifier: Classifier, metric: Metric, covers: Covers
) -> Conclusion | None:
    if loss is None or group is not loss.lost or (metric, covers) not in loss.concluded:
        return None
    return loss.concluded[metric, covers][classifier].conclusion
