"""Worlds of shapes whose words a classifier relies on to a known degree, with what a search for a cure starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.cures.class_parts import ClassParts, part_classes
from shotproof.cures.remedy import RemedyData, remedies
from shotproof.cures.search import Plan
from shotproof.cures.stage import stage_at_hand
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.learners.method import make_method
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld

WAY, SHOT, QUERY = 3, 3, 4
METHOD = "ncc"
COLUMNS = ["item", "path", "label", "split"]


@dataclass(frozen=True)
class CuredWorld:
    """Random and FewSTAB tasks of the test classes of a world, and results of a method on them."""

    catalog: Catalog
    features: Features
    attributes: Attributes
    tasks: tuple[TaskSet, ...]
    inputs: Inputs

    @property
    def parts(self) -> ClassParts:
        """The classes by what they are for."""
        return part_classes(self.catalog, "test", WAY)

    @property
    def data(self) -> RemedyData:
        """What remedies are fitted on."""
        return RemedyData(self.parts.catalog, self.features, make_method(METHOD), attributes=self.attributes)

    def plan(self, *spellings: str, tasks: int = 20, **changes: Any) -> Plan:
        """A plan that tries these remedies, on data with these changes."""
        return Plan(
            at_hand=self.inputs,
            data=replace(self.data, **changes),
            parts=self.parts,
            confirming=stage_at_hand(self.inputs, self.tasks, None),
            remedies=[remedies.make(spelling) for spelling in spellings],
            tasks=tasks,
        )


@cache
def cured_world(share: float, seed: int = 0, *, items: int = 60, tasks: int = 150) -> CuredWorld:
    """Twelve classes to fit and choose on and eight others, of which a classifier relies on words to this degree."""
    world = ShapesWorld(classes=20, train_classes=12, items=items, seed=seed)
    catalog = plain_catalog(world.catalog())
    features = encode(world.catalog(), DialEncoder(share, seed=seed))
    attributes = world.attributes()
    task_sets = draw_tasks(catalog, attributes, tasks)
    results = [evaluate(task_set, features, METHOD) for task_set in task_sets]
    inputs = Inputs(
        results, list(task_sets), [catalog], [features], [attributes], halvings=20, tasks_per_half=min(tasks, 40)
    )
    return CuredWorld(catalog, features, attributes, task_sets, inputs)


def plain_catalog(catalog: Catalog, columns: Sequence[str] = COLUMNS) -> Catalog:
    """The catalog without other columns, which would be contexts."""
    return Catalog(catalog.table.select(list(columns)), catalog.root, catalog.record)


def draw_tasks(catalog: Catalog, attributes: Attributes, tasks: int) -> tuple[TaskSet, ...]:
    """Random and FewSTAB tasks of the test classes."""
    shape: dict[str, Any] = {"way": WAY, "shot": SHOT, "query": QUERY, "tasks": tasks, "split": "test"}
    return (
        sample(catalog, "random", **shape),
        sample(catalog, "fewstab", attributes=attributes, **shape),
    )
