from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.core.runtime.local import LocalEngine
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.batch_engine import items_on, predict_tasks
from shotproof.evaluation.batches import TaskArrays
from shotproof.evaluation.evaluate import evaluate
from shotproof.learners.heads.transductive.bpa import Bpa
from shotproof.learners.method import Method, make_method
from tests.drawn_tasks import draw_task_set

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Hungry(Method):
    """Nearest centroid that has memory for a few tasks only, and warns of every task."""

    most: int = 3

    about = "for tests"

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        if len(support) > self.most:
            raise torch.OutOfMemoryError("too many tasks")
        for task in support[:, 0, 0].tolist():
            warnings.warn(f"a task that starts with {task}", RuntimeWarning, stacklevel=1)
        return make_method("ncc").scores(support, labels, query, way)


def arrays_and_seeds(tasks: int = 60) -> tuple[TaskArrays, np.ndarray]:
    arrays = TaskArrays.of(*draw_task_set(tasks=tasks))
    return arrays, np.arange(len(arrays.way))


@pytest.mark.parametrize("chunk", [None, 1, 7])
def test_devices_share_the_work_and_change_nothing(chunk: int | None) -> None:
    arrays, seeds = arrays_and_seeds()
    methods = [make_method("ncc"), make_method("sklearn:sklearn.tree.DecisionTreeClassifier()"), Hungry(100)]
    alone, warned = predict_tasks(arrays, methods, seeds, items_on([CPU], arrays, methods), Runtime(), chunk)
    together, warned_together = predict_tasks(
        arrays, methods, seeds, items_on([CPU] * 3, arrays, methods), Runtime(), chunk
    )
    assert np.array_equal(alone, together)
    assert warned == warned_together
    assert [len(messages) for messages in warned] == [0, 0, len(arrays.way)]


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
def test_threads_share_the_work_and_change_nothing() -> None:
    arrays, seeds = arrays_and_seeds()
    methods = [make_method("ncc"), make_method("pt-map(steps=2)"), make_method("tim(steps=3)"), Hungry(100)]
    shared, warned = predict_tasks(arrays, methods, seeds, items_on([CPU], arrays, methods), Runtime(), chunk=4)
    assert torch.get_num_threads() == 3
    torch.set_num_threads(1)
    alone, warned_alone = predict_tasks(arrays, methods, seeds, items_on([CPU], arrays, methods), Runtime(), chunk=4)
    assert np.array_equal(shared, alone)
    assert warned == warned_alone
    assert [len(messages) for messages in warned] == [0, 0, 0, len(arrays.way)]


@pytest.mark.usefixtures("three_threads")
def test_code_that_may_remember_sees_one_task_after_another() -> None:
    tasks, features = draw_task_set(tasks=30)
    seen: list[str] = []

    def head(support: Tensor, labels: Tensor, query: Tensor) -> Tensor:
        seen.append(threading.current_thread().name)
        return make_method("ncc").scores(support[None], labels[None], query[None], int(labels.max()) + 1)[0]

    within = Bpa("sklearn:sklearn.tree.DecisionTreeClassifier()")
    assert within.in_order
    evaluate(tasks, features, [head, "ncc"], chunk=2, runtime=Runtime(device="cpu"))
    assert set(seen) == {threading.current_thread().name}


@pytest.mark.usefixtures("three_threads")
def test_an_error_in_a_thread_is_passed_on() -> None:
    with pytest.raises(InputError, match=r"does not fit .*memory"):
        evaluate(*draw_task_set(tasks=40), [Hungry(0)], chunk=1, runtime=Runtime(device="cpu"))
    assert torch.get_num_threads() == 3


def test_a_batch_that_does_not_fit_is_done_in_parts() -> None:
    tasks, features = draw_task_set(tasks=40)
    with pytest.warns(RuntimeWarning, match="'Hungry.*' warned 40 times"):
        results = evaluate(tasks, features, [Hungry(3)])
    expected = evaluate(tasks, features, "ncc").counts("ncc").accuracy_by_task()
    assert np.array_equal(results.counts(results.methods[0]).accuracy_by_task(), expected)


def test_a_task_that_does_not_fit_is_told() -> None:
    tasks, features = draw_task_set(tasks=5)
    with pytest.raises(InputError, match=r"one \d-way task .* does not fit .*memory of cpu"):
        evaluate(tasks, features, [Hungry(0)])


def test_an_error_that_is_not_of_memory_is_passed_on() -> None:
    class Broken(Method):
        about = "for tests"

        def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
            raise RuntimeError("of another kind")

    with pytest.raises(RuntimeError, match="of another kind"):
        evaluate(*draw_task_set(tasks=5), [Broken()])


@dataclass(frozen=True)
class ManyMachines(LocalEngine):
    """As an engine on several machines would: the tasks are cut, and each part is evaluated elsewhere."""

    def shards(self, count: int) -> list[range]:
        return [range(start, min(start + 7, count)) for start in range(0, count, 7)]


def test_tasks_that_machines_share_are_evaluated_as_by_one() -> None:
    tasks, features = draw_task_set()
    methods = ["ncc", "linear(epochs=3)", "tim(steps=3)"]
    alone = evaluate(tasks, features, methods, seed=3)
    shared = evaluate(tasks, features, methods, seed=3, runtime=Runtime(engine=ManyMachines(), workers=2))
    assert shared.table.equals(alone.table)
