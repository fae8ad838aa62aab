"""A card made again from its counts is the same, and whatever was changed in it is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.make_card import make_card
from shotproof.analysis.verification.remade_card import card_differences, remake_card
from shotproof.comparison.card import Card
from shotproof.core.errors import InputError
from shotproof.evaluation.evaluate import evaluate
from shotproof.results.evaluated import Classifier
from shotproof.tasks.sampler import sample
from shotproof.worlds.gaussian import GaussianWorld


@pytest.fixture(scope="module")
def drawn() -> tuple[Inputs, Card]:
    catalog, features, _ = GaussianWorld().draw(classes=6, items=40)
    random = sample(catalog, "random", tasks=8, query=3)
    hardest = sample(catalog, "hardest", like=random, features=features, tasks=8, query=3)
    results = [evaluate(tasks, features, ["ncc", "knn"]) for tasks in (random, hardest)]
    inputs = Inputs(results, [random, hardest], [catalog], [features], halvings=4)
    comparison = compare(inputs, intervals=["images", "sampler"])
    return inputs, make_card(comparison, inputs, Classifier("features", "ncc"))


def test_a_true_card_comes_out_again(drawn: tuple[Inputs, Card]) -> None:
    inputs, card = drawn
    assert list(card_differences(card, remake_card(card, inputs))) == []
    with pytest.raises(InputError, match="there are no results of svm on features"):
        remake_card(replace(card, method="svm"), inputs)


def never_the_first_class(support: Any, labels: Any, query: Any) -> Any:
    scores = torch.stack([query @ support[labels == label].mean(0) for label in labels.unique()], 1)
    return scores.index_fill(1, torch.tensor(0), -1e9)


def test_a_true_card_of_numbers_without_an_interval_comes_out_again() -> None:
    catalog, features, _ = GaussianWorld().draw(classes=6, items=12)  # too few for halves
    tasks = sample(catalog, "random", tasks=8, query=3)
    results = evaluate(tasks, features, [never_the_first_class, "knn"])
    inputs = Inputs([results], [tasks], [catalog], [features], methods=[never_the_first_class], halvings=4)
    comparison = compare(inputs, intervals=["images", "sampler"])
    card = make_card(comparison, inputs, Classifier("features", "never_the_first_class"))
    assert card.axes[0].estimates["accuracy"]["wacc"].refused  # the worst class is the first one in every task
    assert list(card_differences(card, remake_card(card, inputs))) == []


def with_a_narrow_interval(card: Any) -> None:
    number = card["axes"][0]["estimates"]["accuracy"]["acc"]
    number["low"] = number["mean"] - 0.1


def without_an_axis(card: Any) -> None:
    del card["axes"][1]


def with_a_worse_baseline(card: Any) -> None:
    card["axes"][0]["baselines"][0]["accuracy"]["acc"] -= 5


def with_other_words(card: Any) -> None:
    card["axes"][1]["verdict"] = "It loses nothing at all."


def with_another_rank(card: Any) -> None:
    card["axes"][0]["rank"]["accuracy"] = {"best": 1, "worst": 1, "of": 5}


def with_a_remedy_of_its_own(card: Any) -> None:
    card["remedies"] = [{"family": "features", "name": "wccn(ridge=10)"}]


LIES: dict[Callable[[Any], None], str] = {
    with_a_narrow_interval: "random-5-shot: accuracy, acc, low: ",
    without_an_axis: "hardest: the results have this axis, but the card omits it",
    with_a_worse_baseline: "random-5-shot: baselines 0, accuracy, acc: ",
    with_other_words: "hardest: verdict: 'It loses nothing at all.', recomputed ",
    with_a_remedy_of_its_own: "remedies: ",
    with_another_rank: "random-5-shot: rank, accuracy, of: 5, recomputed 2",
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_whatever_was_changed_is_found(drawn: tuple[Inputs, Card], lie: Callable[[Any], None]) -> None:
    _, card = drawn
    content = card.to_json()
    lie(content)
    assert any(
        card_difference.startswith(LIES[lie]) for card_difference in card_differences(Card.from_json(content), card)
    )


def test_the_words_of_another_version_are_not_compared(drawn: tuple[Inputs, Card]) -> None:
    _, card = drawn
    assert list(card_differences(replace(card, version="0", verdict=("In other words.",)), card)) == []
