"""The results of a run: one file per task set, encoder or model, and method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shotproof.catalog.catalog import Catalog
from shotproof.core.records import Source
from shotproof.core.runtime.runtime import current_runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.evaluation.grounds import ON_ITEMS
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
class EvaluatedFiles:
    """Evaluates what an experiment asks for; what a dry run did not make is None."""

    experiment: Experiment
    steps: Steps
    catalog: Catalog
    features: dict[str, Features | None]
    models: dict[str, Model]
    tuned: dict[tuple[str, str, str], Adaptation] = field(default_factory=dict)  # by model, tasks tuned on, and method

    @cached_property
    def validation(self) -> ValidationSets | None:
        """The tasks that learning rates are chosen on, if they are chosen."""
        given = self.experiment
        return None if given.tune_on is None else ValidationSets(given.tune_on, self.steps, self.catalog, given.seed)

    def on(self, tasks: dict[str, DrawnSet]) -> list[Results | None]:
        """The results on task sets, by the names of their files; those that are missing are evaluated together."""
        results: list[Results | None] = []
        for task_file, drawn in tasks.items():
            shot = drawn.shape.shot
            for name, encoder in self._encoders.items():
                methods = self._methods("features", encoder, shot)
                results += self._evaluated(task_file, drawn, name, self.features[name], methods)
            results += self._evaluated(task_file, drawn, ON_ITEMS, self.catalog, self._methods("items", None, shot))
            for given, (name, model) in zip(self.experiment.models, self.models.items(), strict=True):
                methods = self._methods("network", given, shot)
                results += self._evaluated(task_file, drawn, name, self.catalog, methods, model)
        return results

    def count(self, tasks: Mapping[str, DrawnSet]) -> int:
        """Count the files of results on these task sets."""
        places: list[tuple[str, Any]] = [("features", encoder) for encoder in self._encoders.values()]
        places += [("items", None), *(("network", given) for given in self.experiment.models)]
        return sum(len(self._methods(*place, drawn.shape.shot)) for drawn in tasks.values() for place in places)

    @property
    def _encoders(self) -> dict[str, Any]:
        """The encoders by name; of features that were given, the name alone."""
        known = {str(encoder): encoder for encoder in self.experiment.encoders}
        return {name: known.get(name, name) for name in self.features}

    def _methods(self, ground: str, on: Any, shot: int) -> list[Method]:
        """The methods on features, on items or on a network that are evaluated on this one, at so many shots."""
        uses = [use for use in self.experiment.uses if use.method.evaluated_on == ground]
        chosen = [use.method for use in uses if use.applies(on, shot)]
        return list({method.spelling: method for method in chosen}.values())

    def _evaluated(
        self,
        task_file: str,
        drawn: DrawnSet,
        encoder: str,
        on: Features | Catalog | None,
        methods: Sequence[Method],
        model: Model | None = None,
    ) -> list[Results | None]:
        """What methods count on the features of one encoder, or on the items, where they may adapt a model."""
        steps, seed, task_set = self.steps, self.experiment.seed, drawn.tasks
        inputs: list[Any] = [task_set, on, *([on.stamp] if isinstance(on, Catalog) else [])]
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
        made: dict[str, Results | None] = {
            method.spelling: steps.current(Results, names[method.spelling], inputs, parameters[method.spelling])
            for method in methods
        }
        missing = [method for method in methods if made[method.spelling] is None]
        for method in missing:
            steps.announce(names[method.spelling])
        if missing and not steps.dry_run:
            assert task_set is not None
            assert on is not None
            given: dict[str, Any] = {"catalog": on, "model": model} if isinstance(on, Catalog) else {"features": on}
            given |= {"seed": seed, "allow_seen": self.experiment.allow_seen}
            chosen = missing
            if tune_on is not None and model is not None:
                chosen = [self._tuned(method, tune_on, task_set, encoder, model) for method in missing]
            evaluated = evaluate(task_set, methods=chosen, **given).by_method()
            for method, one in zip(missing, evaluated, strict=True):
                noted = one if tune_on is None else _tuned_on(one, tune_on)
                made[method.spelling] = steps.keep(names[method.spelling], noted, inputs, parameters[method.spelling])
        return [made[method.spelling] for method in methods]

    def _tuned(self, method: Method, tune_on: TaskSet, tasks: TaskSet, name: str, model: Model) -> Method:
        """The method with the learning rate that is best on the validation tasks: chosen once for all task sets."""
        from shotproof.evaluation.on_networks import tuned_methods

        assert isinstance(method, Adaptation)
        assert self.experiment.tune_on is not None
        key = (name, tune_on.digest, method.spelling)
        if key not in self.tuned:
            rates, seed = self.experiment.tune_on.rates, self.experiment.seed
            (self.tuned[key],) = tuned_methods(
                [method], tune_on, tasks, self.catalog, model, rates, seed, current_runtime()
            )
        return self.tuned[key]


def _tuned_on(results: Results, tune_on: TaskSet) -> Results:
    """With the tasks that the learning rate was chosen on in the record, as `evaluate` notes them."""
    sources = {**results.record.sources, "tune_on": Source(tune_on.digest, tune_on.record.name)}
    return Results(results.table, replace(results.record, sources=sources))


def _method_parameters(method: Method, seed: int) -> list[Any]:
    """What decides a method's answers; of one's own code, the digest of its file is among the parameters."""
    return [method.spelling, method.parameters(), seed]
