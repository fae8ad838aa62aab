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
from shotproof.cures.remedy import RemedyData
from shotproof.cures.stage import Stage, stage_at_hand
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.learners.method import make_method
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld
from tests.cured_worlds import COLUMNS, METHOD, QUERY, SHOT, WAY, plain_catalog
from tests.cures.remedy_data import CHANGE, with_changed_items

SHAPE: dict[str, Any] = {"way": WAY, "shot": SHOT, "query": QUERY, "tasks": 240}


@pytest.fixture(scope="module")
def data() -> RemedyData:
    """A world in which most items of a class show what it prefers."""
    world = ShapesWorld(classes=8, items=40, correlation=0.5)
    features = encode(world.catalog(), DialEncoder(0.75))
    catalog = plain_catalog(world.catalog(), [*COLUMNS, "background"])
    return RemedyData(
        catalog, features, make_method(METHOD), attributes=world.attributes(), context_column="background"
    )


@pytest.fixture(scope="module")
def by_words(data: RemedyData) -> list[TaskSet]:
    assert data.attributes is not None
    return [
        sp.sample(data.catalog, "random", **SHAPE),
        sp.sample(data.catalog, "fewstab", attributes=data.attributes, **SHAPE),
    ]


@pytest.fixture(scope="module")
def by_contexts(data: RemedyData) -> list[TaskSet]:
    sampler = "ood(context_column='background', hard_ood=False)"
    return [
        sp.sample(data.catalog, "random", **SHAPE),
        sp.sample(data.catalog, sampler, **SHAPE),
    ]


def stage_of(data: RemedyData, sets: list[TaskSet]) -> Stage:
    assert data.attributes is not None
    inputs = Inputs((), sets, [data.catalog], [data.features], [data.attributes])
    return stage_at_hand(inputs, sets, None)


def words_of(data: RemedyData) -> Mapping[str, set[str]]:
    assert data.attributes is not None
    return {item: set(words or ()) for item, words in data.attributes.to_words().items()}


def contexts_of(data: RemedyData) -> Mapping[str, set[str]]:
    column = data.catalog.table.column("background").to_pylist()
    return {item: {context} for item, context in zip(data.catalog.items, column, strict=True)}


def by_hand(data: RemedyData, sets: list[TaskSet], cues: Mapping[str, set[str]]) -> list[ToCollect]:
    """The rows by counting, class by class and cue by cue."""
    accuracies: dict[tuple[str, str | None], list[float]] = {}
    for number, tasks in enumerate(sets):
        results = evaluate(tasks, data.features, METHOD, allow_seen=True).table.to_pylist()
        for row, counts in zip(tasks.table.to_pylist(), results, strict=True):
            key = row["label"], row["attribute"] if number else None
            accuracies.setdefault(key, []).append(100 * counts["n_correct"] / counts["n_query"])
    labels = data.catalog.table.column("label").to_pylist()
    sizes = Counter(labels)
    rows = []
    for (label, cue), values in accuracies.items():
        if cue is None:
            continue
        having = sum(
            of_item == label and cue in cues[item] for item, of_item in zip(data.catalog.items, labels, strict=True)
        )
        cost = float(np.mean(accuracies[label, None]) - np.mean(values))
        if len(values) >= FEWEST_TASKS and having > sizes[label] - having and cost > 0:
            rows.append(ToCollect(label, cue, having, sizes[label] - having, cost, len(values)))
    return rows


def is_among(row: ToCollect, expected: list[ToCollect]) -> bool:
    """Whether a row is expected, up to the rounding of its cost."""
    return any(replace(row, cost=other.cost) == other and row.cost == pytest.approx(other.cost) for other in expected)


def test_rows_are_those_by_hand_the_costliest_first(data: RemedyData, by_words: list[TaskSet]) -> None:
    rows = find_missing_items(stage_of(data, by_words), data)
    expected = by_hand(data, by_words, words_of(data))
    assert len(expected) > MOST == len(rows)
    assert all(is_among(row, expected) for row in rows)
    assert [row.cost for row in rows] == sorted((row.cost for row in rows), reverse=True)
    assert rows[-1].cost == pytest.approx(sorted(row.cost for row in expected)[-len(rows)])


def test_contexts_are_cues_too(data: RemedyData, by_contexts: list[TaskSet]) -> None:
    rows = find_missing_items(stage_of(data, by_contexts), data)
    expected = by_hand(data, by_contexts, contexts_of(data))
    assert len(rows) == min(len(expected), MOST) > 0
    assert all(is_among(row, expected) for row in rows)


def test_of_two_task_sets_the_larger_cost_counts(data: RemedyData, by_words: list[TaskSet]) -> None:
    random, first = by_words
    second = sp.sample(data.catalog, "fewstab", attributes=data.attributes, seed=1, **SHAPE)
    rows = find_missing_items(stage_of(data, [random, first, second]), data)
    costs: dict[tuple[str, str], float] = {}
    for tasks in (first, second):
        for row in by_hand(data, [random, tasks], words_of(data)):
            costs[row.label, row.cue] = max(row.cost, costs.get((row.label, row.cue), 0.0))
    largest = sorted(costs, key=lambda key: -costs[key])[:MOST]
    assert [(row.label, row.cue) for row in rows] == largest
    assert [row.cost for row in rows] == pytest.approx([costs[key] for key in largest])


def test_changed_tasks_and_placebos_name_nothing(data: RemedyData, by_words: list[TaskSet]) -> None:
    random = by_words[0]
    changed = sp.sample(data.catalog, f"changed(change='{CHANGE}')", like=random)
    data = replace(data, features=with_changed_items(data.features, data.catalog))
    assert find_missing_items(stage_of(data, [random, changed]), data) == []


def test_without_random_tasks_there_is_nothing_to_compare_with(data: RemedyData, by_words: list[TaskSet]) -> None:
    assert find_missing_items(stage_of(data, by_words[1:]), data) == []


def test_balanced_classes_lack_nothing(data: RemedyData, by_words: list[TaskSet]) -> None:
    world = ShapesWorld(classes=8, items=40)
    features = encode(world.catalog(), DialEncoder(0.75))
    balanced = replace(data, catalog=plain_catalog(world.catalog()), features=features, attributes=world.attributes())
    assert balanced.attributes is not None
    sets = [
        sp.sample(balanced.catalog, "random", **SHAPE),
        sp.sample(balanced.catalog, "fewstab", attributes=balanced.attributes, **SHAPE),
    ]
    assert find_missing_items(stage_of(balanced, sets), balanced) == []
