"""Remedies of features: which settings they propose, and what each makes of features, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import shotproof as sp
from shotproof.core.errors import InputError
from shotproof.cures.class_parts import FIT
from shotproof.cures.remedy import RemedyData, Treatment
from shotproof.features.features import Features
from shotproof.features.nuisance_transforms import Leace, Nap, Wccn
from tests.cures.remedy_data import remedy_data

FloatArray = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def data() -> RemedyData:
    return remedy_data()


def settings(spelling: str, data: RemedyData) -> dict[str, Treatment]:
    return {treatment.name: treatment for treatment in sp.remedies.make(spelling).treatments(data)}


def treated(treatment: Treatment, features: Features) -> FloatArray:
    return sp.transform(features, treatment.steps).array.astype(np.float64)


def unit(values: FloatArray) -> FloatArray:
    lengths: FloatArray = np.linalg.norm(values, axis=1, keepdims=True)
    return values / lengths


def values_to_fit(data: RemedyData) -> FloatArray:
    rows = data.features.rows_of(data.catalog.in_split(FIT).item_column)
    return data.features.array[rows].astype(np.float64)


def test_settings_are_each_option_after_each_earlier_step(data: RemedyData) -> None:
    assert list(settings("wccn(ridges=(1.0, 10.0))", data)) == [
        "l2 > wccn(ridge=1)",
        "l2 > wccn(ridge=10)",
        "wccn(ridge=1)",
        "wccn(ridge=10)",
    ]
    assert list(settings("leace(by='words')", data)) == ["l2 > leace(by='words')", "leace(by='words')"]
    assert list(settings("center-contexts", data)) == ["l2 > center-contexts", "center-contexts"]


def test_no_more_directions_are_removed_than_there_are(data: RemedyData) -> None:
    dimensions = data.features.array.shape[1]
    names = settings("nap(by='words', directions=(2, 1000, 2000))", data)
    assert list(names) == [
        f"{before}nap(by='words', directions={directions})"
        for before in ("l2 > ", "")
        for directions in (2, dimensions - 1)
    ]
    few = settings("nap(by='contexts', directions=(2, 1000))", replace(data, catalog=_two_contexts(data)))
    assert list(few) == [
        "l2 > nap(by='contexts', directions=2)",
        "nap(by='contexts', directions=2)",
    ]


def _two_contexts(data: RemedyData) -> sp.Catalog:
    """The catalog with items in two contexts only: as many directions as there are classes to fit on."""
    column = data.catalog.table.column_names.index("background")
    contexts = [f"context {number % 2}" for number in range(len(data.catalog))]
    table = data.catalog.table.set_column(column, "background", [contexts])
    return sp.Catalog(table, data.catalog.root, data.catalog.record)


def test_words_in_too_few_directions_are_refused(data: RemedyData) -> None:
    with pytest.raises(InputError, match="contexts within classes differ in too few directions"):
        settings("nap(by='contexts', directions=(20,))", replace(data, catalog=_two_contexts(data)))


def test_nap_removes_directions_from_features_after_their_earlier_steps(data: RemedyData) -> None:
    features = data.features
    for before in ("l2 > ", ""):
        treatment = settings("nap(by='words', directions=(5,))", data)[f"{before}nap(by='words', directions=5)"]
        base = data.base(("l2",) if before else ())
        step = Nap(base=base, catalog=data.base_catalog, by="words", attributes=data.attributes, directions=5)
        directions = step.map.arrays.directions
        values = features.array.astype(np.float64)
        values = unit(values) if before else values
        np.testing.assert_allclose(treated(treatment, features), values - values @ directions @ directions.T, atol=1e-6)


def test_nap_of_changes_is_fitted_on_changed_items(data: RemedyData) -> None:
    treatment = settings("nap(by='changes', directions=(4,))", data)["nap(by='changes', directions=4)"]
    assert data.changed is not None
    values = data.changed.array.astype(np.float64)
    half = len(values) // 2
    moved = values[half:] - values[:half]  # items first, then their changed versions in the same order
    directions = np.linalg.svd(moved, full_matrices=False)[2][:4].T
    expected = data.features.array - data.features.array @ directions @ directions.T
    np.testing.assert_allclose(treated(treatment, data.features), expected, atol=1e-5)


def test_a_ridge_and_an_erasure_are_those_of_the_transforms(data: RemedyData) -> None:
    wccn = settings("wccn(ridges=(3.0,))", data)["wccn(ridge=3)"]
    leace = settings("leace(by='words')", data)["leace(by='words')"]
    base, catalog = data.base(), data.base_catalog
    for treatment, step in (
        (wccn, Wccn(base=base, catalog=catalog, ridge=3.0)),
        (leace, Leace(base=base, catalog=catalog, by="words", attributes=data.attributes)),
    ):
        expected = sp.transform(data.features, step).array
        np.testing.assert_array_equal(sp.transform(data.features, treatment.steps).array, expected)


def test_changes_are_not_erased(data: RemedyData) -> None:
    with pytest.raises(InputError, match=r"nap\(by='changes'\)"):
        settings("leace(by='changes')", data)


def test_contexts_are_centered_by_their_means(data: RemedyData) -> None:
    treatment = settings("center-contexts", data)["center-contexts"]
    context = np.array(data.catalog.table.column("background").to_pylist())
    is_fit = np.array(data.catalog.table.column("split").to_pylist()) == FIT
    features = data.features.array[data.features.rows_of(data.catalog.item_column)].astype(np.float64)
    expected = features.copy()
    for name in set(context):
        mean = features[is_fit & (context == name)].mean(0)
        expected[context == name] += features[is_fit].mean(0) - mean
    rows = data.features.rows_of(data.catalog.item_column)
    np.testing.assert_allclose(treated(treatment, data.features)[rows], expected, atol=1e-5)


def test_preprocessing_by_hand(data: RemedyData) -> None:
    positive = replace(data, features=_positive(data.features))
    treatments = settings("preprocess", positive)
    values, base = positive.features.array.astype(np.float64), values_to_fit(positive)
    expected = {
        "l2": unit(values),
        "center > l2": unit(values - base.mean(0)),
        "standardize": (values - base.mean(0)) / base.std(0),
        "power > l2": unit(np.sqrt(values + 1e-6)),
    }
    assert treatments.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(treated(treatments[name], positive.features), array, atol=1e-5)


def _positive(features: Features) -> Features:
    """Features without negative numbers, as after a ReLU."""
    return Features.from_array(features.table.column("item").to_pylist(), np.abs(features.array), name=features.name)
