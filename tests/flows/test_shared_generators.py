"""Methods of somebody's own that draw from the generators that all code shares."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor

from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.learners.method import AnyMethod, Method
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet
from tests.drawn_tasks import draw_task_set


def guesses(draw: Any) -> Any:
    """A function that labels at random, by labels that `draw` gives for so many queries and classes."""

    def guess(support: Tensor, labels: Tensor, query: Tensor) -> Tensor:
        return torch.as_tensor(draw(len(query), int(labels.max()) + 1))

    return guess


class Dropped(torch.nn.Module):
    """A network of easyfsl's form whose dropout is on."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = torch.nn.Dropout(0.5)

    def process_support_set(self, support: Tensor, labels: Tensor) -> None:
        self.means = torch.stack([support[labels == c].mean(0) for c in range(int(labels.max()) + 1)])

    def forward(self, query: Tensor) -> Tensor:
        return -torch.cdist(self.drop(query), self.means)


class Unseeded:
    """An estimator without a random_state."""

    def fit(self, X: Any, y: Any) -> Unseeded:  # noqa: N803
        self.ways = int(y.max()) + 1
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803
        return np.random.randint(self.ways, size=len(X))


@dataclass(frozen=True)
class Batched(Method):
    """A method for many tasks at once that adds noise to its scores."""

    about = "for tests"

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        return torch.rand(*query.shape[:2], way)


STRANGERS: dict[str, AnyMethod] = {
    "torch": guesses(lambda count, way: torch.randint(way, (count,))),
    "numpy": guesses(lambda count, way: np.random.randint(way, size=count)),
    "python": guesses(lambda count, way: [random.randrange(way) for _ in range(count)]),
    "module": Dropped(),
    "estimator without random_state": Unseeded(),
    "estimator with random_state None": DecisionTreeClassifier(splitter="random", max_features=1),
    "batched": Batched(),
}


def missed(results: Results) -> dict[int, list[Any]]:
    """What was missed, by task."""
    found: dict[int, list[Any]] = {}
    for row in results.table.select(["task", "missed"]).to_pylist():
        found.setdefault(row["task"], []).append(row["missed"])
    return found


@pytest.mark.parametrize("name", STRANGERS)
def test_results_depend_on_the_seed_and_the_task_alone(name: str) -> None:
    method = STRANGERS[name]
    tasks, features = draw_task_set(tasks=60)  # some of them of one shape
    expected = missed(evaluate(tasks, features, method, seed=1))
    random.random(), np.random.random(), torch.rand(3)  # whatever was drawn before
    for chunk in (1, 5):
        assert missed(evaluate(tasks, features, method, seed=1, chunk=chunk)) == expected
    assert missed(evaluate(tasks, features, method, seed=2)) != expected
    last = TaskSet(tasks.table.filter(pa.compute.greater_equal(tasks.table.column("task"), 150)), tasks.record)
    some = missed(evaluate(last, features, method, seed=1))
    assert len(some) == 10
    assert all(expected[task] == rows for task, rows in some.items())


@pytest.mark.parametrize("name", STRANGERS)
def test_the_users_own_generators_are_left_alone(name: str) -> None:
    tasks, features = draw_task_set(tasks=6)
    random.seed(4)
    np.random.seed(4)
    torch.manual_seed(4)
    evaluate(tasks, features, STRANGERS[name])
    after = random.random(), np.random.random(), torch.rand(())
    random.seed(4)
    np.random.seed(4)
    torch.manual_seed(4)
    assert after == (random.random(), np.random.random(), torch.rand(()))


NETWORK = """
import torch

class Head(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.project = torch.nn.Linear(6, width)

    def process_support_set(self, support, labels):
        rows = self.project(support)
        self.means = torch.stack([rows[labels == c].mean(0) for c in range(int(labels.max()) + 1)])

    def forward(self, query):
        return -torch.cdist(self.project(query), self.means) + torch.rand(())
"""


def test_a_file_s_network_starts_from_the_same_weights_for_any_number_of_workers(tmp_path: Path) -> None:
    file = tmp_path / "my_heads.py"
    file.write_text(NETWORK.replace("Linear(6,", f"Linear({draw_task_set(tasks=1)[1].array.shape[1]},"))
    tasks, features = draw_task_set(tasks=24)
    spelled = f"{file}:Head"
    first = missed(evaluate(tasks, features, spelled))
    torch.rand(7)
    assert missed(evaluate(tasks, features, spelled)) == first
    assert missed(evaluate(tasks, features, spelled, runtime=Runtime(workers=2))) == first
    assert missed(evaluate(tasks, features, f"{file}:Head(width=9)")) != first
