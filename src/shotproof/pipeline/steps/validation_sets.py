"""The validation tasks of a run, on which the learning rates of adaptations are chosen: one file per shape of tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shotproof.catalog.catalog import Catalog
from shotproof.pipeline.steps.steps import Steps, file_name
from shotproof.pipeline.tune_on import TuneOn
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet, TaskShape
from shotproof.tasks.uniform.random import Random


@dataclass(frozen=True)
class ValidationSets:
    """Random tasks of the validation split, each shape drawn once; what a dry run did not make is None."""

    tune_on: TuneOn
    steps: Steps
    catalog: Catalog
    seed: int
    drawn: dict[TaskShape, TaskSet | None] = field(default_factory=dict)

    def of(self, shape: TaskShape) -> TaskSet | None:
        """Those of this shape."""
        if shape not in self.drawn:
            self.drawn[shape] = self._drawn(shape)
        return self.drawn[shape]

    def _drawn(self, shape: TaskShape) -> TaskSet | None:
        split, tasks = self.tune_on.split, self.tune_on.tasks
        sizes: dict[str, Any] = {"way": shape.way, "shot": shape.shot, "query": shape.query}
        name = f"tune-on-{file_name(split)}-{shape.way}way-{shape.shot}shot-{shape.query}query.parquet"

        def make() -> TaskSet:
            return sample(self.catalog, Random(), split=split, tasks=tasks, seed=self.seed, **sizes)

        parameters = [sizes, split, tasks, self.seed]
        return self.steps.step(TaskSet, name, [self.catalog], parameters, make, compared=False)
