"""The same sampler with the attributes of several detectors, side by side (FewSTAB, Tables 6, S8 and S11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shotproof.comparison.comparison import Comparison
from shotproof.report.pages import wording
from shotproof.stats.block import Block, DetectorAgreement, Group
from shotproof.stats.intervals import Interval


@dataclass(frozen=True)
class DetectorTable:
    """wAcc with each detector's attributes, one row per classifier.

    columns: the metric on the tasks of each detector
    rows: a classifier with its interval in each column, None where it was not evaluated
    agreements: the pairs of these detectors
    """

    name: str
    columns: list[str]
    rows: list[tuple[str, list[Interval | None]]]
    agreements: list[DetectorAgreement]


def detector_tables(comparison: Comparison) -> list[DetectorTable]:
    """One table per design and sampler that was given several detectors' attributes."""
    tables = []
    for block in comparison.blocks:
        for groups in _by_sampler(block):
            tables.append(_table(comparison, block, groups))
    return tables


def _by_sampler(block: Block) -> list[list[Group]]:
    """Groups whose labels differ in the detector alone."""
    found: dict[str, list[Group]] = {}
    for group in block.groups:
        told = f" [{group.detector}]"
        if group.label.endswith(told):
            found.setdefault(group.label.removesuffix(told), []).append(group)
    return [groups for groups in found.values() if len(groups) > 1]


def _table(comparison: Comparison, block: Block, groups: Sequence[Group]) -> DetectorTable:
    labels = {group.label for group in groups}
    classifiers = dict.fromkeys(row.classifier for group in groups for row in group.rows)
    rows = [
        (
            comparison.classifier_name(one),
            [row.intervals["wacc"][comparison.first_covers] if (row := group.row(one)) else None for group in groups],
        )
        for one in classifiers
    ]
    agreements = [one for one in block.detectors if labels.issuperset(one.labels)]
    columns = [wording.metric("wAcc", group.label) for group in groups]
    return DetectorTable(comparison.design_name(block.design), columns, rows, agreements)
