"""How much a loss varies if words mean nothing, against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from shotproof.comparison.compare_sets import compare_sets
from shotproof.results.evaluated import METRICS, evaluated_sets
from shotproof.stats.evidence import Reevaluated
from shotproof.stats.shuffles import ShuffledMeans, ShuffledTasks
from tests.drawn_results import draw_results, draw_tasks


def drawn(shuffles: int, tasks: int, between: float, within: float, seed: int = 0) -> np.ndarray:
    """Values [shuffles, tasks] of tasks that share a part with variance `between` and have one with `within`."""
    generator = np.random.default_rng(seed)
    shared = generator.normal(scale=np.sqrt(between), size=(shuffles, 1))
    return 50 + shared + generator.normal(scale=np.sqrt(within), size=(shuffles, tasks))


def test_with_as_many_tasks_the_variance_is_that_of_the_means_over_shuffles() -> None:
    values = drawn(30, 20, 2.0, 9.0)
    spread = ShuffledMeans.of_values(values[:, :, None], ["a"]).spread({"a": 1.0}, {}, 20)
    assert spread.variance == pytest.approx(values.mean(axis=1).var(ddof=1))
    assert spread.freedom == pytest.approx(29)


@pytest.mark.parametrize("tasks", [50, 100, 1000])
def test_the_variance_is_that_of_means_over_other_numbers_of_tasks(tasks: int) -> None:
    known = ShuffledMeans.of_values(drawn(4000, 100, 0.5, 60.0)[:, :, None], ["a"])
    brute = drawn(4000, tasks, 0.5, 60.0, seed=1).mean(axis=1).var()
    assert known.spread({"a": 1.0}, {}, tasks).variance == pytest.approx(brute, rel=0.12)


def test_shuffles_of_one_task_take_its_variance_for_that_of_all() -> None:
    values = drawn(30, 1, 2.0, 9.0)
    spread = ShuffledMeans.of_values(values[:, :, None], ["a"]).spread({"a": 1.0}, {}, 100)
    assert spread.variance == pytest.approx(values.var(ddof=1))


def test_a_placebo_adds_the_variance_of_tasks_that_have_nothing_in_common() -> None:
    values = drawn(4000, 100, 0.5, 60.0)
    known = ShuffledMeans.of_values(values[:, :, None], ["a"])
    alone, beyond = (known.spread({"a": 1.0}, placebo, 200).variance for placebo in ({}, {"a": -1.0}))
    assert beyond - alone == pytest.approx(60.5 / 200, rel=0.05)  # each task of it has a shuffle of its own


def test_sums_are_paired_shuffle_by_shuffle() -> None:
    first = drawn(200, 30, 4.0, 9.0)
    both = ShuffledMeans.of_values(np.stack([first, first + 3], axis=2), ["a", "b"])
    assert both.spread({"a": 1.0, "b": -1.0}, {}, 30).variance == pytest.approx(0, abs=1e-9)
    assert both.spread({"a": 1.0, "b": 1.0}, {}, 30).variance == pytest.approx(4 * first.mean(axis=1).var(ddof=1))


@pytest.mark.parametrize("between", [0.0, 100.0])
def test_no_interval_of_a_loss_is_narrower_than_without_shuffles_or_than_these(between: float) -> None:
    skill = {"ncc": 0.9, "ridge": 0.8}
    stressed = draw_tasks("fewstab", tasks=60)
    drawn_sets = (draw_tasks(tasks=60), stressed, draw_tasks("placebo", like=stressed))
    sets = evaluated_sets(
        [draw_results(drawn_task_set, skill, seed=seed) for seed, drawn_task_set in enumerate(drawn_sets)]
    )
    generator = np.random.default_rng(0)
    names = [(stressed.digest, classifier, metric) for classifier in sets[0].values for metric in METRICS]
    shared = generator.normal(scale=np.sqrt(between), size=(40, 1, len(names)))
    means = ShuffledMeans.of_values(shared + generator.normal(scale=10, size=(40, 60, len(names))), names)
    known = {sets[0].origin.design: Reevaluated(shuffled=ShuffledTasks(means, {}, {}))}
    before, now = (compare_sets(sets, ("sampler",), reevaluated=given).blocks[0].losses[0] for given in ({}, known))
    assert (before.is_shuffled, now.is_shuffled) == (False, True)
    assert before.gap == now.gap  # it says nothing of words
    for first, second in zip((*before.lost.rows, *before.skill.rows), (*now.lost.rows, *now.skill.rows), strict=True):
        for metric in METRICS:
            widths = [row.intervals[metric]["sampler"].half_width for row in (first, second)]
            assert widths[1] >= widths[0] - 1e-9
            assert (widths[1] > 1.5 * widths[0]) == (between > 0)
    for row in now.lost.rows:
        null = means.spread(
            {(stressed.digest, row.classifier, "acc"): -1.0}, {(stressed.digest, row.classifier, "acc"): 1.0}, 60
        )
        assert row.intervals["acc"]["sampler"].half_width >= null.half_width - 1e-9
