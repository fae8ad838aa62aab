from __future__ import annotations

import numpy as np
import pytest
import torch

from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation import item_tensors
from shotproof.evaluation.batches import TaskArrays
from shotproof.evaluation.evaluate import evaluate
from shotproof.evaluation.item_tensors import ItemTensors
from shotproof.evaluation.scoring import tasks_at_a_time
from shotproof.learners.method import make_method
from tests.drawn_tasks import draw_task_set

CPU = Runtime(device="cpu")
FAST = ["bd-cspn", "laplacianshot", "pt-map(steps=1)", "proto-lp(steps=1)", "ecpe(steps=1)", "bpa", "paddle(steps=5)"]
FAST += ["tim(steps=5)", "alpha-tim(steps=5)", "transductive-finetune(epochs=2)"]
BY_PRODUCTS = FAST[:6]


@pytest.mark.filterwarnings("ignore:method '(laplacianshot|paddle).*at most half of the classes")
@pytest.mark.parametrize("gram_items", [0, 12_000])
def test_no_answer_depends_on_the_chunk_nor_on_how_products_are_made(
    gram_items: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, features = draw_task_set(tasks=16)
    whole = evaluate(tasks, features, FAST, runtime=CPU)
    monkeypatch.setattr(item_tensors, "MOST_GRAM_ITEMS", gram_items)
    assert evaluate(tasks, features, FAST, chunk=1, runtime=CPU).table.equals(whole.table)


def test_larger_tasks_are_done_fewer_at_a_time() -> None:
    items = ItemTensors(TaskArrays.of(*draw_task_set(tasks=60)), torch.device("cpu"))
    small, large = (np.array([5, 5 * shot, 75]) for shot in (1, 20))
    for spec in BY_PRODUCTS:
        method = make_method(spec)
        assert tasks_at_a_time(large, items, [method]) < tasks_at_a_time(small, items, [method])


@pytest.mark.parametrize("spec", FAST)
def test_a_task_with_one_query_has_an_answer(spec: str) -> None:
    support, query = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0)).split([3, 1], dim=1)
    scores = make_method(spec).scores(support, torch.tensor([[0, 1, 2]]).expand(2, 3), query, 3)
    assert scores.shape == (2, 1, 3)
    assert scores.isfinite().all()
