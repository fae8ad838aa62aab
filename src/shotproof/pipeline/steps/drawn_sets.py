"""The task sets of a run: one file for each sampler, set of attributes, number of shots and seed."""

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
from shotproof.pipeline.steps.steps import Steps, file_name, file_stamps
from shotproof.tasks.sampler import Sampler, sample
from shotproof.tasks.taskset import TaskSet, TaskShape
from shotproof.tasks.uniform.placebo import Placebo
from shotproof.tasks.uniform.random import Random


@dataclass(frozen=True)
class DrawnSet:
    """A task set, None in a dry run that did not make it; and the shape that was asked for."""

    tasks: TaskSet | None
    shape: TaskShape


@dataclass(frozen=True)
class DrawnSets:
    """Draws what an experiment asks for; what a dry run did not make is None."""

    experiment: Experiment
    steps: Steps
    catalog: Catalog
    attributes: dict[str, Attributes | None]
    features: dict[str, Features | None]
    of_sampler: dict[tuple[str, int, int], TaskSet | None] = field(default_factory=dict)  # by sampler, shots and seed

    def of_draw(self, draw: Draw) -> dict[str, DrawnSet]:
        """One for each sampler, set of attributes, number of shots and seed, by file; those that it is like before it.

        Raises:
            InsufficientData: the data cannot give such tasks.
        """
        found: dict[str, DrawnSet] = {}
        for sampler in draw.sampler.sets(self.catalog).values():
            for words in self._attribute_names(draw, sampler):
                for shot in draw.shots:
                    for seed in draw.seeds:
                        data = self._data(draw, sampler, words, (shot, seed))
                        name = self._task_file(draw, sampler, words, shot, seed)
                        drawn = self._task_set(name, draw, sampler, shot, seed, data)
                        found[name] = DrawnSet(drawn, TaskShape(draw.way, shot, draw.query))
                        self.of_sampler.setdefault((str(draw.sampler), shot, seed), drawn)
                        if self.experiment.placebo and sampler.has_placebo:
                            sham = name.replace("tasks-", "tasks-placebo-of-", 1)
                            placebo = self._task_set(sham, draw, Placebo(), shot, seed, {"like": drawn})
                            found[sham] = DrawnSet(placebo, found[name].shape)
        return found

    def fewer_ways(self, draw: Draw) -> int | None:
        """Find the most ways, below those of a draw by attributes, for which the data has all of its tasks."""
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

    def _task_set(
        self, name: str, draw: Draw, sampler: Sampler, shot: int, seed: int, data: dict[str, Any]
    ) -> TaskSet | None:
        shape: dict[str, Any] = {"way": draw.way, "shot": shot, "query": draw.query, "tasks": draw.tasks, "seed": seed}

        def make() -> TaskSet:
            return sample(self.catalog, sampler, split=draw.split, **shape, **data)

        made: TaskSet | None = self.steps.step(
            TaskSet,
            name,
            [self.catalog, *data.values(), file_stamps(sampler)],
            [str(sampler), shape, draw.split, sorted(data)],
            make,
        )
        return made

    def _attribute_names(self, draw: Draw, sampler: Sampler) -> list[str | None]:
        """The sets of attributes that a sampler is given, one after the other; None: none."""
        if draw.attributes is not None:
            return [draw.attributes]
        return list(self.attributes) if "attributes" in sampler.takes and self.attributes else [None]

    def _data(
        self,
        draw: Draw,
        sampler: Sampler,
        words: str | None,
        place: tuple[int, int],
    ) -> dict[str, Any]:
        """What a sampler takes beside the catalog; None in a dry run where it is not there yet."""
        data: dict[str, Any] = {}
        if words is not None and "attributes" in sampler.takes:
            data["attributes"] = self.attributes[words]
        if "features" in sampler.takes:
            data["features"] = self.features[draw.encoder or next(iter(self.features))]
        if draw.like is not None:
            data["like"] = self.of_sampler[draw.like, *place]
        return data

    def _task_file(self, draw: Draw, sampler: Sampler, words: str | None, shot: int, seed: int) -> str:
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
