from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel

from shotproof.analysis.set_distances import distance, feature_distances, median_distance
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.features.features import Features


def drawn(seed: int, count: int, shift: float = 0.0, size: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).normal(5 + shift, 1, (count, size))


def plain_mmd2(x: np.ndarray, y: np.ndarray, sigma: float) -> float:
    """The unbiased estimate as it is written down."""
    gamma = 1 / (2 * sigma**2)
    xx, yy, xy = rbf_kernel(x, x, gamma), rbf_kernel(y, y, gamma), rbf_kernel(x, y, gamma)
    n, m = len(x), len(y)
    within = (xx.sum() - np.trace(xx)) / (n * (n - 1)) + (yy.sum() - np.trace(yy)) / (m * (m - 1))
    return float(within - 2 * xy.mean())


@pytest.mark.parametrize("block", [8, 1024])
def test_the_discrepancy_agrees_with_scikit_learns_kernel(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr("shotproof.analysis.set_distances.BLOCK", block)
    x, y = drawn(0, 30), drawn(1, 21, 0.5)
    found = distance(x, y, bandwidth=1.7, permutations=0)
    assert found.mmd2 == pytest.approx(plain_mmd2(x, y, 1.7), rel=1e-9)
    assert found.mmd == pytest.approx(math.sqrt(found.mmd2))
    assert math.isnan(found.p_value)
    assert found.to_json()["p_value"] is None
    assert found.centroid_cosine == pytest.approx(cosine_similarity([x.mean(axis=0)], [y.mean(axis=0)])[0, 0])


def test_of_two_points_each_the_discrepancy_has_a_closed_form() -> None:
    x, y = np.array([[0.0], [1.0]]), np.array([[3.0], [4.0]])
    kernel = {gap: math.exp(-(gap**2) / 2) for gap in (1, 2, 3, 4)}
    expected = 2 * kernel[1] - (kernel[3] + kernel[4] + kernel[2] + kernel[3]) / 2
    assert distance(x, y, bandwidth=1.0, permutations=0).mmd2 == pytest.approx(expected)


def test_the_bandwidth_is_the_median_distance() -> None:
    x, y = drawn(0, 20), drawn(1, 20)
    both = np.concatenate([x, y])
    assert distance(x, y, permutations=0).bandwidth == pytest.approx(np.median(pdist(both)))
    assert median_distance(both, points=30) == pytest.approx(np.median(pdist(both)), rel=0.1)


def test_the_permutation_test_agrees_with_permutations_by_hand() -> None:
    x, y = drawn(0, 12), drawn(1, 12, 0.6)
    both, rng = np.concatenate([x, y]), np.random.default_rng(5)
    permuted = [plain_mmd2(both[o[:12]], both[o[12:]], 2.0) for o in (rng.permutation(24) for _ in range(600))]
    by_hand = np.mean(np.array(permuted) >= plain_mmd2(x, y, 2.0))
    assert distance(x, y, bandwidth=2.0, permutations=2000).p_value == pytest.approx(by_hand, abs=0.03)


def test_equal_distributions_are_rarely_told_apart_and_others_are() -> None:
    equal = [distance(drawn(s, 15), drawn(s + 100, 15), permutations=99).p_value for s in range(40)]
    assert np.mean(np.array(equal) <= 0.1) < 0.25
    assert 0.3 < np.mean(equal) < 0.7
    assert distance(drawn(0, 15), drawn(1, 15, 3.0), permutations=99).p_value == 0.01


def test_the_seed_fixes_the_test() -> None:
    x, y = drawn(0, 12), drawn(1, 12, 0.4)
    values = {distance(x, y, seed=seed).p_value for seed in (0, 0, 1, 2, 3)}
    assert distance(x, y, seed=1) == distance(x, y, seed=1)
    assert len(values) > 1


def catalog_of(labels: list[str], prefix: str) -> Catalog:
    items = [f"{prefix}{row}" for row in range(len(labels))]
    return Catalog(pa.table({"item": items, "path": items, "label": labels, "split": ["test"] * len(items)}))


def test_classes_are_compared_by_label() -> None:
    own, theirs = catalog_of(["a", "a", "b", "b", "b", "c"], "x"), catalog_of(["b", "b", "a", "a", "d"], "y")
    x, y = drawn(0, 6), drawn(1, 5)
    features, reference = Features.from_array(own.items, x), Features.from_array(theirs.items, y)
    found = feature_distances(features, reference, catalog=own, reference_catalog=theirs, permutations=0)
    assert [(label.label, label.count, label.reference_count) for label in found.classes] == [("a", 2, 2), ("b", 3, 2)]
    assert found.left_out == ["c", "d"]
    assert found.classes[1].mmd2 == pytest.approx(plain_mmd2(x[2:5], y[:2], found.classes[1].bandwidth), rel=1e-4)
    assert found.overall.count == 6
    without = feature_distances(features, reference, permutations=0)
    assert (without.classes, without.overall) == ([], found.overall)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (drawn(0, 5), drawn(0, 5, size=3), "the features have 4 dimensions, the reference has 3"),
        (drawn(0, 1), drawn(0, 5), "1 features against 5: .* at least two"),
        (np.ones((4, 2)), np.ones((4, 2)), r"bandwidth 0: .*above 0 \(.*identical\)"),
    ],
)
def test_sets_that_cannot_be_compared_are_refused(x: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        distance(x, y)


def test_a_bandwidth_that_is_no_width_is_refused() -> None:
    with pytest.raises(InputError, match=r"bandwidth -1: .*above 0$"):
        distance(drawn(0, 5), drawn(1, 5), bandwidth=-1)
