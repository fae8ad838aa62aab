"""The first paragraph: the classifier to take, what it leans on and what costs most; and terms that are explained."""

from __future__ import annotations

import re
from dataclasses import replace

from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.summary import summary, terms
from shotproof.comparison.verdicts import verdicts
from shotproof.results.evaluated import evaluated_sets
from shotproof.stats.costs import AttributeCost, AttributeCosts
from shotproof.stats.intervals import Interval
from tests.drawn_results import draw_results, draw_tasks
from tests.drawn_shuffles import drawn_shuffles

SKILL = {"ncc": 0.9, "ridge": 0.8}


def comparison_of(random: dict[str, float], biased: dict[str, float], tasks: int = 150) -> Comparison:
    stressed = draw_tasks("fewstab", tasks=tasks)
    placebo = draw_tasks("placebo", like=stressed)
    drawn = ((draw_tasks(tasks=tasks), random), (stressed, biased), (placebo, random))
    sets = evaluated_sets([draw_results(one, right, seed=seed) for seed, (one, right) in enumerate(drawn)])
    return compare_sets(sets, ("sampler",), reevaluated=drawn_shuffles(sets))


def with_costs(comparison: Comparison, *costs: AttributeCost) -> Comparison:
    (verdict,) = verdicts(comparison)
    of_focus = {verdict.focus: AttributeCosts(9, list(costs))}
    return replace(comparison, costs={(verdict.block.design, verdict.loss.label): of_focus})


def cost(word: str, points: float, error: float = 2.0) -> AttributeCost:
    return AttributeCost((word,), Interval(points, points - error, points + error), 40, 3, "jay", "blue jay")


def test_the_most_accurate_under_stress_is_to_take_and_its_costs_are_told() -> None:
    comparison = with_costs(
        comparison_of(SKILL, {"ncc": 0.75, "ridge": 0.5}), cost("snow", 24), cost("dark", 9), cost("grey", 1)
    )
    choice, relies, costs = summary(comparison)
    assert choice.startswith("Of the 2 classifiers, choose ncc, the most accurate on fewstab tasks (")
    assert relies.startswith("ncc relies on attributes, as does the other")
    assert re.search(r"costs ncc [\d.]+ points \[[\d.]+, [\d.]+\] of accuracy on fewstab tasks", relies)
    assert re.match(r"'snow' costs the most.* 24.0 points \[22.0, 26.0\].* blue jay.*'dark' \(9.0 points\)", costs)
    assert "grey" not in costs


def test_classifiers_that_cannot_be_told_apart_are_not_chosen_between() -> None:
    choice = summary(comparison_of(SKILL, {"ncc": 0.6, "ridge": 0.6}))[0]
    assert "which of the 2 classifiers is best" in choice


def test_who_is_below_chance_is_not_recommended() -> None:
    choice = summary(comparison_of(SKILL, {"ncc": 0.2, "ridge": 0.1}))[0]
    assert choice.startswith("None of the 2 classifiers is better than guessing on fewstab tasks (")


def test_without_conclusive_costs_nothing_stands_out() -> None:
    comparison = with_costs(comparison_of({"ncc": 0.9}, {"ncc": 0.6}), cost("snow", 1))
    relies, costs = summary(comparison)
    assert relies.startswith("ncc relies on attributes. This costs ncc ")
    assert costs == "No single attribute stands out."


def test_little_is_a_finding_and_much_that_is_unclear_is_open() -> None:
    (little,) = summary(comparison_of(SKILL, SKILL, tasks=4000))
    assert re.match(r"Reliance on attributes is small.* at most [\d.]+% of the accuracy above chance", little)
    (unclear,) = summary(comparison_of(SKILL, SKILL, tasks=40))
    assert "does not show whether either classifier relies on attributes" in unclear


def test_nothing_is_said_of_leaning_without_shuffled_words() -> None:
    comparison = comparison_of(SKILL, {"ncc": 0.6, "ridge": 0.6})
    sets = evaluated_sets(
        [draw_results(draw_tasks(tasks=60), SKILL), draw_results(draw_tasks("fewstab", tasks=60), SKILL)]
    )
    assert summary(compare_sets(sets, ("sampler",))) == []
    assert [term.word for term in terms(comparison)] == ["fewstab", "placebo", "above chance", "sampler interval"]
