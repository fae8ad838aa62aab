from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from shotproof.analysis.attribute_costs import MIN_TASKS, attribute_costs
from shotproof.evaluation.answers import answers_on
from tests.report_files import make_catalog, make_results, make_tasks


def test_costs_are_those_computed_by_hand(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path), tasks=60)
    results = [make_results(tasks, name, {"ncc": 0.7, "ridge": 0.4}) for name in ("pixels", "other")]
    costs = attribute_costs([answers_on(tasks, results)])
    shares: dict[tuple[int, int], list[float]] = {}
    for given in results:
        for row in given.table.to_pylist():
            shares.setdefault((row["task"], row["slot"]), []).append(100 * row["n_correct"] / row["n_query"])
    overall = np.mean([np.mean(values) for values in shares.values()])
    assert costs.overall == pytest.approx(overall)
    assert costs.planted == 4
    assert 1 <= len(costs.costs) <= 3  # not all can be below the mean
    for cost in costs.costs:
        planted = [row for row in tasks.table.to_pylist() if row["attribute"] == cost.attribute]
        values = [np.mean(shares[row["task"], row["slot"]]) for row in planted]
        assert (cost.tasks, cost.labels) == (len(planted), len({row["label"] for row in planted}))
        low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        assert (cost.accuracy.low, cost.accuracy.high) == pytest.approx((low, high))
        assert np.mean(values) < overall
    ends = [cost.accuracy.high for cost in costs.costs]
    assert ends == sorted(ends)


def test_attributes_planted_in_few_tasks_and_random_tasks_have_no_cost(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    few = make_tasks(catalog, tasks=MIN_TASKS - 1)
    random = make_tasks(catalog, "random")
    for tasks, planted in ((few, 4), (random, 0)):
        costs = attribute_costs([answers_on(tasks, [make_results(tasks, "pixels", {"ncc": 0.5})])])
        assert (costs.costs, costs.planted) == ([], planted)


def test_replicates_are_taken_together_and_their_tasks_told_apart(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    sets = [make_tasks(catalog, tasks=8, seed=seed) for seed in (0, 1)]
    answered = [answers_on(one, [make_results(one, "pixels", {"ncc": 0.5}, seed=n)]) for n, one in enumerate(sets)]
    costs = attribute_costs(answered)
    assert [attribute_costs([one]).costs for one in answered] == [[], []]  # too few tasks in each alone
    assert costs.costs
    for cost in costs.costs:
        planted = [
            value
            for one in answered
            for value, word in zip(one.accuracy_by_row(), one.tasks.table.column("attribute").to_pylist(), strict=True)
            if word == cost.attribute
        ]
        assert cost.tasks == len(planted)  # an attribute is planted at most once per task
        assert cost.accuracy.mean == pytest.approx(np.mean(planted))


def test_against_a_placebo_classes_that_are_hard_anyway_cost_nothing(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path), tasks=60)
    own, sham = (
        answers_on(tasks, [make_results(tasks, "pixels", {"ncc": right}, seed=seed)])
        for seed, right in ((0, 0.5), (1, 0.7))
    )
    costs = attribute_costs([own], [sham])
    assert costs.costs
    lost = sham.accuracy_by_row() - own.accuracy_by_row()
    words = np.array(tasks.table.column("attribute").to_pylist())
    for cost in costs.costs:
        values = lost[words == cost.attribute]  # planted at most once per task
        assert cost.lost is not None
        low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        assert (cost.lost.low, cost.lost.high) == pytest.approx((low, high))
    ends = [-cost.lost.low for cost in costs.costs if cost.lost]
    assert ends == sorted(ends)
    assert attribute_costs([own], [own]).costs == []  # as hard as its placebo
