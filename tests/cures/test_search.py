"""The search for a cure: what is chosen by brute force, what is recommended, and what never is."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from benchmarks.verdicts import shuffle_words, words_of
from scipy import stats

import shotproof as sp
from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.core.errors import InsufficientData
from shotproof.core.runtime.runtime import Runtime
from shotproof.cures.class_parts import CHOOSE
from shotproof.cures.cure import Cure
from shotproof.cures.search import Plan
from shotproof.cures.search import find_cure as find_cure_with
from shotproof.cures.stage import draw_stage, stage_at_hand
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld
from tests.cured_worlds import COLUMNS, METHOD, QUERY, SHOT, WAY, CuredWorld, cured_world, draw_tasks, plain_catalog
from tests.cures.test_effects import accuracy_by_task

CHOSEN = ("leace(by='words')", "wccn", "preprocess", "nap(by='words')")
STRONG, ITEMS, TASKS = 0.75, 30, 80
WORLD = ShapesWorld(classes=20, train_classes=12, items=ITEMS)  # that of cured_world


def find_cure(plan: Plan) -> Cure:
    return find_cure_with(plan, runtime=Runtime(workers=1, cache=None))


@cache
def world_of(share: float) -> CuredWorld:
    """A world with few re-evaluations, which are enough for strong effects."""
    world = cured_world(share, items=ITEMS, tasks=TASKS)
    return replace(world, inputs=replace(world.inputs, halvings=8))


def with_tasks(world: CuredWorld, sets: list[sp.TaskSet], attributes: Attributes) -> CuredWorld:
    """The world with other task sets of its test classes."""
    results = [evaluate(tasks, world.features, METHOD) for tasks in sets]
    inputs = Inputs(results, sets, [world.catalog], [world.features], [attributes], halvings=8, tasks_per_half=40)
    return CuredWorld(world.catalog, world.features, attributes, tuple(sets), inputs)


@cache
def cured() -> Cure:
    """The search in a world whose classifier relies on words."""
    return find_cure(world_of(STRONG).plan(*CHOSEN, "encoder"))


def under_stress(plan: Plan, features: Features) -> tuple[float, bool]:
    """The accuracy on stressed tasks of the classes to choose on, and whether that on random ones is surely lower."""
    data = plan.data
    stage = draw_stage(plan.at_hand, plan.parts.catalog, CHOOSE, attributes=data.attributes, tasks=plan.tasks)
    random, stressed, _ = stage.tasks
    difference = accuracy_by_task(random, features) - accuracy_by_task(random, data.features)
    test = stats.ttest_1samp(difference, 0)
    is_lower = bool(difference.any()) and test.pvalue < 1 - plan.level and difference.mean() < 0
    return float(accuracy_by_task(stressed, features).mean()), is_lower


@pytest.mark.parametrize("spelling", CHOSEN)
def test_the_setting_that_is_most_accurate_under_stress_is_chosen(spelling: str) -> None:
    plan = world_of(STRONG).plan(spelling)
    row = cured().row(spelling)
    assert row is not None
    treatments = plan.remedies[0].treatments(plan.data)
    by_name = {
        treatment.name: under_stress(plan, sp.transform(plan.data.features, treatment.steps))
        for treatment in treatments
    }
    best = max(by_name, key=lambda name: (not by_name[name][1], by_name[name][0]))
    assert row.treatment == best
    assert row.score == pytest.approx(by_name[best][0])
    assert row.settings == len(treatments) > 1
    assert len({accuracy for accuracy, _ in by_name.values()}) > 1


def test_the_planted_remedy_is_recommended() -> None:
    cure = cured()
    assert cure.recommended == "nap(by='words')"
    row = cure.row(cure.recommended)
    assert row is not None
    (effect,) = row.effects
    assert (effect.axis, effect.outcome) == ("fewstab", "helps")
    assert effect.before.low > 0
    assert effect.difference.high < 0
    assert effect.after.mean < effect.before.mean / 2
    first, second, basis = cure.sentences()[0], cure.sentences()[1], cure.sentences()[-1]
    assert row.treatment.lower() in first.lower()
    assert f"{effect.before.mean:.1f}%" in first
    assert f"{effect.after.mean:.1f}%" in first
    assert f"{row.accuracy_after.mean:.1f}%" in second
    assert "fitted on 6 classes, chosen on 6 others and confirmed on 8 others" in basis


def test_what_cannot_be_tried_is_named_and_the_rest_is_tried() -> None:
    cure = cured()
    assert [row.remedy for row in cure.tried] == list(CHOSEN)
    ((name, reason),) = [(row.remedy, row.reason) for row in cure.not_tried]
    assert name == "encoder"
    assert "encoders" in reason
    assert {row.baseline for row in cure.tried} == {"as it is"}
    assert cure.parts == {"fit": 6, "choose": 6, "confirm": 8}
    assert cure.tasks == TASKS
    assert cure.treatments.keys() == {row.remedy for row in cure.tried}


def test_if_nothing_can_be_tried_the_reasons_are_listed() -> None:
    plan = world_of(STRONG).plan("center-contexts", "encoder")
    with pytest.raises(InsufficientData, match=r"center-contexts: .*contexts.*encoder: .*encoders"):
        find_cure(plan)


def shuffled_world() -> CuredWorld:
    """A world whose words are shuffled within classes, so that they tell nothing about the features."""
    world = world_of(STRONG)
    words = Attributes.from_words(shuffle_words(words_of(world.attributes), 0))
    return with_tasks(world, list(draw_tasks(world.catalog, words, TASKS)), words)


@pytest.mark.parametrize("make_world", [lambda: world_of(0.0), shuffled_world], ids=["dial 0", "shuffled words"])
def test_nothing_is_recommended_if_nothing_is_lost(make_world: Any) -> None:
    cure = find_cure(make_world().plan("nap(by='words')", "preprocess"))
    assert cure.recommended is None
    assert not any(row.helps for row in cure.tried)
    sentence = cure.sentences()[0]
    assert "nothing to cure" in sentence
    assert "fewstab" in sentence
    assert not any(effect.more_tasks for row in cure.tried for effect in row.effects)


def with_encoder(world: CuredWorld, encoder: DialEncoder) -> Plan:
    """A plan whose only remedy is another encoder."""
    return world.plan("encoder", further_features=[encode(WORLD.catalog(), encoder)])


def test_what_costs_accuracy_is_not_recommended() -> None:
    # Nothing is lost by words, since there is nothing but noise beside the label; so much that accuracy is lower.
    cure = find_cure(with_encoder(world_of(STRONG), DialEncoder(0.0, noise=10.0)))
    (row,) = cure.tried
    assert [effect.outcome for effect in row.effects] == ["helps"]
    assert row.accuracy_conclusion == "-"
    assert row.accuracy_difference.high < 0
    assert cure.recommended is None
    assert "none conclusively lowers" in cure.sentences()[0]


def test_what_hurts_on_another_axis_is_not_recommended() -> None:
    # The classifier relies on all words but backgrounds; with the other encoder, on backgrounds alone.
    factors = ("texture", "fill", "sticker", "frame")
    catalog = plain_catalog(WORLD.catalog(), [*COLUMNS, "background"])
    words = {
        item: [word for word in held or () if not word.endswith("background")]
        for item, held in WORLD.attributes().to_words().items()
    }
    attributes = Attributes.from_words(words)
    features = encode(WORLD.catalog(), DialEncoder(STRONG, factors=factors))
    shape: dict[str, Any] = {"way": WAY, "shot": SHOT, "query": QUERY, "tasks": TASKS, "split": "test"}
    sets = [
        sp.sample(catalog, "random", **shape),
        sp.sample(catalog, "fewstab", attributes=attributes, **shape),
        sp.sample(catalog, "iid(context_column='background', hard_ood=False)", **shape),
        sp.sample(catalog, "ood(context_column='background', hard_ood=False)", **shape),
    ]
    world = with_tasks(CuredWorld(catalog, features, attributes, (), Inputs()), sets, attributes)
    cure = find_cure(with_encoder(world, DialEncoder(STRONG, factors=("background",))))
    (row,) = cure.tried
    assert {effect.axis: effect.outcome for effect in row.effects} == {"fewstab": "helps", "ood": "hurts"}
    assert cure.recommended is None


def test_among_those_that_help_the_most_accurate_under_stress_where_it_was_chosen_is_recommended() -> None:
    cure = cured()
    helping = {row.remedy: row.score for row in cure.tried if row.helps and row.score is not None}
    assert len(helping) > 1
    assert cure.recommended == max(helping, key=lambda remedy: helping[remedy])


def test_what_has_no_conclusive_effect_is_not_recommended() -> None:
    plan = world_of(STRONG).plan("preprocess", "supports(choose='spread')")
    cure = find_cure(plan)
    assert {effect.outcome for row in cure.tried for effect in row.effects} == {"cannot tell"}
    assert cure.recommended is None
    assert "2 remedies" in cure.sentences()[0]
    assert "none conclusively lowers" in cure.sentences()[0]
    # Chosen supports are compared with random ones of the same number.
    random, *_ = plan.confirming.tasks
    drawn = sp.sample(plan.at_hand.catalogs[0], "chosen", like=random, split="test")
    expected = accuracy_by_task(drawn, plan.data.features).mean()
    assert cure.tried[1].accuracy_before.mean == pytest.approx(expected)


def test_without_tasks_that_measure_reliance_there_is_nothing_to_lower() -> None:
    world = world_of(STRONG)
    plan = world.plan("preprocess")
    random = [world.tasks[0]]
    plan = replace(
        plan, at_hand=replace(world.inputs, tasks=random), confirming=stage_at_hand(world.inputs, random, None)
    )
    with pytest.raises(InsufficientData, match="fewstab, ood or changed"):
        find_cure(plan)


def test_tasks_that_the_classes_to_choose_on_cannot_give_are_noted() -> None:
    world = world_of(STRONG)
    known = np.isin(world.catalog.items, world.parts.catalog.in_split(CHOOSE).items)
    words = {
        item: [] if outside else list(held or ())
        for (item, held), outside in zip(world.attributes.to_words().items(), known, strict=True)
    }
    attributes = Attributes.from_words(words)
    plan = with_tasks(world, list(draw_tasks(world.catalog, attributes, 40)), attributes).plan("nap(by='words')")
    cure = find_cure(plan)
    (row,) = cure.tried
    assert row.treatment == plan.remedies[0].treatments(plan.data)[0].name  # the first
    assert row.score is None
    assert any("fewstab tasks did not take part in choosing" in note for note in cure.notes)
