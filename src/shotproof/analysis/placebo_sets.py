"""Placebos of task sets that attributes or contexts decide: drawn and evaluated like the sets themselves."""

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
    """Inputs with the placebos that it lacked, and why some could not be made."""

    inputs: Inputs
    notes: list[str]


def with_placebos(inputs: Inputs, runtime: Runtime | None = None) -> WithPlacebos:
    """Draw and evaluate the placebo of each task set that can have one and has none.

    Args:
        inputs: results with their task sets, catalogs and features; sets whose inputs is not there are left alone
        runtime: how it is computed

    Returns:
        The inputs with further task sets and results, and a note for each placebo that the data is too small for.
    """
    sets = evaluated_sets(inputs.results)
    tasks: list[TaskSet] = []
    results: list[Results] = []
    notes: list[str] = []
    for one in sets:
        origins = {other.label: other.origin for other in sets if other.origin.design == one.origin.design}
        same_seed = {label: origin for label, origin in origins.items() if origin.seed == one.origin.seed}
        if not one.origin.has_placebo or one.origin.placebo(same_seed):
            continue
        try:
            drawn = placebo_of(inputs.task_set(one.origin.tasks_digest, one.origin.design.catalog), inputs, runtime)
            evaluated = [_evaluated(drawn, encoder, one, inputs, runtime) for encoder in one.features]
        except InsufficientData as error:
            notes.append(f"no placebo of {one.label} tasks: {error}")
            continue
        except InputError:  # what it needs was not given
            continue
        tasks.append(drawn)
        results += evaluated
    return WithPlacebos(replace(inputs, tasks=[*inputs.tasks, *tasks], results=[*inputs.results, *results]), notes)


def placebo_of(tasks: TaskSet, inputs: Inputs, runtime: Runtime | None = None) -> TaskSet:
    """The placebo of a task set, with its seed."""
    record = tasks.record
    catalog = inputs.catalog(record.source("catalog"))
    return sample(catalog, PLACEBO, split=record.split, like=tasks, seed=record.seed or 0, runtime=runtime)


def _evaluated(tasks: TaskSet, encoder: str, like: Evaluated, inputs: Inputs, runtime: Runtime | None) -> Results:
    methods: Sequence[str] = [one.method for one in like.values if one.encoder == encoder]
    features = inputs.features_of(encoder, like.features[encoder])
    return evaluate(tasks, features, [inputs.method(one) for one in methods], seed=inputs.seed, runtime=runtime)
