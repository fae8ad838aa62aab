"""Placebos of task sets built from attributes or contexts, drawn and evaluated like the sets themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shotproof.analysis.inputs import Inputs
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.results.evaluated import Evaluated, evaluated_sets
from shotproof.results.origin import PLACEBO
from shotproof.results.results import Results
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet


@dataclass(frozen=True)
class WithPlacebos:
    """Inputs with the placebos they lacked, and notes on those that could not be drawn."""

    inputs: Inputs
    notes: list[str]


def with_placebos(inputs: Inputs, runtime: Runtime | None = None) -> WithPlacebos:
    """Draw and evaluate the placebo of each task set that can have one and lacks it.

    Args:
        inputs: results with their task sets, catalogs and features; sets whose inputs are missing are skipped
        runtime: runtime for the evaluation

    Returns:
        The inputs with further task sets and results, and a note for each placebo that the data is too small for.
    """
    sets = evaluated_sets(inputs.results)
    tasks: list[TaskSet] = []
    results: list[Results] = []
    notes: list[str] = []
    for task_set in sets:
        origins = {
            candidate.label: candidate.origin for candidate in sets if candidate.origin.design == task_set.origin.design
        }
        same_seed = {label: origin for label, origin in origins.items() if origin.seed == task_set.origin.seed}
        if not task_set.origin.has_placebo or task_set.origin.placebo(same_seed):
            continue
        try:
            placebo = placebo_of(
                inputs.task_set(task_set.origin.tasks_digest, task_set.origin.design.catalog), inputs, runtime
            )
            evaluated = [
                _evaluate_placebo(placebo, encoder, task_set, inputs, runtime) for encoder in task_set.features
            ]
        except InsufficientData as error:
            notes.append(f"{task_set.label} tasks have no placebo: {error}")
            continue
        except InputError:  # an input is missing
            continue
        tasks.append(placebo)
        results += evaluated
    return WithPlacebos(replace(inputs, tasks=[*inputs.tasks, *tasks], results=[*inputs.results, *results]), notes)


def placebo_of(tasks: TaskSet, inputs: Inputs, runtime: Runtime | None = None) -> TaskSet:
    """Draw the placebo of a task set, with its seed."""
    record = tasks.record
    catalog = inputs.catalog(record.source("catalog"))
    return sample(catalog, PLACEBO, split=record.split, like=tasks, seed=record.seed or 0, runtime=runtime)


def _evaluate_placebo(
    tasks: TaskSet, encoder: str, original: Evaluated, inputs: Inputs, runtime: Runtime | None
) -> Results:
    """Evaluate a placebo with the methods that an encoder has on the original task set."""
    methods: Sequence[str] = [classifier.method for classifier in original.values if classifier.encoder == encoder]
    features = inputs.features_of(encoder, original.features[encoder])
    return evaluate(tasks, features, [inputs.method(method) for method in methods], seed=inputs.seed, runtime=runtime)
