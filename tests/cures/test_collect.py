"""What to collect: costs by class and cue, counted from the rows of tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shotproof as sp
from shotproof.analysis.inputs import Inputs
from shotproof.cures.collect import FEWEST_TASKS, MOST, find_missing_items
from shotproof.cures.cure import ToCollect
from shotproof.cures.remedy import Material
from shotproof.cures.stage import Stage, stage_at_hand
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.learners.method import make_method
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld
from tests.cured_worlds import COLUMNS, METHOD, QUERY, SHOT, WAY, plain_catalog
from tests.cures.full_material import CHANGE, with_changed_items

SHAPE: dict[str, Any] = {"way": WAY, "shot": SHOT, "query": QUERY, "tasks": 240}


@pytest.fixture(scope="module")
def material() -> Material:
    """A world in which most items of a class show what it prefers."""
    world = ShapesWorld(classes=8, items=40, correlation=0.5)
    features = encode(world.catalog(), DialEncoder(0.75))
    catalog = plain_catalog(world.catalog(), [*COLUMNS, "background"])
    return Material(catalog, features, make_method(METHOD), attributes=world.attributes(), context_column="background")


@pytest.fixture(scope="module")
def by_words(material: Material) -> list[TaskSet]:
    assert material.attributes is not None
    return [
        sp.sample(material.catalog, "random", **SHAPE),
        sp.sample(material.catalog, "fewstab", attributes=material.attributes, **SHAPE),
    ]


@pytest.fixture(scope="module")
def by_contexts(material: Material) -> list[TaskSet]:
    sampler = "ood(context_column='background', hard_ood=False)"
    return [
        sp.sample(material.catalog, "random", **SHAPE),
        sp.sample(material.catalog, sampler, **SHAPE),
    ]


def stage_of(material: Material, sets: list[TaskSet]) -> Stage:
    assert material.attributes is not None
    inputs = Inputs((), sets, [material.catalog], [material.features], [material.attributes])
    return stage_at_hand(inputs, sets, None)


def words_of(material: Material) -> Mapping[str, set[str]]:
    assert material.attributes is not None
    return {item: set(words or ()) for item, words in material.attributes.to_words().items()}


def contexts_of(material: Material) -> Mapping[str, set[str]]:
    column = material.catalog.table.column("background").to_pylist()
    return {item: {context} for item, context in zip(material.catalog.items, column, strict=True)}


def by_hand(material: Material, sets: list[TaskSet], cues: Mapping[str, set[str]]) -> list[ToCollect]:
    """The rows by counting, class by class and cue by cue."""
    accuracies: dict[tuple[str, str | None], list[float]] = {}
    for number, tasks in enumerate(sets):
        results = evaluate(tasks, material.features, METHOD, allow_seen=True).table.to_pylist()
        for row, counts in zip(tasks.table.to_pylist(), results, strict=True):
            key = row["label"], row["attribute"] if number else None
            accuracies.setdefault(key, []).append(100 * counts["n_correct"] / counts["n_query"])
    labels = material.catalog.table.column("label").to_pylist()
    sizes = Counter(labels)
    rows = []
    for (label, cue), values in accuracies.items():
        if cue is None:
            continue
        having = sum(
            of_item == label and cue in cues[item] for item, of_item in zip(material.catalog.items, labels, strict=True)
        )
        cost = float(np.mean(accuracies[label, None]) - np.mean(values))
        if len(values) >= FEWEST_TASKS and having > sizes[label] - having and cost > 0:
            rows.append(ToCollect(label, cue, having, sizes[label] - having, cost, len(values)))
    return rows


def is_among(row: ToCollect, expected: list[ToCollect]) -> bool:
    """Whether a row is expected, up to the rounding of its cost."""
    return any(replace(row, cost=other.cost) == other and row.cost == pytest.approx(other.cost) for other in expected)


def test_rows_are_those_by_hand_the_costliest_first(material: Material, by_words: list[TaskSet]) -> None:
    rows = find_missing_items(stage_of(material, by_words), material)
    expected = by_hand(material, by_words, words_of(material))
    assert len(expected) > MOST == len(rows)
    assert all(is_among(row, expected) for row in rows)
    assert [row.cost for row in rows] == sorted((row.cost for row in rows), reverse=True)
    assert rows[-1].cost == pytest.approx(sorted(row.cost for row in expected)[-len(rows)])


def test_contexts_are_cues_too(material: Material, by_contexts: list[TaskSet]) -> None:
    rows = find_missing_items(stage_of(material, by_contexts), material)
    expected = by_hand(material, by_contexts, contexts_of(material))
    assert len(rows) == min(len(expected), MOST) > 0
    assert all(is_among(row, expected) for row in rows)


def test_of_two_task_sets_the_larger_cost_counts(material: Material, by_words: list[TaskSet]) -> None:
    random, first = by_words
    second = sp.sample(material.catalog, "fewstab", attributes=material.attributes, seed=1, **SHAPE)
    rows = find_missing_items(stage_of(material, [random, first, second]), material)
    costs: dict[tuple[str, str], float] = {}
    for tasks in (first, second):
        for row in by_hand(material, [random, tasks], words_of(material)):
            costs[row.label, row.cue] = max(row.cost, costs.get((row.label, row.cue), 0.0))
    largest = sorted(costs, key=lambda key: -costs[key])[:MOST]
    assert [(row.label, row.cue) for row in rows] == largest
    assert [row.cost for row in rows] == pytest.approx([costs[key] for key in largest])


def test_changed_tasks_and_placebos_name_nothing(material: Material, by_words: list[TaskSet]) -> None:
    random = by_words[0]
    changed = sp.sample(material.catalog, f"changed(change='{CHANGE}')", like=random)
    material = replace(material, features=with_changed_items(material.features, material.catalog))
    assert find_missing_items(stage_of(material, [random, changed]), material) == []


def test_without_random_tasks_there_is_nothing_to_compare_with(material: Material, by_words: list[TaskSet]) -> None:
    assert find_missing_items(stage_of(material, by_words[1:]), material) == []


def test_balanced_classes_lack_nothing(material: Material, by_words: list[TaskSet]) -> None:
    world = ShapesWorld(classes=8, items=40)
    features = encode(world.catalog(), DialEncoder(0.75))
    balanced = replace(
        material, catalog=plain_catalog(world.catalog()), features=features, attributes=world.attributes()
    )
    assert balanced.attributes is not None
    sets = [
        sp.sample(balanced.catalog, "random", **SHAPE),
        sp.sample(balanced.catalog, "fewstab", attributes=balanced.attributes, **SHAPE),
    ]
    assert find_missing_items(stage_of(balanced, sets), balanced) == []
