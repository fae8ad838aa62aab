"""Pairs results into the numbers that the page and the terminal show: Acc, wAcc, the gap, agreement of rankings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shotproof.errors import InputError, Mismatch
from shotproof.evaluation.metrics import (
    Counts,
    FloatArray,
    Interval,
    average_drop,
    gap_interval,
    rank_correlation,
    sampler_interval,
)
from shotproof.evaluation.results import Results
from shotproof.report.sources import RANDOM, UNKNOWN, Design, Source, sources_of


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


@dataclass(frozen=True)
class _Evaluated:
    """The counts of one method, and where they come from."""

    source: Source
    method: str
    counts: Counts

    @cached_property
    def worst_by_task(self) -> FloatArray:
        return self.counts.worst_by_task()

    @cached_property
    def measurement(self) -> Measurement:
        return Measurement(
            self.source.sampler,
            self.source.tasks_digest,
            len(self.worst_by_task),
            accuracy=sampler_interval(self.counts.accuracy_by_task()),
            worst=sampler_interval(self.worst_by_task),
        )


def compare_results(results: Sequence[Results]) -> Comparison:
    """Pair each classifier's results on random tasks with those on other samplers' tasks of the same design.

    Results of one design and sampler must be on one task set; otherwise they cannot be compared (Mismatch).
    """
    if not results:
        raise InputError("no results to compare: give at least one results file")
    classifiers: dict[tuple[Design, str, str], dict[str, _Evaluated]] = {}
    task_sets: dict[tuple[Design, str], Source] = {}
    for given, source in zip(results, sources_of(results), strict=True):
        _require_same_tasks(source, task_sets.setdefault((source.design, source.sampler), source))
        for method in given.methods:
            evaluated = _Evaluated(source, method, given.counts(method))
            by_sampler = classifiers.setdefault((source.design, source.encoder, method), {})
            _require_same_counts(evaluated, by_sampler.setdefault(source.sampler, evaluated))
    rows = [row for by_sampler in classifiers.values() for row in _rows(by_sampler)]
    rows.sort(key=lambda row: _design_order(row.design))
    return Comparison(rows, _agreements(rows))


def _rows(by_sampler: dict[str, _Evaluated]) -> list[Row]:
    """The rows of one classifier on one design: one for each sampler that is not `random`, or one with that alone."""
    random = by_sampler.get(RANDOM)
    others = [evaluated for sampler, evaluated in by_sampler.items() if sampler != RANDOM]
    return [_row(random, biased) for biased in others] or [_row(random, None)]


def _row(random: _Evaluated | None, biased: _Evaluated | None) -> Row:
    either = random or biased
    assert either is not None
    gap = None
    if random and biased and biased.source.sampler != UNKNOWN:
        gap = gap_interval(random.worst_by_task, biased.worst_by_task)
    return Row(
        either.source.encoder,
        either.method,
        either.source.design,
        random.measurement if random else None,
        biased.measurement if biased else None,
        gap,
    )


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


def _require_same_tasks(new: Source, first: Source) -> None:
    if new.tasks_digest != first.tasks_digest:
        raise Mismatch(
            f"results on different '{new.sampler}' task sets of one design cannot be compared: task set "
            f"{first.tasks_digest or UNKNOWN} (encoder '{first.encoder}') and {new.tasks_digest or UNKNOWN} "
            f"(encoder '{new.encoder}'); evaluate both on the same task file"
        )


def _require_same_counts(new: _Evaluated, first: _Evaluated) -> None:
    """The same results may be given twice; other counts for the same classifier and tasks may not."""
    pairs = ((getattr(new.counts, name), getattr(first.counts, name)) for name in ("task", "n_query", "n_correct"))
    if not all(np.array_equal(a, b) for a, b in pairs):
        raise Mismatch(
            f"method '{new.method}' on encoder '{new.source.encoder}' was given twice, with different counts, on the "
            f"'{new.source.sampler}' task set {new.source.tasks_digest or UNKNOWN}"
        )


def _design_order(design: Design) -> tuple[str | int, ...]:
    numbers = [-1 if value is None else value for value in (design.way, design.shot, design.query)]
    return (design.catalog or "", design.split or "", *numbers)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
