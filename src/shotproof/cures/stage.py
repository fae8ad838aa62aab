"""Task sets of one part of the classes, on which treatments are evaluated."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.analysis.inputs import Inputs
from shotproof.analysis.placebo_sets import placebo_of
from shotproof.analysis.reevaluation.drawing import Drawing
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.runtime.runtime import Runtime
from shotproof.cures.remedy import Treatment, has_items, select_items
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.features.transforms import transform
from shotproof.learners.method import Method
from shotproof.results.origin import PLACEBO
from shotproof.results.results import Results
from shotproof.tasks.changed import Changed, Variants
from shotproof.tasks.sampler import sample, samplers
from shotproof.tasks.taskset import TaskSet


@dataclass(frozen=True)
class Stage:
    """Task sets with their placebos, and the data that they are drawn from.

    inputs: catalog, attributes and tasks; no results
    features: features of each encoder that a treatment may use, of all items of the task sets
    left_out: reasons why task sets could not be drawn here, by label
    """

    inputs: Inputs
    left_out: Mapping[str, str] = field(default_factory=dict)
    _treated: dict[Any, Features] = field(default_factory=dict, compare=False, repr=False)
    _chosen: dict[tuple[str, str], TaskSet] = field(default_factory=dict, compare=False, repr=False)
    _results: dict[tuple[str, ...], Results] = field(default_factory=dict, compare=False, repr=False)

    @property
    def tasks(self) -> Sequence[TaskSet]:
        """Return the task sets, placebos last."""
        return self.inputs.tasks

    @cached_property
    def items(self) -> pa.ChunkedArray:
        """Return the names of all items that the tasks may have, also when they are drawn again."""
        catalog = self.inputs.catalogs[0]
        splits = {tasks.record.split for tasks in self.tasks}
        parts = [catalog.in_split(split).item_column for split in sorted(splits, key=str)]
        changed = [Variants.of(tasks, catalog).names for tasks in self.tasks if tasks.is_changed]
        return pc.unique(pa.chunked_array([chunk for part in (*parts, *changed) for chunk in _chunks(part)]))

    def features_of(self, treatment: Treatment, features: Features) -> Features:
        """Return the features of the stage's items with the steps of a treatment applied."""
        key = (features.digest, tuple(map(str, treatment.steps)))
        if key not in self._treated:
            own = self._treated.get((features.digest, ()))
            if own is None:
                own = self._treated[features.digest, ()] = select_items(features, self.items)
            self._treated[key] = transform(own, treatment.steps) if treatment.steps else own
        return self._treated[key]

    def release(self) -> None:
        """Forget treated features, which may be large."""
        self._treated.clear()

    def chosen(self, sampler: str, tasks: TaskSet, features: Features) -> TaskSet:
        """Choose the supports of a task set anew."""
        key = (sampler, tasks.digest)
        if key not in self._chosen:
            made = samplers.make(sampler)
            attributes = self.inputs.attributes[0] if self.inputs.attributes else None
            data: dict[str, Any] = {"attributes": attributes, "features": features}
            self._chosen[key] = sample(
                self.inputs.catalogs[0],
                made,
                split=tasks.record.split,
                seed=tasks.record.seed or 0,
                like=tasks,
                **{role: value for role, value in data.items() if role in made.takes and value is not None},
            )
        return self._chosen[key]

    def evaluate(
        self, tasks: Sequence[TaskSet], features: Features, methods: Sequence[Method], runtime: Runtime | None
    ) -> list[Results]:
        """Evaluate methods on task sets; the same evaluation is not repeated."""
        evaluated = []
        for task_set in tasks:
            key = (task_set.digest, features.digest, *(method.spelling for method in methods))
            if key not in self._results:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)  # remarks on answers that are only compared here
                    self._results[key] = evaluate(
                        task_set, features, methods, seed=self.inputs.seed, allow_seen=True, runtime=runtime
                    )
            evaluated.append(self._results[key])
        return evaluated


def draw_stage(
    at_hand: Inputs,
    catalog: Catalog,
    part: str,
    *,
    features: Features | None = None,
    attributes: Attributes | None = None,
    tasks: int | None = None,
    changed_tasks: int | None = None,
    shot: int | None = None,
    support_contexts: int | None = None,
    runtime: Runtime | None = None,
) -> Stage:
    """Draw the task sets at hand again from one part of the classes, with their placebos.

    Sets that this part cannot give are left out, with those that are drawn like them.

    Args:
        at_hand: task sets with the data that they were drawn from
        catalog: items with the part of each class as their split
        part: part to draw from
        features: features that changed items must be in; None requires none
        attributes: attributes of all parts; None is those at hand
        tasks: number of tasks of each set; None is that of the set at hand
        changed_tasks: number of tasks of sets of changed items, of which only those of the tasks are needed; None is as
            many as of others, and all items that tasks may have are needed
        shot: number of supports of each class; None is that of the set at hand
        support_contexts: number of contexts that the supports of each class are from, for sets that plant contexts;
            None is that of the set at hand
        runtime: runtime for drawing
    """
    draw = _Redrawing(at_hand, catalog, part, attributes, tasks, changed_tasks, shot, support_contexts, runtime)
    drawn: dict[str, TaskSet] = {}
    left_out: dict[str, str] = {}
    originals = [task_set for task_set in at_hand.tasks if task_set.record.sampler_name != PLACEBO]
    for task_set in _references_first(originals):
        try:
            again = draw.draw(task_set, drawn)
            if features is not None and again.is_changed and not has_items(features, Variants.of(again, catalog).names):
                raise InsufficientData("there are no features of the changed items of these classes")
            drawn[task_set.digest] = again
        except InputError as error:
            left_out[task_set.record.name or str(task_set.record.sampler)] = str(error)
    known = [] if attributes is None else [attributes]
    inputs = replace(
        at_hand,
        results=(),
        catalogs=[catalog],
        tasks=list(drawn.values()),
        attributes=[*known, *at_hand.attributes],
        keeper=None,
    )
    return with_placebo_sets(Stage(inputs, left_out), runtime)


def plants_contexts(tasks: TaskSet) -> bool:
    """Return whether tasks plant one or several contexts in the supports of each class."""
    sampler = tasks.record.sampler
    if sampler is None or sampler.name not in samplers:
        return False
    return "support_contexts" in {option.name for option in samplers.get(sampler.name).options()}


def stage_at_hand(at_hand: Inputs, originals: Sequence[TaskSet], runtime: Runtime | None) -> Stage:
    """Return the task sets at hand as a stage, with their placebos."""
    placebos = [
        task_set
        for task_set in at_hand.tasks
        if task_set.record.sampler_name == PLACEBO
        and task_set.record.source("like") in {original.digest for original in originals}
    ]
    stage = Stage(replace(at_hand, results=(), tasks=[*originals, *placebos], keeper=None))
    return with_placebo_sets(stage, runtime)


def with_placebo_sets(stage: Stage, runtime: Runtime | None) -> Stage:
    """Add the placebos that task sets lack, if the data can give them."""
    have = {task_set.record.source("like") for task_set in stage.tasks if task_set.record.sampler_name == PLACEBO}
    placebos = []
    for task_set in stage.tasks:
        sampler = task_set.record.sampler
        needs_placebo = sampler is not None and sampler.name in samplers and samplers.get(sampler.name).has_placebo
        if needs_placebo and task_set.digest not in have:
            with contextlib.suppress(InsufficientData):
                placebos.append(placebo_of(task_set, stage.inputs, runtime))
    return Stage(replace(stage.inputs, tasks=[*stage.tasks, *placebos]), stage.left_out)


@dataclass(frozen=True)
class _Redrawing:
    """Draws task sets again from one part of the classes; see `draw_stage`."""

    at_hand: Inputs
    catalog: Catalog
    part: str
    attributes: Attributes | None
    tasks: int | None
    changed_tasks: int | None
    shot: int | None
    support_contexts: int | None
    runtime: Runtime | None

    def draw(self, task_set: TaskSet, drawn: Mapping[str, TaskSet]) -> TaskSet:
        """Draw a task set again; `drawn` has those that were drawn before, by the digest of their originals.

        Raises:
            InsufficientData: the part is too small for such tasks.
            InputError: an input is missing, or the set is drawn like one that is left out.
        """
        record = task_set.record
        drawing = Drawing.of(task_set, self.at_hand)
        like = None
        if "like" in record.sources:
            like = drawn.get(record.sources["like"].digest)
            if like is None:
                raise InsufficientData(f"the {record.sources['like'].name} tasks that they are matched to are missing")
        sampler, tasks = drawing.sampler, self.tasks or len(task_set)
        if self.support_contexts is not None and record.sampler is not None:
            options = {**record.sampler.options, "support_contexts": self.support_contexts}
            sampler = samplers.make({"name": record.sampler.name, **options})
        if isinstance(sampler, Changed) and self.changed_tasks is not None:
            sampler, tasks = replace(sampler, most_items=1), self.changed_tasks
        sizes: dict[str, Any] = {
            name: getattr(record, name) for name in ("way", "shot", "query") if getattr(record, name)
        } | ({"shot": self.shot} if self.shot is not None else {})
        data = {role: value for role, value in drawing.data.items() if role in ("attributes", "features")}
        if "attributes" in data and self.attributes is not None:
            data["attributes"] = self.attributes
        return sample(
            self.catalog,
            sampler,
            split=self.part,
            tasks=tasks,
            seed=record.seed or 0,
            like=like,
            name=record.name,
            runtime=self.runtime,
            **sizes,
            **data,
        )


def _references_first(task_sets: Sequence[TaskSet]) -> list[TaskSet]:
    """Order task sets such that each comes after the set that it is drawn like."""
    digests = {task_set.digest for task_set in task_sets}
    ordered: list[TaskSet] = []
    remaining = list(task_sets)
    while remaining:
        placed = {task_set.digest for task_set in ordered}
        ready = [
            task_set
            for task_set in remaining
            if (like := task_set.record.source("like")) not in digests or like in placed
        ]
        ordered += ready or remaining
        remaining = [task_set for task_set in remaining if task_set not in ordered] if ready else []
    return ordered


def _chunks(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return list(array.chunks) if isinstance(array, pa.ChunkedArray) else [array]
