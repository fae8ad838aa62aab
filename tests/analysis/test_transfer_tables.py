"""Transfer of hard tasks to other encoders: drops against SciPy's paired test on the counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scipy import stats

from shotproof.analysis.transfer_tables import transfer
from shotproof.core.errors import InputError, Mismatch
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.tasks.sampler import sample
from tests.hard_tasks import WORLD, leaning_features, random_tasks, with_other_supports


def named(features: Features, name: str) -> Features:
    return replace(features, record=replace(features.record, name=name))


FIRST, SECOND = named(leaning_features(0.5), "first"), named(leaning_features(0.4, seed=3), "second")


def test_drops_are_scipys_paired_differences() -> None:
    random = random_tasks(30)
    other = with_other_supports(random, "moved")
    (table,), results = transfer([other], random, [FIRST, SECOND], ["ncc", "knn"], level=0.9)
    assert (table.sampler, table.reference, table.tasks, table.paired) == ("moved", "random", 30, True)
    assert table.extracted_with is None
    names = [(row.classifier.encoder, row.classifier.method) for row in table.rows]
    assert names == [("first", "ncc"), ("first", "knn"), ("second", "ncc"), ("second", "knn")]
    assert [result.digest for result in results] == [
        evaluate(tasks, features, ["ncc", "knn"]).digest for tasks in (random, other) for features in (FIRST, SECOND)
    ]
    for row, features in zip(table.rows, (FIRST, FIRST, SECOND, SECOND), strict=True):
        method = row.classifier.method
        counts = [evaluate(tasks, features, method).counts(method) for tasks in (random, other)]
        by_metric = {
            "acc": [count.accuracy_by_task() for count in counts],
            "wacc": [count.worst_by_task() for count in counts],
        }
        for metric, (before, after) in by_metric.items():
            bounds = stats.ttest_rel(before, after).confidence_interval(0.9)
            drop = row.drop[metric]  # type: ignore[index]
            assert (drop.low, drop.high) == pytest.approx((bounds.low, bounds.high))
            assert drop.mean == pytest.approx(before.mean() - after.mean())


def test_tasks_that_are_hard_for_one_encoder_are_hard_for_another_that_leans_alike() -> None:
    random = random_tasks(120)
    hard = sample(WORLD.catalog(), "hardest", features=FIRST, like=random)
    (table,), _ = transfer([hard], random, [FIRST, SECOND], ["ncc", "ridge"])
    assert table.extracted_with == "first"
    assert [row.own for row in table.rows] == [True, True, False, False]
    assert all(row.drop["acc"].low > 0 for row in table.rows)
    assert table.rows[0].drop["acc"].mean > table.rows[2].drop["acc"].mean


def test_bad_input_is_told() -> None:
    random = random_tasks(5)
    with pytest.raises(InputError, match=r"two features .* encoder named 'first'"):
        transfer([random], random, [FIRST, FIRST])
    with pytest.raises(InputError, match="no features"):
        transfer([random], random, [])
    apart = sample(WORLD.catalog(), "random", shot=4, query=8, tasks=5)
    with pytest.raises(Mismatch, match="cannot be compared"):
        transfer([with_other_supports(apart, "moved")], random, [FIRST], ["ncc"])
