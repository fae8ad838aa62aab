from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest
from scipy import stats
from sklearn.metrics import log_loss

from shotproof.analysis.explanation.hardness import Ways, hardness, query_losses
from shotproof.core.errors import Mismatch
from shotproof.evaluation.evaluate import evaluate
from shotproof.results.results import Results
from tests.drawn_tasks import draw_task_set


def test_losses_agree_with_scikit_learn() -> None:
    tasks, features = draw_task_set(tasks=12)
    losses = query_losses(tasks, features)
    vectors = dict(zip(features.table.column("item").to_pylist(), features.array.astype(np.float64), strict=True))
    rows = tasks.table.to_pylist()
    for number, (start, stop) in enumerate(zip(tasks.starts, tasks.starts[1:], strict=False)):
        classes = rows[start:stop]
        centroids = np.array([np.mean([vectors[item] for item in row["support"]], axis=0) for row in classes])
        truth = [slot for slot, row in enumerate(classes) for _ in row["query"]]
        queries = np.array([vectors[item] for row in classes for item in row["query"]])
        logits = -((queries[:, None] - centroids) ** 2).sum(axis=-1)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        expected = log_loss(truth, odds / odds.sum(axis=1, keepdims=True), labels=range(len(classes)))
        assert losses[number] == pytest.approx(expected)


def test_accuracy_goes_with_inverse_loss_as_scipy_has_it() -> None:
    tasks, features = draw_task_set(tasks=30)
    (own,) = hardness(tasks, features)
    assert (own.encoder, own.method) == ("drawn", "ncc")
    assert own.correlation == pytest.approx(stats.spearmanr(own.accuracy, 1 / own.loss).statistic)
    assert own.correlation > 0
    results = [evaluate(given, features, ["knn", "ridge"]) for given in (tasks, tasks.first(3))]
    given = hardness(tasks, features, results)
    assert [one.method for one in given] == ["knn", "ridge"]
    assert np.array_equal(given[0].accuracy, results[0].counts("knn").accuracy_by_task())


def test_an_accuracy_that_never_varies_has_no_correlation() -> None:
    tasks, features = draw_task_set(tasks=1)
    (own,) = hardness(tasks, features)
    assert own.to_json()["spearman"] is None


def test_results_that_lack_tasks_of_their_set_are_refused() -> None:
    tasks, features = draw_task_set(tasks=3)
    results = evaluate(tasks, features, "ncc")
    first = Results(results.table.filter(pc.equal(results.table.column("task"), 0)), results.record)
    with pytest.raises(Mismatch, match=r"the results of ncc are incomplete: .* 1 tasks, .* has 3"):
        hardness(tasks, features, [first])


def test_ways_are_counted() -> None:
    tasks, _ = draw_task_set(tasks=30)
    ways = [len(set(row)) for row in np.split(tasks.slot_of_row, tasks.starts[1:-1])]
    assert Ways.of(tasks).tasks == {way: ways.count(way) for way in sorted(set(ways))}
    assert Ways.of(tasks).mean.mean == pytest.approx(np.mean(ways))
