"""Effects of treatments: the numbers by hand from counts, and which sets remedies are judged by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

import shotproof as sp
from shotproof.core.arrays import FloatArray
from shotproof.cures.effects import AS_IS, Measured, conclude_effects, effects_of, measure
from shotproof.cures.remedy import Treatment
from shotproof.cures.stage import Stage
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.features.nuisance_transforms import Nap
from shotproof.learners.method import make_method
from shotproof.stats.intervals import Estimate, Interval, Spread
from shotproof.tasks.taskset import TaskSet
from tests.cured_worlds import METHOD, WAY, CuredWorld, cured_world

CHANCE = 100 / WAY
LEVEL = 0.9


@pytest.fixture(scope="module")
def world() -> CuredWorld:
    return cured_world(0.6)


@pytest.fixture(scope="module")
def stage(world: CuredWorld) -> Stage:
    return world.plan().confirming


@pytest.fixture(scope="module")
def treatment(world: CuredWorld) -> Treatment:
    base = world.data.base()
    step = Nap(base=base, catalog=world.data.base_catalog, by="words", attributes=world.attributes, directions=10)
    return Treatment("projected", steps=(step,))


@pytest.fixture(scope="module")
def measured(world: CuredWorld, stage: Stage, treatment: Treatment) -> Measured:
    return measure(stage, [treatment], world.features, make_method(METHOD), with_halves=True)


def accuracy_by_task(tasks: TaskSet, features: Features) -> FloatArray:
    """The accuracy on each task in percent, from counts."""
    table = evaluate(tasks, features, METHOD, allow_seen=True).table
    number = table.column("task").to_numpy()
    correct = np.bincount(number, table.column("n_correct").to_numpy())
    accuracy: FloatArray = 100 * correct / np.bincount(number, table.column("n_query").to_numpy())
    return accuracy


def contributions(
    random: FloatArray, stressed: FloatArray, placebo: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """The share of skill lost, and what each matched task and each random task adds to it, by the delta method."""
    above = random.mean() - CHANCE
    share = (placebo.mean() - stressed.mean()) / above
    return 100 * share, 100 * (placebo - stressed) / above, -100 * share * random / above


def sum_of_means(*groups: FloatArray) -> tuple[float, float]:
    """The variance of a sum of means of independent groups, and its degrees of freedom by Welch and Satterthwaite."""
    variances = [group.var(ddof=1) / len(group) for group in groups]
    freedom = sum(variances) ** 2 / sum(v**2 / (len(g) - 1) for v, g in zip(variances, groups, strict=True))
    return float(sum(variances)), float(freedom)


def by_hand(stage: Stage, treatments: Sequence[Features]) -> list[tuple[float, FloatArray, FloatArray]]:
    """The contributions of each of these features."""
    random, stressed, placebo = stage.tasks
    return [
        contributions(*(accuracy_by_task(tasks, features) for tasks in (random, stressed, placebo)))
        for features in treatments
    ]


def test_losses_and_their_difference_are_those_by_hand(
    world: CuredWorld, stage: Stage, treatment: Treatment, measured: Measured
) -> None:
    over_tasks = measure(stage, [treatment], world.features, make_method(METHOD), with_halves=False)
    (effect,) = effects_of(over_tasks, treatment.name, AS_IS, LEVEL)
    before, after = by_hand(stage, [world.features, sp.transform(world.features, treatment.steps)])
    assert effect.axis == "fewstab"
    assert effect.reference == "random"
    assert effect.before.mean == pytest.approx(before[0])
    assert effect.after.mean == pytest.approx(after[0])
    # The same tasks before and after: each adds the difference of its two contributions.
    differences = [new - old for new, old in zip(after[1:], before[1:], strict=True)]
    for interval, mean, groups in [
        (effect.before, before[0], before[1:]),
        (effect.after, after[0], after[1:]),
        (effect.difference, after[0] - before[0], differences),
    ]:
        variance, freedom = sum_of_means(*groups)
        half = stats.t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(variance)
        assert interval.covers == "sampler"
        assert (interval.low, interval.high) == pytest.approx((mean - half, mean + half))
    # New images vary, too.
    (with_images,) = effects_of(measured, treatment.name, AS_IS, LEVEL)
    assert with_images.difference.covers == "images"
    assert with_images.difference.mean == effect.difference.mean
    assert with_images.difference.task_variance == pytest.approx(effect.difference.variance)
    assert with_images.difference.half_width >= effect.difference.half_width


def test_accuracy_is_that_on_the_reference_paired_by_task(
    world: CuredWorld, stage: Stage, treatment: Treatment
) -> None:
    measured = measure(stage, [treatment], world.features, make_method(METHOD), with_halves=False)
    treated = sp.transform(world.features, treatment.steps)
    before, after = (accuracy_by_task(stage.tasks[0], features) for features in (world.features, treated))
    difference = measured.accuracy("projected").minus(measured.accuracy(AS_IS))
    interval = measured.interval(difference, LEVEL)
    assert interval.mean == pytest.approx((after - before).mean())
    t_test = stats.ttest_rel(after, before).confidence_interval(LEVEL)
    assert (interval.low, interval.high) == pytest.approx((t_test.low, t_test.high))
    assert measured.tasks("fewstab") == len(before)


def test_a_treatment_that_changes_nothing_has_no_effect(world: CuredWorld, stage: Stage) -> None:
    doubled = sp.Features.from_array(world.catalog.items, 2 * world.features.array, name="doubled")
    (effect,) = effects_of(
        measure(
            stage, [Treatment("doubled", features=doubled)], world.features, make_method(METHOD), with_halves=False
        ),
        "doubled",
        AS_IS,
        LEVEL,
    )
    assert effect.difference.mean == 0
    assert effect.difference.refused
    assert effect.more_tasks is None


def test_a_classifier_at_chance_has_nothing_to_lower(world: CuredWorld, stage: Stage) -> None:
    noise = np.random.default_rng(0).normal(size=world.features.array.shape)
    chance = sp.Features.from_array(world.catalog.items, noise, name="noise")
    measured = measure(stage, [], chance, make_method(METHOD), with_halves=False)
    lost = measured.interval(measured.skill_lost(AS_IS, "fewstab", LEVEL), LEVEL)
    assert "at chance" in str(lost.refused)


def normal(mean: float, error: float) -> Interval:
    return Estimate(mean, Spread(error**2, 2 * error**4 / 1e9)).interval("images", 0.95)


def test_conclusions_are_those_of_holm() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        intervals = [normal(mean, 1.0) for mean in random.normal(scale=2.5, size=8)]
        p_values = [2 * stats.norm.sf(abs(interval.mean)) for interval in intervals]
        rejected = multipletests(p_values, alpha=0.05, method="holm")[0]
        expected = [
            ("+" if interval.mean > 0 else "-") if reject else "0"
            for interval, reject in zip(intervals, rejected, strict=True)
        ]
        assert conclude_effects(intervals, 0.95) == expected
