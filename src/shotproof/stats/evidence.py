"""What is known of means over tasks: the estimate, under any interval, of any weighted sum of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shotproof.errors import Mismatch, Starved
from shotproof.evaluation.evaluate import evaluate
from shotproof.evaluation.evaluated import Classifier, Evaluated, Metric, values_of
from shotproof.evaluation.metrics import FloatArray
from shotproof.evaluation.sources import RANDOM
from shotproof.methods.method import Method
from shotproof.stats.data import UNITS, DataSpread, data_spread
from shotproof.stats.drawing import Inputs
from shotproof.stats.intervals import Covers, Estimate
from shotproof.stats.material import Material
from shotproof.stats.splits import MeanOf
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet

DEPLETION = "depletion"

# A weighted sum of means: which task set (by number), classifier and metric, with which weight.
Terms = Mapping[tuple[int, Classifier, Metric], float]
Values = Callable[[int, Classifier, Metric], FloatArray]


@dataclass(frozen=True)
class Evidence:
    """Evaluated task sets and, for intervals that need it, re-evaluation on other tasks or on halves of the data."""

    sets: list[Evaluated]
    covers: tuple[Covers, ...]
    material: Material

    def estimate(self, covers: Covers, terms: Terms) -> Estimate:
        """The weighted sum with its spread; refused where there is none."""
        if covers == "depletion":
            reason = self._no_depletion(terms)
            return _refused(self.mean(terms), reason) if reason else _over_tasks(terms, self._depletion_values, str)
        estimate = _over_tasks(terms, self._values, self._matched)
        if covers == "sampler":
            return estimate
        weights: dict[MeanOf, float] = {
            (number, self._encoders.index(one.encoder), one.method, metric): weight
            for (number, one, metric), weight in terms.items()
        }
        return self._data.widen(estimate, covers, weights)

    @property
    def depletion_tasks(self) -> int | None:
        """How many tasks without replacement were drawn and evaluated; None where none were."""
        drawn = any(one.source.sampler == RANDOM for one in self.sets) and DEPLETION in self.covers
        return self._depleted.tasks if drawn and isinstance(self._depleted, Evaluated) else None

    def mean(self, terms: Terms) -> float:
        """The weighted sum on the tasks given."""
        return sum(weight * float(self._values(*key).mean()) for key, weight in terms.items())

    def _matched(self, number: int) -> str:
        """The same for sets whose tasks are paired; sets that do not say what they are match no other."""
        return self.sets[number].source.match or str(number)

    def _values(self, number: int, classifier: Classifier, metric: Metric) -> FloatArray:
        return self.sets[number].values[classifier][metric]

    def _depletion_values(self, number: int, classifier: Classifier, metric: Metric) -> FloatArray:
        if self.sets[number].source.sampler == DEPLETION:
            return self._values(number, classifier, metric)
        assert isinstance(self._depleted, Evaluated)
        return self._depleted.values[classifier][metric]

    def _no_depletion(self, terms: Terms) -> str | None:
        """Why there is no such interval; None where there is one."""
        names = {self.sets[number].source.sampler for number, _, _ in terms}
        others = names - {RANDOM, DEPLETION}
        if others:
            return f"only random tasks can be drawn without replacement; these are {', '.join(sorted(others))} tasks"
        return self._depleted if RANDOM in names and isinstance(self._depleted, str) else None

    @cached_property
    def _depleted(self) -> Evaluated | str:
        """The classifiers of the random tasks on tasks without replacement, or why there are none."""
        self.material.require(DEPLETION, "catalog", "features")
        random = next(one for one in self.sets if one.source.sampler == RANDOM)
        try:
            tasks = self._draw_depletion(random)
        except Starved as error:
            return str(error)
        depleted = Evaluated(random.source)
        for encoder, methods in self._methods([random]).items():
            features = self.material.features_of(encoder, random.features[encoder])
            results = evaluate(tasks, features, methods, seed=self.material.seed)
            for method in results.methods:
                depleted.values[Classifier(encoder, method)] = values_of(results, method)
        return depleted

    def _draw_depletion(self, random: Evaluated) -> TaskSet:
        design, catalog = random.source.design, self.material.catalog
        assert catalog is not None
        if design.catalog != catalog.digest:
            raise Mismatch(f"the tasks were drawn from catalog {design.catalog}, not from {catalog.digest}")
        shape = {"way": design.way, "shot": design.shot, "query": design.query}
        skip = dict(random.source.options).get("skip_small_classes") == "True"
        drawn = {name: size for name, size in shape.items() if size is not None}
        return sample(catalog, DEPLETION, split=design.split, seed=self.material.seed, skip_small_classes=skip, **drawn)

    @cached_property
    def _encoders(self) -> list[str]:
        """The encoders in the order in which they are re-evaluated."""
        return list(self._methods(self.sets))

    @cached_property
    def _data(self) -> DataSpread:
        """All classifiers on halves of the data."""
        units = [name for name in UNITS if name in self.covers]
        needed = ["tasks", "catalog", "features"]
        if any("attributes" in one.source.inputs for one in self.sets):
            needed.append("attributes")
        self.material.require(units[0], *needed)
        assert self.material.catalog is not None
        digests = {encoder: digest for one in self.sets for encoder, digest in one.features.items()}
        return data_spread(
            units,
            [self.material.task_set(one.source.tasks_digest) for one in self.sets],
            self.material.catalog,
            [
                (self.material.features_of(encoder, digests[encoder]), methods)
                for encoder, methods in self._methods(self.sets).items()
            ],
            inputs=Inputs(self.material.attributes, self.material.features, self.material.tasks),
            splits=self.material.splits,
            seed=self.material.seed,
            workers=self.material.workers,
        )

    def _methods(self, sets: Iterable[Evaluated]) -> dict[str, list[Method]]:
        """The methods of each encoder, made anew."""
        methods: dict[str, list[Method]] = {}
        for classifier in dict.fromkeys(classifier for one in sets for classifier in one.values):
            methods.setdefault(classifier.encoder, []).append(self.material.method(classifier.method))
        return methods


def _over_tasks(terms: Terms, values: Values, matched: Callable[[int], str]) -> Estimate:
    """The sum over tasks: paired within a task set and between matched ones, independent between others."""
    by_match: dict[str, list[FloatArray]] = {}
    for key, weight in terms.items():
        by_match.setdefault(matched(key[0]), []).append(weight * values(*key))
    first, *others = (np.sum(parts, axis=0) for parts in by_match.values())
    estimate = Estimate.over_tasks(first)
    for other in others:
        estimate = estimate.minus(Estimate.over_tasks(-other))
    return estimate


def _refused(mean: float, reason: str) -> Estimate:
    return Estimate(mean, None, reason)
