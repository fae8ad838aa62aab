"""The learning rate of adaptations, chosen on validation tasks, never on the tasks that are evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core import draws
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.batches import items_of
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model


def tuned_methods(
    methods: Sequence[Adaptation],
    tune_on: TaskSet,
    tasks: TaskSet,
    catalog: Catalog,
    model: Model,
    rates: Sequence[float],
    seed: int,
    runtime: Runtime,
) -> list[Adaptation]:
    """Each method with the learning rate of the best accuracy on the validation tasks; of equals, the smallest.

    Args:
        methods: whose rates are chosen
        tune_on: the validation tasks
        tasks: the tasks that are evaluated afterwards, for a check that they share no item
        catalog: of the items of both
        model: what is adapted
        rates: the rates to choose from; none: each method's own
        seed: for methods that draw
        runtime: device, workers, cache and progress

    Raises:
        InputError: validation tasks and tasks share items.
    """
    from shotproof.evaluation.on_networks import NetworkEvaluation

    _require_other_items(tune_on, tasks)
    seeds = (draws.bits(seed, tune_on.task_of_row[tune_on.starts[:-1]]) >> np.uint64(33)).astype(np.int64)
    evaluation = NetworkEvaluation(tune_on, catalog, model, seeds, runtime)
    chosen = []
    for method in methods:
        tried = [method.with_rate(rate) for rate in sorted(rates or method.rates)]
        accuracies = evaluation.accuracies(tried)
        chosen.append(tried[accuracies.index(max(accuracies))])  # the first of equals
    return chosen


def _require_other_items(tune_on: TaskSet, tasks: TaskSet) -> None:
    items = pc.unique(items_of(tune_on))
    shared = items.filter(pc.is_in(items, pc.unique(items_of(tasks))))
    if len(shared):
        raise InputError(
            f"the validation tasks share {len(shared):,} items with the tasks, e.g. '{shared[0]}': a learning rate "
            "must not be chosen on what it is evaluated on; draw validation tasks of another split"
        )
