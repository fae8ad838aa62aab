"""Task sets of a run: one file per sampler, set of attributes, number of shots and seed."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InsufficientData
from shotproof.features.features import Features
from shotproof.pipeline.draw_entries import Draw
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.experiment_file import TuneOn
from shotproof.pipeline.steps.steps import Steps, file_name, file_stamps, layer_stamps
from shotproof.tasks.changed import ChangingSampler
from shotproof.tasks.sampler import Sampler, sample
from shotproof.tasks.taskset import TaskSet, TaskShape
from shotproof.tasks.uniform.placebo import Placebo
from shotproof.tasks.uniform.random import Random


@dataclass(frozen=True)
class DrawnSet:
    """Task set with its requested shape, and whether its items are changed; a dry run does not draw it (None)."""

    tasks: TaskSet | None
    shape: TaskShape
    is_changed: bool = False


@dataclass(frozen=True)
class DrawnSets:
    """Task sets that an experiment draws; None for those that a dry run does not draw."""

    experiment: Experiment
    steps: Steps
    catalog: Catalog
    attributes: dict[str, Attributes | None]
    features: dict[str, Features | None]
    by_sampler: dict[tuple[str, int, int], TaskSet | None] = field(default_factory=dict)  # by sampler, shots and seed
    changed_samplers: set[str] = field(default_factory=set)  # those whose tasks have changed items

    def draw_entry(self, draw: Draw) -> dict[str, DrawnSet]:
        """Draw the task sets of an entry: one per sampler, set of attributes, number of shots and seed, by file name.

        The task sets that the entry is matched to must be drawn before.

        Raises:
            InsufficientData: the data is not sufficient for the tasks.
        """
        drawn_sets: dict[str, DrawnSet] = {}
        keeps_changes = draw.sampler.keeps_changes and draw.like in self.changed_samplers
        is_changed = isinstance(draw.sampler, ChangingSampler) or keeps_changes
        if is_changed:
            self.changed_samplers.add(str(draw.sampler))
        for sampler in draw.sampler.sets(self.catalog).values():
            for words in self._attribute_names(draw, sampler):
                for shot in draw.shots:
                    for seed in draw.seeds:
                        data = self._data(draw, sampler, words, (shot, seed))
                        name = self._task_file(draw, sampler, words, shot, seed)
                        tasks = self._draw(name, draw, sampler, shot, seed, data)
                        shape = TaskShape(draw.way, shot, draw.query)
                        drawn_sets[name] = DrawnSet(tasks, shape, is_changed)
                        self.by_sampler.setdefault((str(draw.sampler), shot, seed), tasks)
                        if self.experiment.placebo and sampler.has_placebo:
                            placebo_name = name.replace("tasks-", "tasks-placebo-of-", 1)
                            placebo = self._draw(placebo_name, draw, Placebo(), shot, seed, {"like": tasks})
                            drawn_sets[placebo_name] = DrawnSet(placebo, drawn_sets[name].shape)
        return drawn_sets

    def find_fewer_ways(self, draw: Draw) -> int | None:
        """Find the largest smaller number of ways for which the data suffices; None if there is none or unknown."""
        if "attributes" not in draw.sampler.needs or not self.attributes or None in self.attributes.values():
            return None
        for way in range(draw.way - 1, 1, -1):
            with contextlib.suppress(InsufficientData):
                for sampler in draw.sampler.sets(self.catalog).values():
                    for words in self._attribute_names(draw, sampler):
                        for shot, seed in product(draw.shots, draw.seeds):
                            data = self._data(draw, sampler, words, (shot, seed))
                            shape: dict[str, Any] = {"way": way, "shot": shot, "query": draw.query}
                            sample(
                                self.catalog, sampler, split=draw.split, tasks=draw.tasks, seed=seed, **shape, **data
                            )
                return way
        return None

    def _draw(
        self, name: str, draw: Draw, sampler: Sampler, shot: int, seed: int, data: dict[str, Any]
    ) -> TaskSet | None:
        """Draw one task set, unless its file is up to date."""
        shape: dict[str, Any] = {"way": draw.way, "shot": shot, "query": draw.query, "tasks": draw.tasks, "seed": seed}

        def make() -> TaskSet:
            return sample(self.catalog, sampler, split=draw.split, **shape, **data)

        tasks: TaskSet | None = self.steps.step(
            TaskSet,
            name,
            [self.catalog, *layer_stamps(self.catalog), *data.values(), file_stamps(sampler)],
            [str(sampler), shape, draw.split, sorted(data)],
            make,
        )
        return tasks

    def _attribute_names(self, draw: Draw, sampler: Sampler) -> list[str | None]:
        """Return the names of the sets of attributes that a sampler is used with; None for no attributes."""
        if draw.attributes is not None:
            return [draw.attributes]
        return list(self.attributes) if "attributes" in sampler.takes and self.attributes else [None]

    def _data(
        self,
        draw: Draw,
        sampler: Sampler,
        words: str | None,
        shot_and_seed: tuple[int, int],
    ) -> dict[str, Any]:
        """Return the inputs of a sampler besides the catalog; None for those that a dry run does not compute."""
        data: dict[str, Any] = {}
        if words is not None and "attributes" in sampler.takes:
            data["attributes"] = self.attributes[words]
        if "features" in sampler.takes:
            data["features"] = self.features[draw.encoder or next(iter(self.features))]
        if draw.like is not None:
            data["like"] = self.by_sampler[draw.like, *shot_and_seed]
        return data

    def _task_file(self, draw: Draw, sampler: Sampler, words: str | None, shot: int, seed: int) -> str:
        """Return the name of the file of a task set, with everything that differs from the first entry."""
        parts = [file_name(str(sampler)), *([file_name(words)] if words else [])]
        parts += [f"on-{self.steps.short_name(draw.encoder)}"] if draw.encoder else []
        parts += [f"like-{file_name(draw.like)}"] if draw.like else []
        parts += [f"{draw.way}way-{shot}shot", *([f"seed{seed}"] if draw.seeds != (0,) else [])]
        default = self.experiment.draws[0]
        parts += [f"{draw.query}query"] if draw.query != default.query else []
        parts += [f"{draw.tasks}tasks"] if draw.tasks != default.tasks else []
        parts += [f"split-{file_name(draw.split)}"] if draw.split and draw.split != default.split else []
        return f"tasks-{'-'.join(parts)}.parquet"


@dataclass(frozen=True)
class ValidationSets:
    """Random tasks of the validation split, drawn once per shape; None for those that a dry run does not draw."""

    tune_on: TuneOn
    steps: Steps
    catalog: Catalog
    seed: int
    drawn: dict[TaskShape, TaskSet | None] = field(default_factory=dict)

    def of(self, shape: TaskShape) -> TaskSet | None:
        """Return the validation tasks of a shape."""
        if shape not in self.drawn:
            self.drawn[shape] = self._draw(shape)
        return self.drawn[shape]

    def _draw(self, shape: TaskShape) -> TaskSet | None:
        """Draw validation tasks, unless their file is up to date."""
        split, tasks = self.tune_on.split, self.tune_on.tasks
        sizes: dict[str, Any] = {"way": shape.way, "shot": shape.shot, "query": shape.query}
        name = f"tune-on-{file_name(split)}-{shape.way}way-{shape.shot}shot-{shape.query}query.parquet"

        def make() -> TaskSet:
            return sample(self.catalog, Random(), split=split, tasks=tasks, seed=self.seed, **sizes)

        parameters = [sizes, split, tasks, self.seed]
        return self.steps.step(TaskSet, name, [self.catalog], parameters, make, compared=False)
