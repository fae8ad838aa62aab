from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from shotproof.evaluation.batches import TaskArrays
from shotproof.evaluation.item_tensors import ItemTensors
from shotproof.evaluation.scoring import Gathered, predict, tasks_at_a_time
from shotproof.features.features import Features
from shotproof.learners.method import make_method
from tests.drawn_tasks import draw_task_set


def test_the_lowest_of_tied_classes_wins_and_rounding_does_not_count() -> None:
    infinity = float("inf")
    scores = [[1, 1 + 1e-13, 0], [1, 1 + 1e-6, 0], [-3, -2, -2], [0, 0, 0], [-infinity, -1, -1], [-infinity] * 3]
    assert predict(torch.tensor(scores, dtype=torch.float64)).tolist() == [0, 1, 1, 0, 1, 0]


def test_methods_that_need_the_features_take_fewer_tasks_at_a_time() -> None:
    arrays = TaskArrays.of(*draw_task_set(tasks=60, d=2000))
    items, shape = ItemTensors(arrays, torch.device("cpu")), arrays.shapes()[0]
    gram, estimator = make_method("ncc"), make_method("sklearn:sklearn.svm.SVC")
    assert tasks_at_a_time(shape, items, [gram, estimator]) < tasks_at_a_time(shape, items, [gram])


def hard_to_tell(kind: str, values: np.ndarray) -> np.ndarray:
    """Features on which float32 decides wrongly."""
    if kind == "far from the origin":
        return values + 3000
    if kind == "copies":
        return np.repeat(values[::2], 2, axis=0)[: len(values)]
    if kind == "huge":
        return values * 1e14
    if kind == "cancelling":
        return values * np.where(np.arange(len(values)) % 2, -1, 1)[:, None]
    return np.round(values)


@pytest.fixture(params=["highest", "medium"])
def precision(request: pytest.FixtureRequest) -> Iterator[str]:
    """PyTorch's precision of products in float32: `medium` may be as coarse as bfloat16."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(request.param)
    yield request.param
    torch.set_float32_matmul_precision(before)


@pytest.mark.usefixtures("precision")
@pytest.mark.parametrize("kind", ["far from the origin", "copies", "huge", "cancelling", "rounded"])
@pytest.mark.parametrize("spec", ["ncc", "cosine", "cosine(rows='raw')", "simpleshot", "simpleshot(form='UN')"])
def test_float32_never_decides_an_answer(spec: str, kind: str) -> None:
    tasks, drawn = draw_task_set(tasks=40, classes=6, items=24, d=50)
    values = hard_to_tell(kind, drawn.array.astype(np.float64)).astype(np.float32)
    arrays = TaskArrays.of(tasks, Features.from_array(drawn.table.column("item").to_pylist(), values))
    items, method = ItemTensors(arrays, torch.device("cpu")), make_method(spec)
    for _, members in arrays.by_shape():
        for batch in arrays.batches(members, 7):
            gathered = Gathered(items, arrays, batch, np.zeros(len(tasks), np.int64))
            exact = torch.from_numpy(arrays.values.astype(np.float64))
            support, query = exact[arrays.support.items[batch.support]], exact[arrays.query.items[batch.query]]
            labels = torch.from_numpy(arrays.support.slot[batch.support])
            scores = method.scores(support, labels, query, batch.way)
            assert gathered.labels(method).tolist() == predict(scores).tolist()
