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
from shotproof.evaluation.sources import RANDOM, UNKNOWN, Design
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
    """A classifier (encoder and method) on one design: random tasks against those of one other sampler.

    `gap` is wAcc-R minus the other's wAcc (FewSTAB: wAcc-A); None unless both are there and the sampler is known.
    """

    encoder: str
    method: str
    design: Design
    random: Measurement | None
    biased: Measurement | None
    gap: Interval | None


@dataclass(frozen=True)
class Agreement:
    """How far random tasks tell what biased tasks show, over all classifiers of one design and sampler.

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
    def biased_samplers(self) -> list[str]:
        """The samplers other than `random`."""
        return list(dict.fromkeys(row.biased.sampler for row in self.rows if row.biased))

    def design_name(self, design: Design) -> str:
        """E.g. `5-way 1-shot`, with the queries, the split and the catalog where they tell designs apart."""
        shots = "unknown shots" if design.shot is None else f"{design.shot}-shot"
        name = f"{design.way}-way {shots}"
        extras: list[tuple[Callable[[Design], Any], str]] = [
            (lambda d: d.query, f"{design.query} queries"),
            (lambda d: d.split, f"split {design.split or UNKNOWN}"),
            (lambda d: d.catalog, f"catalog {(design.catalog or UNKNOWN)[:8]}"),
        ]
        differing = [text for value, text in extras if len({value(other) for other in self.designs}) > 1]
        return ", ".join([name, *differing])

    def to_json(self) -> dict[str, Any]:
        """As plain values: accuracies and gaps are shares, what is not a number is null."""
        content = {"rows": [asdict(row) for row in self.rows], "agreements": [asdict(a) for a in self.agreements]}
        return {"unit": "share", **_without_nan(content)}


def compare_results(results: Sequence[Results]) -> Comparison:
    """Pair each classifier's results on random tasks with those on other samplers' tasks of the same design.

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
    """The rows of one classifier on one design: one for each sampler that is not `random`, or one with that alone."""
    random = next((one for one in sets if one.source.sampler == RANDOM), None)
    others = [one for one in sets if one is not random]
    return [_row(classifier, random, biased) for biased in others] or [_row(classifier, random, None)]


def _row(classifier: Classifier, random: Evaluated | None, biased: Evaluated | None) -> Row:
    gap = None
    if random and biased and biased.source.sampler != UNKNOWN:
        gap = gap_interval(random.values[classifier]["wacc"], biased.values[classifier]["wacc"])
    either = random or biased
    assert either is not None
    return Row(
        *classifier,
        either.source.design,
        _measure(classifier, random) if random else None,
        _measure(classifier, biased) if biased else None,
        gap,
    )


def _measure(classifier: Classifier, on: Evaluated) -> Measurement:
    values = on.values[classifier]
    accuracy, worst = (sampler_interval(values[metric]) for metric in METRICS)
    return Measurement(on.source.sampler, on.source.tasks_digest, on.tasks, accuracy, worst)


def _agreements(rows: Sequence[Row]) -> list[Agreement]:
    groups: dict[tuple[Design, str], list[tuple[Measurement, Measurement]]] = {}
    for row in rows:
        if row.random and row.biased and row.gap:
            groups.setdefault((row.design, row.biased.sampler), []).append((row.random, row.biased))
    agreements = []
    for (design, sampler), pairs in groups.items():
        accuracy = [random.accuracy.mean for random, _ in pairs]
        worst = [random.worst.mean for random, _ in pairs]
        biased = [other.worst.mean for _, other in pairs]
        correlations = (rank_correlation(accuracy, biased), rank_correlation(worst, biased))
        agreements.append(Agreement(design, sampler, len(pairs), *correlations, average_drop(worst, biased)))
    return agreements


def _design_order(design: Design) -> tuple[str | int, ...]:
    numbers = [-1 if value is None else value for value in (design.way, design.shot, design.query)]
    return (design.catalog or "", design.split or "", *numbers)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
