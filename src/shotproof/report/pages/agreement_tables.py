"""Agreement between seeds, and between the detectors that found the attributes."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.estimate_rows import EstimateRow
from shotproof.comparison.numbers import metric_symbol
from shotproof.stats.block import Block, DetectorAgreement
from shotproof.stats.intervals import Interval


def seed_rows(comparison: Comparison) -> list[EstimateRow]:
    """Collect the rows of task sets and gaps that have more than one seed; by Acc."""
    rows = [*comparison.rows("accuracy", "acc"), *comparison.rows("gap", "acc")]
    return [row for row in rows if row.deviation is not None]


@dataclass(frozen=True)
class DetectorTable:
    """wAcc with each detector's attributes, one row per classifier (FewSTAB, Tables 6, S8 and S11).

    columns: the metric on the tasks of each detector
    rows: each classifier with its interval in each column; None if it was not evaluated
    agreements: agreement between pairs of these detectors
    """

    name: str
    columns: list[str]
    rows: list[tuple[str, list[Interval | None]]]
    agreements: list[DetectorAgreement]


def detector_tables(comparison: Comparison) -> list[DetectorTable]:
    """Build one table per design and sampler that was used with the attributes of several detectors."""
    tables = []
    for block in comparison.blocks:
        by_sampler: dict[str, list[DetectorAgreement]] = {}
        for agreement in block.detectors:
            by_sampler.setdefault(agreement.sampler, []).append(agreement)
        tables += [_table(comparison, block, agreements) for agreements in by_sampler.values()]
    return tables


def _table(comparison: Comparison, block: Block, agreements: list[DetectorAgreement]) -> DetectorTable:
    labels = dict.fromkeys(label for agreement in agreements for label in agreement.labels)
    groups = [block.group(label) for label in labels]
    rows = [
        (
            comparison.classifier_name(classifier),
            [
                row.intervals["wacc"][comparison.first_interval_name] if (row := group.row(classifier)) else None
                for group in groups
            ],
        )
        for classifier in dict.fromkeys(row.classifier for group in groups for row in group.rows)
    ]
    columns = [metric_symbol("wAcc", label) for label in labels]
    return DetectorTable(comparison.design_name(block.design), columns, rows, agreements)
