from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics.pairwise import cosine_similarity

from shotproof.analysis.context_effect import (
    cosines,
    cosines_to_clean_mean,
    cosines_to_other_means,
    feature_change,
    lengths,
    sums,
    turns,
)
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, Mismatch
from shotproof.features.features import Features

CONTEXTS = ["clean", "rain", "wind"]


def drawn(recordings: int = 6, classes: int = 3, seed: int = 0) -> tuple[Catalog, np.ndarray]:
    """Every recording clean and in two contexts, and features of the clean ones repeated for all, [n, d]."""
    rows = [
        {
            "item": f"{label}/{recording}/{context}",
            "path": "x.wav",
            "label": f"class{label}",
            "split": "test",
            "source": f"{label}/{recording}",
            "context": context,
        }
        for label in range(classes)
        for recording in range(recordings)
        for context in CONTEXTS
    ]
    rng = np.random.default_rng(seed)
    centers = rng.normal(0, 2, (classes, 1, 8))
    clean = (centers + rng.normal(0, 1, (classes, recordings, 8))).reshape(-1, 8)
    return Catalog(pa.Table.from_pylist(rows)), np.repeat(clean, 3, axis=0)


def is_mixed(catalog: Catalog) -> np.ndarray:
    return np.array([context != "clean" for context in catalog.table.column("context").to_pylist()])


@settings(max_examples=15, deadline=None)
@given(scale=st.sampled_from([0.25, 0.5, 1.0, 2.0]), leave_out=st.booleans())
def test_scaled_features_change_in_length_alone(scale: float, leave_out: bool) -> None:
    catalog, array = drawn()
    array[is_mixed(catalog)] *= scale
    found = feature_change(Features.from_array(catalog.items, array), catalog, "clean", leave_out=leave_out)
    for change in [found.overall, *found.classes]:
        assert change.ratio is not None
        assert change.turn is not None
        assert change.ratio.mean == pytest.approx(scale, rel=1e-6)
        assert change.turn.mean == pytest.approx(0, abs=1e-4)
        assert change.cosine.change.mean == pytest.approx(0, abs=1e-6)
        assert change.length.mixed.mean == pytest.approx(scale * change.length.clean.mean, rel=1e-6)


def test_identical_features_do_not_change() -> None:
    catalog, array = drawn()
    found = feature_change(Features.from_array(catalog.items, array), catalog, "clean").overall
    assert (found.n_clean, found.n_mixed, found.pairs) == (18, 36, 36)
    assert found.length.p_value == pytest.approx(1, abs=0.1)
    assert found.length.change.mean == 0
    assert found.length.change.refused == "all recordings have the same value"


def test_intervals_and_tests_agree_with_scipy() -> None:
    catalog, array = drawn(recordings=10)
    mixed = is_mixed(catalog)
    array[mixed] = 0.8 * array[mixed] + np.random.default_rng(1).normal(0, 0.5, (int(mixed.sum()), 8))
    features = Features.from_array(catalog.items, array)
    found = feature_change(features, catalog, "clean", level=0.9)
    norms = lengths(features.array)
    parts = [slice(0, 90), slice(0, 30), slice(30, 60), slice(60, 90)]
    for change, rows in zip([found.overall, *found.classes], parts, strict=True):
        clean = norms[rows][~mixed[rows]]
        pairs = norms[rows][mixed[rows]].reshape(-1, 2)  # two mixtures per recording
        assert change.length.clean.mean == pytest.approx(clean.mean())
        expected = stats.ttest_1samp(pairs.mean(axis=1) - clean, 0).confidence_interval(0.9)
        assert (change.length.change.low, change.length.change.high) == pytest.approx((expected.low, expected.high))
        assert change.length.p_value == pytest.approx(stats.mannwhitneyu(clean, pairs.ravel()).pvalue)
        assert change.length.p_recordings == pytest.approx(stats.mannwhitneyu(clean, pairs.mean(axis=1)).pvalue)
        assert change.ratio is not None
        assert change.ratio.mean == pytest.approx((pairs / clean[:, None]).mean())


def test_without_sources_the_means_are_compared_as_welch_does() -> None:
    catalog, array = drawn(recordings=10, classes=1)
    mixed = is_mixed(catalog)
    array[mixed] *= np.random.default_rng(1).uniform(0.5, 0.9, (int(mixed.sum()), 1))
    plain = Catalog(catalog.table.drop_columns(["source"]))
    features = Features.from_array(plain.items, array)
    change = feature_change(features, plain, "clean").overall
    norms = lengths(features.array)
    expected = stats.ttest_ind(norms[mixed], norms[~mixed], equal_var=False).confidence_interval()
    assert (change.length.change.low, change.length.change.high) == pytest.approx((expected.low, expected.high))
    assert (change.pairs, change.ratio, change.turn) == (0, None, None)


def test_clips_of_one_recording_are_paired_by_their_foreground() -> None:
    catalog, array = drawn(recordings=6, classes=1)
    mixed = is_mixed(catalog)
    array[mixed] *= 0.5
    features = Features.from_array(catalog.items, array)
    sources = catalog.table.column("source").to_pylist()
    pairwise = [str(int(source.split("/")[1]) // 2) for source in sources]  # two clips per recording
    table = catalog.table.set_column(catalog.table.column_names.index("source"), "source", [pairwise])
    without = feature_change(features, Catalog(table), "clean").overall
    assert (without.pairs, without.ratio) == (0, None)  # which of the two clean clips is it?
    found = feature_change(features, Catalog(table.append_column("foreground", [sources])), "clean").overall
    assert found.pairs == 12
    assert found.ratio is not None
    assert found.ratio.mean == pytest.approx(0.5)
    clips = lengths(features.array)[~mixed].reshape(3, 2).mean(axis=1)  # a recording counts once
    expected = stats.ttest_1samp(clips, 0).confidence_interval()
    assert (found.length.clean.low, found.length.clean.high) == pytest.approx((expected.low, expected.high))


def test_centered_features_do_not_depend_on_the_origin() -> None:
    catalog, array = drawn()
    mixed = is_mixed(catalog)
    array[mixed] += np.random.default_rng(1).normal(0, 0.5, (int(mixed.sum()), 8))
    here, away = (Features.from_array(catalog.items, array + shift) for shift in (0, 100))
    seen = [feature_change(features, catalog, "clean", center=True).overall for features in (here, away)]
    assert seen[0].cosine.clean.mean == pytest.approx(seen[1].cosine.clean.mean, abs=1e-4)
    assert seen[0].length.mixed.mean == pytest.approx(seen[1].length.mixed.mean, rel=1e-4)
    far = feature_change(away, catalog, "clean").overall
    assert far.cosine.clean.mean > 0.99  # as everything is, seen from afar
    assert far.others is not None
    assert far.others.clean.mean > 0.99


def test_one_class_has_no_others() -> None:
    catalog, array = drawn(classes=1)
    assert feature_change(Features.from_array(catalog.items, array), catalog, "clean").overall.others is None


def test_rows_are_in_any_order_and_a_class_without_both_is_left_out() -> None:
    catalog, array = drawn()
    features = Features.from_array(catalog.items, array * np.linspace(1, 2, len(array))[:, None])
    table = catalog.table.filter(pa.array([i < 18 * 2 or m for i, m in enumerate(is_mixed(catalog))]))
    order = np.random.default_rng(0).permutation(len(table))
    found = feature_change(features, Catalog(table.take(order)), "clean")
    assert found.left_out == ["class2"]
    in_order = feature_change(features, Catalog(table), "clean")
    assert found.overall.length.change.mean == pytest.approx(in_order.overall.length.change.mean)
    assert found.overall.length.p_value == in_order.overall.length.p_value


def test_one_recording_has_a_mean_and_no_interval() -> None:
    catalog, array = drawn(recordings=1, classes=1)
    found = feature_change(Features.from_array(catalog.items, array), catalog, "clean").to_json()
    assert found["overall"]["length"]["clean"]["refused"] == "one recording has no variance"
    assert found["overall"]["length"]["clean"]["low"] is None
    assert not math.isnan(found["overall"]["length"]["clean"]["mean"])


def test_bad_input_is_named() -> None:
    catalog, array = drawn()
    features = Features.from_array(catalog.items, array)
    with pytest.raises(InputError, match="unknown value of column 'context' 'clear': did you mean 'clean'"):
        feature_change(features, catalog, "clear")
    with pytest.raises(InputError, match="no column 'contxt': did you mean 'context'"):
        feature_change(features, catalog, "clean", context_column="contxt")
    only_clean = Catalog(catalog.table.filter(pa.array(~is_mixed(catalog))))
    with pytest.raises(InputError, match=r"no class has items .* context 'clean'"):
        feature_change(features, only_clean, "clean")
    array[1] = 0
    with pytest.raises(InputError, match="item '0/0/rain' is all zeros"):
        feature_change(Features.from_array(catalog.items, array), catalog, "clean")
    with pytest.raises(Mismatch, match="the features lack 1 of the"):
        feature_change(Features(features.table.slice(1)), catalog, "clean")
    single, array = drawn(recordings=1, classes=1)
    with pytest.raises(InputError, match=r"class 'class0' have no mean direction .* own recording"):
        feature_change(Features.from_array(single.items, array), single, "clean", leave_out=True)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shotproof.analysis.context_effect.BLOCK", 7)


def drawn_array(seed: int = 0, count: int = 40, size: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(1, 1, (count, size)).astype(np.float32)


def test_lengths_are_norms() -> None:
    assert lengths(np.array([[3, 4], [0, 0]], dtype=np.float32)).tolist() == [5, 0]
    np.testing.assert_allclose(lengths(drawn_array()), np.linalg.norm(drawn_array(), axis=1), rtol=1e-6)


def test_sums_are_of_groups_and_leave_out_those_below_zero() -> None:
    features, groups = drawn_array(), np.random.default_rng(1).integers(-1, 3, 40)
    expected = [features[groups == group].sum(axis=0, dtype=float) for group in range(3)]
    np.testing.assert_allclose(sums(features, groups, 3), expected, rtol=1e-6)


@pytest.mark.parametrize("leave_out", [False, True])
def test_cosines_to_the_clean_mean_agree_with_a_plain_loop(leave_out: bool) -> None:
    features = drawn_array()
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
    features, clean, classes = drawn_array(), np.arange(40) < 20, np.arange(40) % 3
    means = np.stack([features[clean & (classes == one)].mean(axis=0) for one in range(3)])
    expected = [
        cosine_similarity(features[row : row + 1], np.delete(means, classes[row], axis=0)).mean() for row in range(40)
    ]
    np.testing.assert_allclose(cosines_to_other_means(features, classes, clean), expected, rtol=1e-5)


@settings(max_examples=25, deadline=None)
@given(scale=st.floats(1e-3, 1e3))
def test_scaling_changes_lengths_by_the_scale_and_turns_nothing(scale: float) -> None:
    features = drawn_array().astype(np.float64)
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
