"""Pairs results into the numbers that the page and the terminal show: Acc, wAcc, the gap, agreement of rankings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from shotproof.evaluation.evaluated import METRICS, Classifier, Evaluated, evaluated_sets
from shotproof.evaluation.metrics import average_drop, rank_correlation
from shotproof.evaluation.results import Results
from shotproof.evaluation.sources import RANDOM, UNKNOWN, Design, reference
from shotproof.stats.intervals import Interval, gap_interval, sampler_interval


@dataclass(frozen=True)
class Measurement:
    """One classifier on one task set: Acc and wAcc as shares, each with its interval over tasks."""

    sampler: str
    tasks_digest: str | None
    tasks: int
    accuracy: Interval
    worst: Interval


@dataclass(frozen=True)
class Row:
    """A classifier (encoder and method) on one design: the reference (random or iid tasks) against another sampler's.

    `gap` is the reference's wAcc minus the other's (FewSTAB: wAcc-R minus wAcc-A), `accuracy_gap` the same of Acc, both
    task by task where the two sets are matched; None unless both are there and the sampler is known.
    """

    encoder: str
    method: str
    design: Design
    reference: Measurement | None
    biased: Measurement | None
    gap: Interval | None
    accuracy_gap: Interval | None


@dataclass(frozen=True)
class Agreement:
    """How far the reference tells what biased tasks show, over all classifiers of one design and sampler.

    Spearman's correlations are NaN where they cannot be computed; `average_drop` is the mean gap.
    """

    design: Design
    sampler: str
    classifiers: int
    accuracy_with_worst: float
    worst_with_worst: float
    average_drop: float


@dataclass(frozen=True)
class Comparison:
    """All rows, in the order of design, then of the results given."""

    rows: list[Row]
    agreements: list[Agreement]

    @cached_property
    def designs(self) -> list[Design]:
        """The designs, smallest first."""
        return list(dict.fromkeys(row.design for row in self.rows))

    @cached_property
    def encoders(self) -> list[str]:
        """The encoders, in the order of the results."""
        return list(dict.fromkeys(row.encoder for row in self.rows))

    @cached_property
    def methods(self) -> list[str]:
        """The methods, in the order of the results."""
        return list(dict.fromkeys(row.method for row in self.rows))

    @cached_property
    def references(self) -> list[str]:
        """The samplers that the others are measured against; `random` where there is none."""
        return list(dict.fromkeys(row.reference.sampler for row in self.rows if row.reference)) or [RANDOM]

    @cached_property
    def biased_samplers(self) -> list[str]:
        """The samplers other than the reference."""
        return list(dict.fromkeys(row.biased.sampler for row in self.rows if row.biased))

    def design_name(self, design: Design) -> str:
        """E.g. `5-way 1-shot`, with the queries, the split and the catalog where they tell designs apart."""
        extras: list[tuple[Callable[[Design], Any], str]] = [
            (lambda d: d.query, "queries that vary" if design.query is None else f"{design.query} queries"),
            (lambda d: d.dial, f"a = {design.dial:g}" if design.dial is not None else "not mixed"),
            (lambda d: d.split, f"split {design.split or UNKNOWN}"),
            (lambda d: d.dial is None and d.catalog, f"catalog {(design.catalog or UNKNOWN)[:8]}"),
        ]
        differing = [text for value, text in extras if len({value(other) for other in self.designs}) > 1]
        return ", ".join([design.shape, *differing])

    def to_json(self) -> dict[str, Any]:
        """As plain values: accuracies and gaps are shares, what is not a number is null."""
        content = {"rows": [asdict(row) for row in self.rows], "agreements": [asdict(a) for a in self.agreements]}
        return {"unit": "share", **_without_nan(content)}


def compare_results(results: Sequence[Results]) -> Comparison:
    """Pair each classifier's results on the reference with those on other samplers' tasks of the same design.

    Results of one design and sampler must be on one task set; otherwise they cannot be compared (Mismatch).
    """
    classifiers: dict[tuple[Design, Classifier], list[Evaluated]] = {}
    for one in evaluated_sets(results):
        for classifier in one.values:
            classifiers.setdefault((one.source.design, classifier), []).append(one)
    rows = [row for (_, classifier), sets in classifiers.items() for row in _rows(classifier, sets)]
    rows.sort(key=lambda row: _design_order(row.design))
    return Comparison(rows, _agreements(rows))


def _rows(classifier: Classifier, sets: Sequence[Evaluated]) -> list[Row]:
    """The rows of one classifier on one design: one for each set but the reference, or one with that alone."""
    source = reference([one.source for one in sets])
    first = next((one for one in sets if one.source is source), None)
    others = [one for one in sets if one is not first]
    return [_row(classifier, first, biased) for biased in others] or [_row(classifier, first, None)]


def _row(classifier: Classifier, first: Evaluated | None, biased: Evaluated | None) -> Row:
    gaps: list[Interval | None] = [None, None]
    if first and biased and biased.source.sampler != UNKNOWN:
        paired = first.source.match == biased.source.match and first.tasks == biased.tasks
        gaps = [
            gap_interval(first.values[classifier][metric], biased.values[classifier][metric], paired=paired)
            for metric in ("wacc", "acc")
        ]
    either = first or biased
    assert either is not None
    return Row(
        *classifier,
        either.source.design,
        _measure(classifier, first) if first else None,
        _measure(classifier, biased) if biased else None,
        *gaps,
    )


def _measure(classifier: Classifier, on: Evaluated) -> Measurement:
    values = on.values[classifier]
    accuracy, worst = (sampler_interval(values[metric]) for metric in METRICS)
    return Measurement(on.source.sampler, on.source.tasks_digest, on.tasks, accuracy, worst)


def _agreements(rows: Sequence[Row]) -> list[Agreement]:
    groups: dict[tuple[Design, str], list[tuple[Measurement, Measurement]]] = {}
    for row in rows:
        if row.reference and row.biased and row.gap:
            groups.setdefault((row.design, row.biased.sampler), []).append((row.reference, row.biased))
    agreements = []
    for (design, sampler), pairs in groups.items():
        accuracy = [first.accuracy.mean for first, _ in pairs]
        worst = [first.worst.mean for first, _ in pairs]
        biased = [other.worst.mean for _, other in pairs]
        correlations = (rank_correlation(accuracy, biased), rank_correlation(worst, biased))
        agreements.append(Agreement(design, sampler, len(pairs), *correlations, average_drop(worst, biased)))
    return agreements


def _design_order(design: Design) -> tuple[str | float, ...]:
    dial, *numbers = (-1 if value is None else value for value in (design.dial, design.way, design.shot, design.query))
    return (dial, "" if dial >= 0 else design.catalog or "", design.split or "", *numbers)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
