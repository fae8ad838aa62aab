"""Results of a run: one file per task set, encoder or model, and method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shotproof.catalog.catalog import Catalog
from shotproof.core.records import Source
from shotproof.core.runtime.runtime import current_runtime
from shotproof.evaluation.backends import ON_ITEMS
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import Method
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.steps.drawn_sets import DrawnSet, ValidationSets
from shotproof.pipeline.steps.steps import Steps
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model


@dataclass(frozen=True)
class EncodedData:
    """A catalog with its features by encoder; None for features that a dry run does not compute."""

    catalog: Catalog
    features: dict[str, Features | None]


@dataclass(frozen=True)
class EvaluatedFiles:
    """Evaluation of an experiment's methods; None for results that a dry run does not compute.

    data: what methods are evaluated on
    changed: the same with changed items, for task sets that have some
    """

    experiment: Experiment
    steps: Steps
    data: EncodedData
    changed: EncodedData
    models: dict[str, Model]
    tuned: dict[tuple[str, str, str], Adaptation] = field(default_factory=dict)  # by model, validation tasks and method

    @cached_property
    def validation(self) -> ValidationSets | None:
        """Return the validation tasks for choosing learning rates, if the experiment chooses them."""
        tune_on = self.experiment.tune_on
        return None if tune_on is None else ValidationSets(tune_on, self.steps, self.data.catalog, self.experiment.seed)

    def evaluate_all(self, tasks: dict[str, DrawnSet]) -> list[Results | None]:
        """Return the results on task sets; methods without current results are evaluated together."""
        results: list[Results | None] = []
        for task_file, drawn in tasks.items():
            shot = drawn.shape.shot
            data = self.changed if drawn.is_changed else self.data
            for name, encoder in self._encoders.items():
                methods = self._methods("features", encoder, shot)
                results += self._evaluate(task_file, drawn, name, data.features[name], methods)
            results += self._evaluate(task_file, drawn, ON_ITEMS, data.catalog, self._methods("items", None, shot))
            for source, (name, model) in zip(self.experiment.models, self.models.items(), strict=True):
                methods = self._methods("network", source, shot)
                results += self._evaluate(task_file, drawn, name, data.catalog, methods, model)
        return results

    def count(self, tasks: Mapping[str, DrawnSet]) -> int:
        """Count the results files of these task sets."""
        targets: list[tuple[str, Any]] = [("features", encoder) for encoder in self._encoders.values()]
        targets += [("items", None), *(("network", source) for source in self.experiment.models)]
        return sum(len(self._methods(*target, drawn.shape.shot)) for drawn in tasks.values() for target in targets)

    @property
    def _encoders(self) -> dict[str, Any]:
        """Return the encoders by name; features in memory are represented by their name."""
        encoders = {str(encoder): encoder for encoder in self.experiment.encoders}
        return {name: encoders.get(name, name) for name in self.data.features}

    def _methods(self, evaluated_on: str, target: Any, shot: int) -> list[Method]:
        """Return the methods of a kind that are evaluated on this encoder, model or the items, with this many shots."""
        uses = [use for use in self.experiment.uses if use.method.evaluated_on == evaluated_on]
        methods = [use.method for use in uses if use.applies(target, shot)]
        return list({method.spelling: method for method in methods}.values())

    def _evaluate(
        self,
        task_file: str,
        drawn: DrawnSet,
        encoder: str,
        data: Features | Catalog | None,
        methods: Sequence[Method],
        model: Model | None = None,
    ) -> list[Results | None]:
        """Return the results of methods on the features of an encoder, or on the items, with an optional model."""
        steps, seed, task_set = self.steps, self.experiment.seed, drawn.tasks
        inputs: list[Any] = [task_set, data, *([data.stamp] if isinstance(data, Catalog) else [])]
        inputs += [] if model is None else [model]
        tune_on = None
        if self.validation is not None and model is not None:
            tune_on = self.validation.of(drawn.shape)
            inputs += [tune_on, list(self.validation.tune_on.rates)]
        stem = task_file.removeprefix("tasks-").removesuffix(".parquet")
        names = {
            method.spelling: f"results/{stem}/{steps.short_name(encoder)}/{steps.short_name(method.spelling)}.parquet"
            for method in methods
        }
        steps.files += names.values()
        parameters = {method.spelling: _method_parameters(method, seed) for method in methods}
        results: dict[str, Results | None] = {
            method.spelling: steps.current(Results, names[method.spelling], inputs, parameters[method.spelling])
            for method in methods
        }
        missing = [method for method in methods if results[method.spelling] is None]
        for method in missing:
            steps.announce(names[method.spelling])
        if missing and not steps.dry_run:
            assert task_set is not None
            assert data is not None
            arguments: dict[str, Any] = {"features": data}
            if isinstance(data, Catalog):
                arguments = {"catalog": data, "model": model}
            arguments |= {"seed": seed, "allow_seen": self.experiment.allow_seen}
            methods_to_evaluate = missing
            if tune_on is not None and model is not None:
                methods_to_evaluate = [self._tune(method, tune_on, task_set, encoder, model) for method in missing]
            evaluated = evaluate(task_set, methods=methods_to_evaluate, **arguments).by_method()
            for method, method_results in zip(missing, evaluated, strict=True):
                results[method.spelling] = steps.keep(
                    names[method.spelling],
                    method_results if tune_on is None else _record_tuning(method_results, tune_on),
                    inputs,
                    parameters[method.spelling],
                )
        return [results[method.spelling] for method in methods]

    def _tune(self, method: Method, tune_on: TaskSet, tasks: TaskSet, name: str, model: Model) -> Method:
        """Return the method with the best learning rate on the validation tasks, chosen once for all task sets."""
        from shotproof.evaluation.on_networks import tuned_methods

        assert isinstance(method, Adaptation)
        assert self.experiment.tune_on is not None
        key = (name, tune_on.digest, method.spelling)
        if key not in self.tuned:
            rates, seed = self.experiment.tune_on.rates, self.experiment.seed
            (self.tuned[key],) = tuned_methods(
                [method], tune_on, tasks, self.data.catalog, model, rates, seed, current_runtime()
            )
        return self.tuned[key]


def _record_tuning(results: Results, tune_on: TaskSet) -> Results:
    """Add the validation tasks to the record of results, as `evaluate` does."""
    sources = {**results.record.sources, "tune_on": Source(tune_on.digest, tune_on.record.name)}
    return Results(results.table, replace(results.record, sources=sources))


def _method_parameters(method: Method, seed: int) -> list[Any]:
    """Return what determines a method's answers; for custom code, this includes the digest of its file."""
    return [method.spelling, method.parameters(), seed]
