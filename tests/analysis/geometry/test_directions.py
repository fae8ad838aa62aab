from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from shotproof.analysis.geometry import directions
from shotproof.analysis.geometry.directions import (
    cosines,
    cosines_to_clean_mean,
    cosines_to_other_means,
    lengths,
    sums,
    turns,
)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directions, "BLOCK", 7)


def drawn(seed: int = 0, count: int = 40, size: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(1, 1, (count, size)).astype(np.float32)


def test_lengths_are_norms() -> None:
    assert lengths(np.array([[3, 4], [0, 0]], dtype=np.float32)).tolist() == [5, 0]
    np.testing.assert_allclose(lengths(drawn()), np.linalg.norm(drawn(), axis=1), rtol=1e-6)


def test_sums_are_of_groups_and_leave_out_those_below_zero() -> None:
    features, groups = drawn(), np.random.default_rng(1).integers(-1, 3, 40)
    expected = [features[groups == group].sum(axis=0, dtype=float) for group in range(3)]
    np.testing.assert_allclose(sums(features, groups, 3), expected, rtol=1e-6)


@pytest.mark.parametrize("leave_out", [False, True])
def test_cosines_to_the_clean_mean_agree_with_a_plain_loop(leave_out: bool) -> None:
    features = drawn()
    rng = np.random.default_rng(2)
    clean = np.arange(40) < 20
    classes = np.arange(40) % 2
    recordings = np.arange(40) % 20
    found = cosines_to_clean_mean(features, classes, recordings, clean, leave_out)
    for row in rng.permutation(40):
        members = clean & (classes == classes[row])
        if leave_out:
            members &= recordings != recordings[row]
        mean = features[members].mean(axis=0, keepdims=True)
        assert found[row] == pytest.approx(cosine_similarity(features[row : row + 1], mean)[0, 0], abs=1e-6)


def test_cosines_to_other_means_agree_with_a_plain_loop() -> None:
    features, clean, classes = drawn(), np.arange(40) < 20, np.arange(40) % 3
    means = np.stack([features[clean & (classes == one)].mean(axis=0) for one in range(3)])
    expected = [
        cosine_similarity(features[row : row + 1], np.delete(means, classes[row], axis=0)).mean() for row in range(40)
    ]
    np.testing.assert_allclose(cosines_to_other_means(features, classes, clean), expected, rtol=1e-5)


@settings(max_examples=25, deadline=None)
@given(scale=st.floats(1e-3, 1e3))
def test_scaling_changes_lengths_by_the_scale_and_turns_nothing(scale: float) -> None:
    features = drawn().astype(np.float64)
    both = np.concatenate([features, features * scale])
    np.testing.assert_allclose(lengths(both)[40:] / lengths(both)[:40], scale, rtol=1e-12)
    np.testing.assert_allclose(turns(both, np.arange(40), np.arange(40, 80)), 0, atol=1e-12)
    np.testing.assert_allclose(cosines(features, features * scale), 1, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(angle=st.floats(0, 180))
def test_turns_are_angles(angle: float) -> None:
    radians = np.radians(angle)
    features = np.array([[1, 0, 0], [3 * np.cos(radians), 3 * np.sin(radians), 0]])
    assert turns(features, np.array([0]), np.array([1]))[0] == pytest.approx(angle, abs=1e-5)


def test_a_feature_without_length_has_no_cosine() -> None:
    assert np.isnan(cosines(np.zeros((1, 2)), np.ones((1, 2)))).all()
