from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy import stats

from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.dominance import Comparable, above
from shotproof.results.evaluated import evaluated_sets
from shotproof.stats.intervals import Estimate, Spread
from tests.drawn_results import draw_results, draw_tasks


def test_independent_numbers_are_compared_as_by_hand_in_more_than_one_block() -> None:
    random = np.random.default_rng(0)
    count = 300
    mean, variance = random.normal(70, 4, count), random.uniform(0.5, 2, count)
    freedom = random.uniform(5, 80, count)
    numbers = [
        Comparable(Estimate(m, Spread(v, 2 * v**2 / f))) for m, v, f in zip(mean, variance, freedom, strict=True)
    ]
    i, j = np.triu_indices(count, 1)
    t = np.abs(mean[i] - mean[j]) / np.sqrt(variance[i] + variance[j])
    p = 2 * stats.t.sf(t, np.minimum(freedom[i], freedom[j]))
    # Holm's procedure as its paper has it: the smallest first, until one is too large.
    expected, order = np.zeros((count, count), dtype=bool), np.argsort(p)
    for step, place in enumerate(order):
        if p[place] > 0.05 / (len(p) - step):
            break
        pair = (i[place], j[place]) if mean[i[place]] > mean[j[place]] else (j[place], i[place])
        expected[pair] = True
    assert 1000 < expected.sum() < 40_000
    np.testing.assert_array_equal(above(numbers), expected)


def test_a_skewed_number_is_told_as_its_own_interval_tells() -> None:
    # The second is as good as known: the difference has the spread of the first.
    for mean in (1.5, 2.2, 2.6, 3.5):
        for third in (-2.0, 0.0, 2.0):
            estimate = Estimate(mean, Spread(1.0, 0.02, third))
            known = Comparable(Estimate(0.0, Spread(1e-12, 1e-26)))
            assert above([Comparable(estimate), known])[0, 1] == (estimate.p_value() <= 0.05)


def test_results_are_compared_task_by_task_as_comparisons_are() -> None:
    random, fewstab = draw_tasks("random", tasks=60), draw_tasks("fewstab", detector="words", tasks=60)
    placebo = draw_tasks("placebo", like=fewstab)
    methods = {"a": 0.5, "b": 0.58, "c": 0.64, "d": 0.7, "e": 0.9}
    results = [draw_results(tasks, methods, seed=seed) for seed, tasks in enumerate((random, fewstab, placebo))]
    sets = evaluated_sets(results)
    paired, without = compare_sets(sets, ("sampler",)), compare_sets(sets, ("sampler",), pairs=False)
    conclusive = 0
    for block, other in zip(paired.blocks, without.blocks, strict=True):
        assert block.losses[0].placebo is not None
        groups = [*block.groups, block.losses[0].skill]
        others = [*other.groups, other.losses[0].skill]
        for group, bare in zip(groups, others, strict=True):
            assert bare.pairs == {}
            for metric in ("acc", "wacc"):
                estimates = {row.classifier: row.intervals[metric]["sampler"].estimate for row in bare.rows}
                names = list(estimates)
                found = above(
                    [Comparable(estimates[estimate], bare.by_task[metric][estimate]) for estimate in estimates]
                )
                for pair in group.pairs[metric, "sampler"]:
                    a, b = names.index(pair.a), names.index(pair.b)
                    assert {"+": found[a, b], "-": found[b, a], "0": not (found[a, b] or found[b, a])}[pair.conclusion]
                    conclusive += pair.conclusion != "0"
    assert conclusive > 20


def test_what_new_data_adds_is_independent_and_known_by_its_own_degrees_of_freedom() -> None:
    random = np.random.default_rng(0)
    first = random.normal(70, 10, 200)
    for shift in np.linspace(0.5, 4, 8):
        second = first + shift + random.normal(0, 1, 200)
        data = Spread(1.0, 2.0 / 9)  # 9 degrees of freedom
        numbers = [Comparable(Estimate.over_tasks(one), {("tasks",): one}, data) for one in (first, second)]
        differences = second - first
        t = differences.mean() / np.sqrt(differences.var(ddof=1) / 200 + 2.0)
        assert above(numbers)[1, 0] == (2 * stats.t.sf(t, 9) <= 0.05)


def test_the_same_results_are_never_told_apart() -> None:
    values = np.random.default_rng(0).normal(70, 10, 40)
    same = [Comparable(Estimate.over_tasks(values), {("tasks",): values}) for _ in range(3)]
    assert not above(same).any()


def test_of_one_number_and_of_none_nothing_is_told() -> None:
    assert above([]).shape == (0, 0)
    assert not above([Comparable(Estimate(1.0, Spread(1.0, 1.0)))]).any()


def test_nobody_is_above_one_that_is_above_him() -> None:
    random = np.random.default_rng(1)
    numbers = [Comparable(Estimate(mean, Spread(1.0, 0.1))) for mean in random.normal(0, 5, 40)]
    found = above(numbers)
    assert not (found & found.T).any()
    assert all(
        found[a, b] for a, b in combinations(range(40), 2) if numbers[a].estimate.mean > numbers[b].estimate.mean + 9
    )
