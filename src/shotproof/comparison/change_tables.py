"""Tables of changed task sets, one per design: a row per change, two numbers per classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shotproof.comparison.changed_sets import AXIS
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.estimate_rows import EstimateRow
from shotproof.results.evaluated import Classifier
from shotproof.results.origin import Design
from shotproof.stats.intervals import Interval

UNCHANGED = "unchanged"


@dataclass(frozen=True)
class ChangeCell:
    """Accuracy of a classifier, and the share of its skill that the change costs; None if there is none."""

    accuracy: Interval | None = None
    skill_lost: Interval | None = None


@dataclass(frozen=True)
class ChangeRow:
    """Numbers of all classifiers on one task set.

    label: label of the task set
    change: what is changed, without its severity
    severity: from 1 to 5; None for a change that has none
    reference: what it is compared with; None for the unchanged tasks
    """

    label: str
    change: str
    severity: int | None
    reference: str | None
    cells: Sequence[ChangeCell]


@dataclass(frozen=True)
class ChangeTable:
    """Numbers of one design: the unchanged tasks first, then every change."""

    design: Design
    classifiers: Sequence[Classifier]
    rows: Sequence[ChangeRow]


def change_tables(comparison: Comparison) -> list[ChangeTable]:
    """Build one table per design with changed sets, in the metric of the comparison."""
    by_design: dict[Design, list[EstimateRow]] = {}
    for row in comparison.rows("gap", axis=AXIS):
        by_design.setdefault(row.design, []).append(row)
    return [_table(comparison, design, rows) for design, rows in by_design.items()]


def _table(comparison: Comparison, design: Design, gaps: Sequence[EstimateRow]) -> ChangeTable:
    classifiers = [
        classifier for classifier in comparison.classifiers if any(row.classifier == classifier for row in gaps)
    ]
    changed = dict.fromkeys((row.tasks, row.reference) for row in gaps)
    labels = {label for label, _ in changed}
    unchanged = dict.fromkeys((str(reference), None) for _, reference in changed if reference not in labels)
    rows = []
    for label, reference in (*unchanged, *changed):
        gap_rows = [row for row in gaps if label == (row.reference if reference is None else row.tasks)]
        by_classifier = {row.classifier: row for row in gap_rows}
        cells = [_cell(comparison, by_classifier.get(classifier), label) for classifier in classifiers]
        change = comparison.changes.get((design, label)) if reference else None
        # The label says more than the change: the side, and from which set the tasks are if that is not clear.
        name = label if change is None else change.without_severity + label.removeprefix(change.change)
        name = UNCHANGED if reference is None and len(unchanged) == 1 else name
        compared = UNCHANGED if (reference, None) in unchanged and len(unchanged) == 1 else reference
        rows.append(ChangeRow(label, name, change.severity if change else None, compared, cells))
    return ChangeTable(design, classifiers, rows)


def _cell(comparison: Comparison, row: EstimateRow | None, label: str) -> ChangeCell:
    if row is None:
        return ChangeCell()
    accuracy = comparison.number(row, "accuracy", comparison.metric, label)
    is_reference = label == row.reference
    return ChangeCell(accuracy, None if is_reference else comparison.number(row, "skill_lost", comparison.metric))
