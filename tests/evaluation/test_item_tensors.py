from __future__ import annotations

import numpy as np
import pytest
import torch

from shotproof.evaluation import item_tensors
from shotproof.evaluation.batches import TaskArrays
from shotproof.evaluation.item_tensors import ItemTensors
from shotproof.functional.feature_rows import PowerTransform, UnitRows
from shotproof.learners.method import make_method
from tests.drawn_tasks import draw_task_set

SUPPORT, QUERY = torch.tensor([[3, 1], [0, 3]]), torch.tensor([[2, 2, 5], [4, 1, 0]])
NOT_PREPARED, EXACT, GRAM = "each task anew", "float64 copies", "all products"


def items_of(prepared: str, spec: str, monkeypatch: pytest.MonkeyPatch) -> tuple[ItemTensors, np.ndarray]:
    """ItemTensors with so much computed beforehand, and their features in float64."""
    monkeypatch.setattr(item_tensors, "STRIPE", 2)
    monkeypatch.setattr(item_tensors, "PIECE", 1)
    monkeypatch.setattr(ItemTensors, "gram_pays", lambda *_: prepared == GRAM)
    arrays = TaskArrays.of(*draw_task_set())
    items = ItemTensors(arrays, torch.device("cpu"))
    items.prepare([] if prepared == NOT_PREPARED else [make_method(spec)])
    return items, arrays.values.astype(np.float64)


@pytest.mark.parametrize("prepared", [NOT_PREPARED, EXACT, GRAM])
def test_blocks_are_the_inner_products_of_the_features(prepared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    items, values = items_of(prepared, "ridge", monkeypatch)
    assert items.has_gram == (prepared == GRAM)
    within, across, norm2 = items.blocks(SUPPORT, QUERY)
    for task in range(2):
        rows, asked = values[SUPPORT[task]], values[QUERY[task]]
        np.testing.assert_allclose(within[task], rows @ rows.T)
        np.testing.assert_allclose(across[task], asked @ rows.T)
        np.testing.assert_allclose(norm2[task], (asked**2).sum(1))


@pytest.mark.parametrize("prepared", [NOT_PREPARED, EXACT, GRAM])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_centroids_are_weighted_sums_of_rows(
    prepared: str, dtype: torch.dtype, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    items, values = items_of(prepared, "ridge", monkeypatch)
    weights = torch.tensor([[[0.5, 0.5], [1.0, 0.0]], [[0.2, 0.3], [0.0, 2.0]]], dtype=torch.float64)
    products, squares = items.with_centroids(weights, SUPPORT, QUERY, dtype)
    centroids = weights.numpy() @ values[SUPPORT]
    np.testing.assert_allclose(products, centroids @ values[QUERY].swapaxes(1, 2), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(squares[..., 0], (centroids**2).sum(2), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("prepared", [NOT_PREPARED, EXACT, GRAM])
@pytest.mark.parametrize(("spec", "power"), [("bd-cspn", None), ("pt-map", PowerTransform(0.5))])
def test_cosines_are_those_of_the_transformed_features(
    prepared: str, spec: str, power: PowerTransform | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    items, values = items_of(prepared, spec, monkeypatch)
    rows = torch.cat([SUPPORT, QUERY], 1)
    if power:
        values = np.sign(values) * np.sqrt(np.abs(values) + 1e-6)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    expected = values[rows] @ values[rows].swapaxes(1, 2)
    np.testing.assert_allclose(items.cosines(rows, UnitRows(power)), expected, atol=1e-12)


@pytest.mark.parametrize("spec", ["ncc", "ridge", "bd-cspn"])
def test_all_pairs_at_once_pay_where_tasks_share_items(spec: str) -> None:
    many_tasks, many_items = draw_task_set(tasks=200), draw_task_set(tasks=5, classes=9, items=40)
    assert ItemTensors(TaskArrays.of(*many_tasks), torch.device("cpu")).gram_pays(make_method(spec))
    assert not ItemTensors(TaskArrays.of(*many_items), torch.device("cpu")).gram_pays(make_method(spec))
