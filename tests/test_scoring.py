from __future__ import annotations

import numpy as np
import pytest
import torch

from shotproof.evaluation import scoring
from shotproof.evaluation.batches import TaskArrays
from shotproof.evaluation.scoring import Items, predict, tasks_at_a_time
from shotproof.methods.method import make_method
from tests.drawn_tasks import draw_task_set


@pytest.mark.parametrize("gram_pays", [True, False])
def test_blocks_are_the_inner_products_of_the_features(gram_pays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "STRIPE", 2)
    arrays = TaskArrays.of(*draw_task_set())
    items = Items(arrays, torch.device("cpu"))
    items.gram_pays = gram_pays
    support, query = torch.tensor([[3, 1], [0, 3]]), torch.tensor([[2, 2, 5], [4, 1, 0]])
    within, across, norm2 = items.blocks(support, query)
    values = arrays.values.astype(np.float64)
    for task in range(2):
        rows, asked = values[support[task]], values[query[task]]
        np.testing.assert_allclose(within[task], rows @ rows.T)
        np.testing.assert_allclose(across[task], asked @ rows.T)
        np.testing.assert_allclose(norm2[task], (asked**2).sum(1))


def test_all_pairs_at_once_pay_where_tasks_share_items() -> None:
    many_tasks, many_items = draw_task_set(tasks=60), draw_task_set(tasks=5, classes=9, items=40)
    assert Items(TaskArrays.of(*many_tasks), torch.device("cpu")).gram_pays
    assert not Items(TaskArrays.of(*many_items), torch.device("cpu")).gram_pays


def test_the_lowest_of_tied_classes_wins_and_rounding_does_not_count() -> None:
    infinity = float("inf")
    scores = [[1, 1 + 1e-13, 0], [1, 1 + 1e-6, 0], [-3, -2, -2], [0, 0, 0], [-infinity, -1, -1], [-infinity] * 3]
    assert predict(torch.tensor(scores, dtype=torch.float64)).tolist() == [0, 1, 1, 0, 1, 0]


def test_methods_that_need_the_features_take_fewer_tasks_at_a_time() -> None:
    arrays = TaskArrays.of(*draw_task_set(tasks=60, d=2000))
    items, shape = Items(arrays, torch.device("cpu")), arrays.shapes()[0]
    gram, estimator = make_method("ncc"), make_method("sklearn:sklearn.svm.SVC")
    assert tasks_at_a_time(shape, items, [gram, estimator]) < tasks_at_a_time(shape, items, [gram])
