"""What results are held against: answers computed anew, on all tasks of a set or on some drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.core import draws
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.method import Method
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model


@dataclass(frozen=True)
class Recomputation:
    """How answers are computed anew.

    features: that methods are evaluated on; model, catalog: in their place, of methods that adapt a network
    sample: on how many tasks of each set; None: on all
    seed: which tasks these are
    """

    features: Features | None = None
    model: Model | None = None
    catalog: Catalog | None = None
    sample: int | None = None
    seed: int = 0
    runtime: Runtime | None = None

    def __post_init__(self) -> None:
        if self.sample is not None and self.sample < 1:
            raise InputError(f"sample: expected a number of tasks above 0, found {self.sample}")

    def chosen(self, tasks: TaskSet) -> TaskSet:
        """The tasks that are computed anew; they keep their numbers, which methods that draw go by."""
        if self.sample is None or self.sample >= len(tasks):
            return tasks
        keys = draws.bits(self.seed, np.arange(len(tasks)))
        kept = np.zeros(len(tasks), dtype=np.bool_)
        kept[np.argsort(keys, kind="stable")[: self.sample]] = True
        return TaskSet(tasks.table.filter(pa.array(np.repeat(kept, np.diff(tasks.starts)))), tasks.record)

    def results(self, tasks: TaskSet, methods: Sequence[Method], seed: int) -> Results:
        """What methods answer on tasks; seed: of methods that draw."""
        if self.features is not None:
            return evaluate(tasks, self.features, methods, seed=seed, allow_seen=True, runtime=self.runtime)
        return evaluate(
            tasks,
            methods=methods,
            catalog=self.catalog,
            model=self.model,
            seed=seed,
            allow_seen=True,
            runtime=self.runtime,
        )
