"""Cards whose numbers contradict each other, or their tasks, are found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shotproof.analysis.verification.card_check import card_problems
from shotproof.analysis.verification.results_check import Recomputation
from shotproof.comparison.card import Card, CardAxis, CardTasks
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.stats.ranks import RankRange
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.gaussian import GaussianWorld
from tests.drawn_cards import card_number, make_card, random_axis, stress_axis, with_estimates


@pytest.fixture(scope="module")
def drawn() -> tuple[TaskSet, Features, CardAxis]:
    """Tasks, features, and the axis of a card of `cosine` on them."""
    catalog, features, _ = GaussianWorld().draw(classes=8, items=40)
    tasks = sample(catalog, "random", tasks=20)
    counts = evaluate(tasks, features, "cosine").counts("cosine")
    by_task = {"acc": counts.accuracy_by_task().round(4), "wacc": counts.worst_by_task().round(4)}
    axis = replace(
        random_axis(),
        tasks=CardTasks("random", tasks.digest, 20, 0),
        estimates={"accuracy": {metric: card_number(float(of.mean()), 1.0) for metric, of in by_task.items()}},
        by_task={metric: tuple(values.tolist()) for metric, values in by_task.items()},
    )
    return tasks, features, axis


def problems(axis: CardAxis) -> list[str]:
    return list(card_problems(make_card(axis)))


def test_a_card_that_can_be_has_no_problems(drawn: tuple[TaskSet, Features, CardAxis]) -> None:
    tasks, features, axis = drawn
    assert list(card_problems(make_card(axis), [tasks], Recomputation(features))) == []
    assert list(card_problems(make_card(axis), [tasks], Recomputation(features, sample=3))) == []
    assert problems(stress_axis()) == []


def test_the_first_task_that_comes_out_otherwise_is_named(drawn: tuple[TaskSet, Features, CardAxis]) -> None:
    tasks, features, axis = drawn
    values = list(axis.by_task["acc"])
    values[5], values[9] = values[9] + 4, values[5] - 4  # the mean stays
    lie = replace(axis, by_task={**axis.by_task, "acc": tuple(values)})
    assert problems(lie) == []
    (told,) = card_problems(make_card(lie), [tasks], Recomputation(features))
    assert told.startswith("random-5-shot: task 5: acc ")
    assert told.endswith("; 2 of 20 tasks differ")
    numbers = {"acc": card_number(1.0, 1.0), "wacc": card_number(0.5, 1.0)}
    without = with_estimates(replace(axis, by_task={}), accuracy=numbers)
    assert "random-5-shot: accuracy, acc: 1.0, recomputed " in next(
        card_problems(make_card(without), [tasks], Recomputation(features))
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"estimates": {"accuracy": {"acc": card_number(101.0, 1.0), "wacc": card_number(50, 1.0)}}},
            "a number from 0 to 100, found 101.0",
        ),
        (
            {"estimates": {"accuracy": {"acc": card_number(50.0, 1.0), "wacc": card_number(60, 1.0)}}},
            "the worst class, 60, is higher",
        ),
        ({"estimates": {"accuracy": {"acc": card_number(50.0, 1.0)}}}, "accuracy, wacc: missing"),
        ({"by_task": {"acc": (80.0,)}}, "by_task, acc: expected 600 tasks, found 1"),
        ({"by_task": {"acc": (79.0,) * 600}}, "accuracy, acc: 80.0 is not the mean"),
        ({"by_task": {"acc": (101.0,) * 600}}, "by_task, acc: expected percent"),
        ({"rank": {"accuracy": RankRange(3, 2, 3)}}, "rank by accuracy: 3 to 2 of 3"),
        ({"rank": {"accuracy": RankRange(1, 4, 3)}}, "rank by accuracy: 1 to 4 of 3"),
    ],
)
def test_numbers_that_cannot_be_are_found(changes: dict[str, Any], told: str) -> None:
    assert any(told in problem for problem in problems(replace(random_axis(), **changes)))


def test_numbers_that_contradict_each_other_are_found() -> None:
    axis = stress_axis()
    wrong = with_estimates(axis, gap={"acc": card_number(7, 1)})
    assert "gap, acc: 7 is not the accuracy" in problems(wrong)[0]
    assert problems(with_estimates(axis, placebo={}))[0].startswith("fewstab: excess, acc: 6.0 is not the gap minus")
    number = replace(axis.estimates["accuracy"]["acc"], low=90.0, high=95.0)
    assert "outside its interval" in problems(with_estimates(axis, accuracy={"acc": number}))[0]
    assert list(card_problems(Card(axes=(random_axis(), random_axis())))) == ["random-5-shot: the axis occurs twice"]


def test_task_sets_that_are_not_there_or_of_another_size_are_found(drawn: tuple[TaskSet, Features, CardAxis]) -> None:
    tasks, _, axis = drawn
    other = replace(axis, tasks=replace(axis.tasks, digest="another"))
    (told,) = card_problems(make_card(other), [tasks])
    assert told.startswith("random-5-shot: its tasks, task set another, ")
    assert told.endswith(tasks.digest)
    fewer = replace(axis, tasks=replace(axis.tasks, tasks=21), by_task={}, shot=1)
    assert list(card_problems(make_card(fewer), [tasks])) == [
        f"random-5-shot: its tasks: the card states 21 tasks, task set {tasks.digest} has 20",
        "random-5-shot: shot: expected 5 as in its task set, found 1",
    ]


def test_an_interval_that_does_not_follow_from_its_variance_is_found() -> None:
    axis = random_axis()
    narrow = replace(axis.estimates["accuracy"]["acc"], low=79.9, high=80.1)
    (told,) = problems(with_estimates(axis, accuracy={"acc": narrow}))
    assert told == (
        "random-5-shot: accuracy, acc: the interval 79.9 to 80.1 does not follow from its variance: 78.0400 to 81.9600"
    )
    absurd = replace(axis.estimates["accuracy"]["acc"], variance=1e308)
    assert "no interval follows from the variance" in problems(with_estimates(axis, accuracy={"acc": absurd}))[0]
