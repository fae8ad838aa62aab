"""Methods on the same tasks side by side: means with their intervals, ranks with ties, all pairs, gaps.

table = compare(results)
table = compare(results, intervals=("sampler", "images"), material=Material(tasks, catalog, features))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from shotproof.errors import InputError, Mismatch, UnknownName
from shotproof.evaluation.evaluated import METRICS, Classifier, Evaluated, Metric, evaluated_sets
from shotproof.evaluation.results import Results
from shotproof.evaluation.sources import REFERENCES, UNKNOWN, reference
from shotproof.stats.evidence import DEPLETION, Evidence, Terms
from shotproof.stats.intervals import MEANING, Covers, Interval, check_level
from shotproof.stats.material import Material
from shotproof.stats.pairs import Pair, all_pairs, compare_pairs, conclusive, ranks


@dataclass(frozen=True)
class MethodRow:
    """One method: the mean of each metric with its intervals, and its rank under each interval.

    The interval `depletion` has a mean of its own: it is on other tasks. A rank is None where the interval is refused.
    """

    method: str
    means: dict[Metric, float]
    intervals: dict[Metric, dict[Covers, Interval]]
    ranks: dict[Covers, int | None]

    @property
    def rank(self) -> int | None:
        """The rank under the first interval that could be given."""
        return next((rank for rank in self.ranks.values() if rank is not None), None)

    def to_json(self) -> dict[str, Any]:
        """In percent points; a refused interval is null, with its reason in `refused`."""
        return {
            "method": self.method,
            **{metric: 100 * mean for metric, mean in self.means.items()},
            "rank": self.rank,
            "ranks": self.ranks,
            "intervals": {
                metric: {name: None if one.refused else [100 * one.low, 100 * one.high] for name, one in named.items()}
                for metric, named in self.intervals.items()
            },
            "refused": {
                metric: {name: one.refused for name, one in named.items() if one.refused}
                for metric, named in self.intervals.items()
            },
        }


@dataclass(frozen=True)
class MethodGroup:
    """All methods on one task set or, where `biased` is set, their gaps: the reference (random tasks) minus biased.

    pairs: all pairs of methods, by metric and interval
    """

    sampler: str
    tasks: int
    digest: str | None
    biased: str | None
    methods: list[MethodRow]
    pairs: dict[tuple[Metric, Covers], list[Pair]]

    @property
    def name(self) -> str:
        """E.g. `random`, or of a gap `random - fewstab`."""
        return f"{self.sampler} - {self.biased}" if self.biased else self.sampler

    def conclusive(self, metric: Metric, covers: Covers) -> int:
        """The number of conclusive pairs."""
        return conclusive(self.pairs[metric, covers])

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        """Methods, pairs and numbers of conclusive pairs, in percent points; each with the tasks that it is on."""
        where = {"tasks": self.name}
        return {
            "methods": [{**row.to_json(), **where} for row in self.methods],
            "pairs": [
                {**_pair_json(pair, metric, covers), **where}
                for (metric, covers), pairs in self.pairs.items()
                for pair in pairs
            ],
            "conclusive": [
                {"metric": metric, "interval": covers, "conclusive": conclusive(pairs), "pairs": len(pairs), **where}
                for (metric, covers), pairs in self.pairs.items()
            ],
        }


@dataclass(frozen=True)
class MethodTable:
    """Methods on one task set, or on a reference and others of one design, then with their gaps.

    level, corrected: the intervals' level, and whether Holm's correction for the number of pairs was made
    metric: what the ranks are by
    refused: the reason of each interval that no method could be given
    notes: what a reader must know of the intervals
    """

    level: float
    metric: Metric
    corrected: bool
    covers: tuple[Covers, ...]
    groups: list[MethodGroup]
    gaps: list[MethodGroup]
    refused: dict[Covers, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As plain values, in percent points."""
        groups, gaps = ([group.to_json() for group in given] for given in (self.groups, self.gaps))
        return {
            "unit": "percent points",
            "level": self.level,
            "metric": self.metric,
            "holm": self.corrected,
            "tasks": [{"sampler": g.sampler, "tasks": g.tasks, "digest": g.digest} for g in self.groups],
            "covers": {name: MEANING[name] for name in self.covers},
            "refused": self.refused,
            "notes": self.notes,
            "methods": [row for group in groups for row in group["methods"]],
            "pairs": [row for group in groups for row in group["pairs"]],
            "gaps": [row for group in gaps for row in group["methods"]],
            "gap_pairs": [row for group in gaps for row in group["pairs"]],
            "conclusive": [row for group in [*groups, *gaps] for row in group["conclusive"]],
        }


def compare(
    results: Sequence[Results],
    *,
    intervals: Sequence[str] | None = None,
    level: float = 0.95,
    metric: str = "acc",
    correct: bool = True,
    material: Material | None = None,
) -> MethodTable:
    """Compare methods on the same tasks, pair by pair.

    `intervals` name what they cover: `sampler` (the default; on tasks without replacement with `depletion`), and
    `depletion`, `images`, `classes`, which need `material` to re-evaluate. `metric` is what ranks are by. `correct` by
    Holm for the number of pairs, within a metric and an interval. Results on random (or iid) tasks and on others of the
    same design, or on matched task sets, give the gap too, task by task where they are matched; any other two task sets
    are refused (Mismatch).
    """
    check_level(level)
    by = next((known for known in METRICS if known == metric), None)
    if by is None:
        raise UnknownName("metric", metric, METRICS)
    sets = evaluated_sets(results)
    _require_one_design(sets)
    covers = _chosen(intervals, sets)
    several_encoders = len({classifier.encoder for one in sets for classifier in one.values}) > 1
    evidence = Evidence(sets, covers, material or Material())
    comparing = _Comparing(evidence, level, by, correct, several_encoders)
    numbers = range(len(sets))
    groups = [comparing.group(sets[number], {number: 1.0}) for number in numbers]
    sources = [one.source for one in sets]
    first = sources.index(reference(sources) or sources[0])
    gaps = [
        comparing.group(sets[first], {first: 1.0, number: -1.0}, sets[number]) for number in numbers if number != first
    ]
    refused = {name: reason for name in covers if (reason := _refused_everywhere(groups, name))}
    return MethodTable(level, by, correct, covers, groups, gaps, refused, comparing.notes())


@dataclass(frozen=True)
class _Comparing:
    """One comparison while it is made; a contrast gives each task set that takes part its weight, by number."""

    evidence: Evidence
    level: float
    metric: Metric
    correct: bool
    several_encoders: bool

    def group(self, first: Evaluated, contrast: Mapping[int, float], biased: Evaluated | None = None) -> MethodGroup:
        """All methods and pairs of one contrast."""
        on_all = [c for c in first.values if all(c in self.evidence.sets[number].values for number in contrast)]
        classifiers = {self._name(classifier): classifier for classifier in on_all}
        pairs = {
            (metric, covers): self._pairs(classifiers, contrast, metric, covers)
            for metric in METRICS
            for covers in self.evidence.covers
        }
        intervals: dict[str, dict[Metric, dict[Covers, Interval]]] = {
            name: {metric: self._intervals(_terms(contrast, one, metric)) for metric in METRICS}
            for name, one in classifiers.items()
        }
        ranked = {
            covers: self._ranks({name: of[self.metric][covers].mean for name, of in intervals.items()}, pairs, covers)
            for covers in self.evidence.covers
        }
        rows = [
            MethodRow(
                name,
                {metric: self.evidence.mean(_terms(contrast, one, metric)) for metric in METRICS},
                intervals[name],
                {covers: None if biased else ranked[covers][name] for covers in self.evidence.covers},
            )
            for name, one in classifiers.items()
        ]
        source, other = first.source, biased.source.sampler if biased else None
        return MethodGroup(source.sampler, first.tasks, source.tasks_digest, other, rows, pairs)

    def notes(self) -> list[str]:
        """What the intervals were made from."""
        drawn = self.evidence.depletion_tasks
        return [] if drawn is None else [f"depletion: {drawn} tasks without replacement, drawn for this interval"]

    def _name(self, classifier: Classifier) -> str:
        return f"{classifier.encoder}: {classifier.method}" if self.several_encoders else classifier.method

    def _intervals(self, terms: Terms) -> dict[Covers, Interval]:
        covers = self.evidence.covers
        return {name: self.evidence.estimate(name, terms).interval(name, self.level) for name in covers}

    def _pairs(
        self, classifiers: Mapping[str, Classifier], contrast: Mapping[int, float], metric: Metric, covers: Covers
    ) -> list[Pair]:
        differences = {}
        for a, b in all_pairs(list(classifiers)):
            below = {key: -weight for key, weight in _terms(contrast, classifiers[b], metric).items()}
            terms = {**_terms(contrast, classifiers[a], metric), **below}
            differences[a, b] = self.evidence.estimate(covers, terms)
        return compare_pairs(differences, covers, self.level, self.correct)

    def _ranks(
        self, means: Mapping[str, float], pairs: Mapping[tuple[Metric, Covers], list[Pair]], covers: Covers
    ) -> Mapping[str, int | None]:
        """None for all where no pair has an interval: nothing tells the methods apart, or that they are alike."""
        of_metric = pairs[self.metric, covers]
        if of_metric and all(pair.interval.refused for pair in of_metric):
            return dict.fromkeys(means)
        return ranks(means, of_metric)


def _terms(contrast: Mapping[int, float], classifier: Classifier, metric: Metric) -> dict[Any, float]:
    return {(number, classifier, metric): weight for number, weight in contrast.items()}


def _chosen(intervals: Sequence[str] | None, sets: Sequence[Evaluated]) -> tuple[Covers, ...]:
    """The intervals, each once, in the order given."""
    if intervals is None:
        of_depletion = any(one.source.sampler == DEPLETION for one in sets)
        return ("sampler", "depletion") if of_depletion else ("sampler",)
    known = get_args(Covers)
    for name in intervals:
        if name not in known:
            raise UnknownName("interval", name, known)
    if not intervals:
        raise InputError(f"no interval: name at least one of {', '.join(known)}")
    return tuple(dict.fromkeys(intervals))  # type: ignore[arg-type]


def _require_one_design(sets: Sequence[Evaluated]) -> None:
    """One task set, a reference and others of its design, or sets whose tasks are matched."""
    sources = [one.source for one in sets]
    first = reference(sources) or sources[0]
    for one in sets:
        source = one.source
        matched = source.match is not None and source.match == first.match
        alike = source.design == first.design and UNKNOWN not in (source.sampler, first.sampler)
        if source is not first and not matched and not (alike and first.sampler in REFERENCES):
            raise Mismatch(
                f"results on different task sets cannot be compared: {first.tasks_digest or UNKNOWN} ({first.sampler}) "
                f"and {source.tasks_digest or UNKNOWN} ({source.sampler}); expected one task set, matched ones, or "
                f"{' or '.join(REFERENCES)} tasks and others of the same catalog, split, way, shot and query"
            )
        tasks = sets[sources.index(first)].tasks
        if matched and one.tasks != tasks:
            raise Mismatch(
                f"the {first.sampler} and {source.sampler} tasks are matched one by one, but there are {tasks} and "
                f"{one.tasks} of them: evaluate the same number of both"
            )


def _refused_everywhere(groups: Sequence[MethodGroup], covers: Covers) -> str | None:
    """The first reason, where no method has this interval."""
    reasons = [row.intervals[metric][covers].refused for group in groups for row in group.methods for metric in METRICS]
    return reasons[0] if all(reasons) else None


def _pair_json(pair: Pair, metric: Metric, covers: Covers) -> dict[str, Any]:
    interval = pair.interval
    low, high = (None if math.isnan(end) else 100 * end for end in (interval.low, interval.high))
    return {
        "a": pair.a,
        "b": pair.b,
        "metric": metric,
        "interval": covers,
        "difference": 100 * interval.mean,
        "low": low,
        "high": high,
        "conclusion": pair.conclusion,
        "p_value": None if interval.refused else pair.p_value,
        "refused": interval.refused,
    }
