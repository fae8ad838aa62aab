"""Task sets of one part of the classes: the same kinds of tasks, of that part's classes alone, with placebos."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import shotproof as sp
from shotproof.analysis.inputs import Inputs
from shotproof.catalog.changed_catalog import changed_names
from shotproof.cures.class_parts import CHOOSE, CONFIRM, FIT
from shotproof.cures.effects import AS_IS
from shotproof.cures.remedy import Treatment
from shotproof.cures.stage import Stage, draw_stage, stage_at_hand
from shotproof.features.features import Features
from shotproof.results.origin import PLACEBO
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet
from tests.cured_worlds import QUERY, SHOT, WAY, CuredWorld, cured_world
from tests.cures.remedy_data import CHANGE


@pytest.fixture(scope="module")
def world() -> CuredWorld:
    return cured_world(0.6, items=24, tasks=10)


def labels_of(tasks: TaskSet) -> set[str]:
    return set(tasks.table.column("label").to_pylist())


def samplers_of(stage: Stage) -> list[str | None]:
    return [tasks.record.sampler_name for tasks in stage.tasks]


def changed_like(world: CuredWorld, like: TaskSet, name: str = CHANGE) -> TaskSet:
    """The tasks with their queries changed."""
    return sp.sample(world.catalog, f"changed(change='{CHANGE}')", like=like, split="test", name=name)


def drawn(world: CuredWorld, part: str, sets: list[TaskSet] | None = None, **options: Any) -> Stage:
    inputs = replace(world.inputs, tasks=sets or list(world.tasks))
    return draw_stage(inputs, world.parts.catalog, part, attributes=world.attributes, **options)


@pytest.mark.parametrize("part", [FIT, CHOOSE, CONFIRM])
def test_tasks_of_a_part_have_its_classes_alone(world: CuredWorld, part: str) -> None:
    stage = drawn(world, part, tasks=7)
    assert samplers_of(stage) == ["random", "fewstab", PLACEBO]
    catalog = world.parts.catalog
    for tasks in stage.tasks:
        assert labels_of(tasks) <= set(catalog.in_split(part).table.column("label").to_pylist())
        assert (tasks.record.way, tasks.record.shot, tasks.record.query, len(tasks)) == (WAY, SHOT, QUERY, 7)
        assert check_tasks(tasks, catalog, world.attributes) == []
    assert not stage.left_out
    assert stage.tasks[2].record.source("like") == stage.tasks[1].digest


def test_the_number_of_tasks_is_that_at_hand_by_default(world: CuredWorld) -> None:
    assert {len(tasks) for tasks in drawn(world, CHOOSE).tasks} == {10}


def test_the_same_tasks_are_drawn_twice(world: CuredWorld) -> None:
    first, second = ([tasks.digest for tasks in drawn(world, CHOOSE).tasks] for _ in range(2))
    assert first == second


def test_sets_that_a_part_cannot_give_are_left_out_with_those_like_them(world: CuredWorld) -> None:
    large = sp.sample(world.catalog, "random", split="test", way=8, shot=SHOT, query=QUERY, tasks=4, name="large")
    changed = changed_like(world, large, "changed large")
    stage = drawn(world, CHOOSE, [changed, large, *world.tasks])
    assert samplers_of(stage) == ["random", "fewstab", PLACEBO]
    assert stage.left_out.keys() == {"large", "changed large"}
    assert "classes" in stage.left_out["large"]
    assert "large tasks" in stage.left_out["changed large"]


def test_sets_that_no_sampler_drew_are_left_out(world: CuredWorld) -> None:
    random, fewstab = world.tasks
    by_hand = TaskSet(random.table, replace(random.record, sampler=None, name="by hand"))
    stage = drawn(world, CHOOSE, [fewstab, by_hand])
    assert samplers_of(stage) == ["fewstab", PLACEBO]
    assert "by hand" in stage.left_out


def test_a_set_comes_after_the_one_that_it_is_like_and_is_like_its_redrawn_set(world: CuredWorld) -> None:
    random, _ = world.tasks
    changed = changed_like(world, random)
    stage = drawn(world, CHOOSE, [changed, random], tasks=6, changed_tasks=4)
    assert samplers_of(stage) == ["random", "changed"]
    first, second = stage.tasks
    assert second.record.source("like") == first.digest
    assert [len(first), len(second)] == [6, 4]
    columns = ["task", "slot", "support", "query"]
    assert second.table.select(columns).equals(first.first(4).table.select(columns))


def test_changed_items_without_features_are_left_out(world: CuredWorld) -> None:
    random, _ = world.tasks
    changed = changed_like(world, random)
    sets = [random, changed]
    assert samplers_of(drawn(world, CHOOSE, sets, changed_tasks=2)) == ["random", "changed"]
    stage = drawn(world, CHOOSE, sets, changed_tasks=2, features=world.features)
    assert samplers_of(stage) == ["random"]
    assert "features of the changed items" in stage.left_out[CHANGE]


def test_the_tasks_at_hand_confirm_with_their_own_placebos(world: CuredWorld) -> None:
    made = stage_at_hand(world.inputs, world.tasks, None)
    assert [tasks.digest for tasks in made.tasks[:2]] == [tasks.digest for tasks in world.tasks]
    assert samplers_of(made) == ["random", "fewstab", PLACEBO]
    placebo = made.tasks[2]
    other = TaskSet(placebo.table, replace(placebo.record, seed=9))
    again = stage_at_hand(replace(world.inputs, tasks=[*world.tasks, other]), world.tasks, None)
    assert [tasks.record.seed for tasks in again.tasks if tasks.record.sampler_name == PLACEBO] == [9]


def test_items_are_all_that_the_tasks_may_have(world: CuredWorld) -> None:
    random, _ = world.tasks
    changed = changed_like(world, random)
    stage = Stage(Inputs((), [random, changed], [world.catalog]))
    items = world.catalog.in_split("test").item_column
    names = changed_names(items, pa.repeat(CHANGE, len(items)))
    assert sorted(stage.items.to_pylist()) == sorted([*items.to_pylist(), *names.to_pylist()])


def test_features_are_those_of_the_items_with_the_steps(world: CuredWorld) -> None:
    stage = stage_at_hand(world.inputs, world.tasks, None)
    rows = world.features.rows_of(stage.items)
    plain = stage.features_of(Treatment(AS_IS), world.features)
    np.testing.assert_array_equal(plain.array, world.features.array[rows])
    treated = stage.features_of(Treatment("unit", steps=("l2",)), world.features)
    np.testing.assert_allclose(np.linalg.norm(treated.array, axis=1), 1, rtol=1e-6)
    other = Features.from_array(world.catalog.items, -world.features.array, name="other")
    stage.release()
    np.testing.assert_array_equal(stage.features_of(Treatment(AS_IS), other).array, -plain.array)


def test_an_evaluation_is_that_of_evaluate(world: CuredWorld) -> None:
    stage = stage_at_hand(world.inputs, world.tasks, None)
    methods = [sp.methods.make(name) for name in ("ncc", "knn")]
    evaluated = stage.evaluate(stage.tasks[:2], world.features, methods, None)
    for tasks, results in zip(stage.tasks[:2], evaluated, strict=True):
        expected = sp.evaluate(tasks, world.features, ["ncc", "knn"])
        assert results.table.equals(expected.table)
    assert [results.record.source("tasks") for results in evaluated] == [tasks.digest for tasks in stage.tasks[:2]]


def test_attributes_of_all_parts_replace_those_at_hand(world: CuredWorld) -> None:
    """Those at hand may have the words of the test classes alone."""
    table = world.attributes.table
    known = world.catalog.in_split("test").item_column
    few = sp.Attributes(table.filter(pc.is_in(table.column("item"), value_set=known)))
    at_hand = replace(world.inputs, attributes=[few])
    sets = [sp.sample(world.catalog, "fewstab", attributes=few, split="test", way=WAY, shot=SHOT, query=QUERY, tasks=4)]
    catalog = world.parts.catalog
    stage = draw_stage(replace(at_hand, tasks=sets), catalog, CHOOSE, attributes=world.attributes)
    assert samplers_of(stage) == ["fewstab", PLACEBO]
    assert stage.tasks[0].record.source("attributes") == world.attributes.digest
    assert draw_stage(replace(at_hand, tasks=sets), catalog, CHOOSE).left_out
