from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info
from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.custom.task_by_task import TaskByTask
from shotproof.learners.method import make_method
from shotproof.tasks.taskset import TaskSet
from tests.drawn_tasks import draw


class Prototypes(torch.nn.Module):
    """A classifier of easyfsl's form: the support set first, then calls with queries."""

    def process_support_set(self, support: Tensor, labels: Tensor) -> None:
        self.means = torch.stack([support[labels == c].mean(0) for c in range(int(labels.max()) + 1)])

    def forward(self, query: Tensor) -> Tensor:
        return -torch.cdist(query, self.means).square()

    @staticmethod
    def is_transductive() -> bool:
        return False


def nearest_mean(support: Tensor, labels: Tensor, query: Tensor) -> np.ndarray:
    """Labels, by NumPy."""
    rows, given = support.numpy().astype(np.float64), labels.numpy()
    means = np.stack([rows[given == c].mean(0) for c in range(given.max() + 1)])
    return np.square(query.numpy()[:, None] - means).sum(-1).argmin(1)


def test_a_function_and_an_episodic_object_answer_as_the_built_in_method() -> None:
    batch = draw(tasks=3)
    expected = make_method("ncc").scores(*batch)
    close = {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(make_method(Prototypes()).scores(*batch).double(), expected, **close)
    assert torch.equal(make_method(nearest_mean).scores(*batch).argmax(-1), expected.argmax(-1))


def test_the_family_is_what_the_classifier_says() -> None:
    assert make_method(Prototypes()).family == "inductive"
    assert make_method(nearest_mean).family == "transductive"


def test_they_are_evaluated_by_name_and_alone() -> None:
    rng = np.random.default_rng(0)
    items = [f"{c}-{i}" for c in "ab" for i in range(6)]
    features = Features.from_array(items, rng.normal(size=(12, 4)) + np.repeat([[0], [4]], 6, axis=0))
    rows = [
        {"task": 0, "slot": s, "label": c, "attribute": None, "support": [f"{c}-0"], "query": [f"{c}-1", f"{c}-2"]}
        for s, c in enumerate("ab")
    ]
    import pyarrow as pa

    tasks = TaskSet(pa.Table.from_pylist(rows))
    spec = "python:tests.learners.custom.test_task_by_task:nearest_mean"
    results = evaluate(tasks, features, ["ncc", spec, Prototypes(), nearest_mean])
    assert results.methods == ["ncc", spec, "Prototypes", "nearest_mean"]
    expected = results.counts("ncc").accuracy_by_task()
    assert all(np.array_equal(results.counts(name).accuracy_by_task(), expected) for name in results.methods)
    assert evaluate(tasks, features, nearest_mean).methods == ["nearest_mean"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda query: torch.zeros(3, 2), "found float32 of shape (3, 2)"),
        (lambda query: np.full(len(query), 9), "labels from 0 to 3, found int64"),
        (lambda query: query @ torch.zeros(1, 1), "method 'own' failed: "),
        (lambda query: None, "method 'own' failed: "),
    ],
)
def test_what_is_no_answer_is_told(answer: Any, message: str) -> None:
    def own(support: Tensor, labels: Tensor, query: Tensor) -> Any:
        return answer(query)

    with pytest.raises(InputError) as raised:
        TaskByTask(own).scores(*draw())
    assert message in str(raised.value)


def test_its_tasks_are_computed_in_one_thread() -> None:
    seen = []

    def counting(support: Tensor, labels: Tensor, query: Tensor) -> Tensor:
        seen.append(torch.get_num_threads())
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return torch.zeros(len(query), 4)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        make_method(counting).scores(*draw(tasks=2))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}
