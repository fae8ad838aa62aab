"""Remedies of features: which settings they propose, and what each makes of features, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import shotproof as sp
from shotproof.core.errors import InputError
from shotproof.cures.class_parts import FIT
from shotproof.cures.remedy import Material, Treatment
from shotproof.features.features import Features
from shotproof.features.nuisance_transforms import Leace, Nap, Wccn
from tests.cures.full_material import full_material

FloatArray = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def material() -> Material:
    return full_material()


def settings(spelling: str, material: Material) -> dict[str, Treatment]:
    return {treatment.name: treatment for treatment in sp.remedies.make(spelling).treatments(material)}


def treated(treatment: Treatment, features: Features) -> FloatArray:
    return sp.transform(features, treatment.steps).array.astype(np.float64)


def unit(values: FloatArray) -> FloatArray:
    lengths: FloatArray = np.linalg.norm(values, axis=1, keepdims=True)
    return values / lengths


def values_to_fit(material: Material) -> FloatArray:
    rows = material.features.rows_of(material.catalog.in_split(FIT).item_column)
    return material.features.array[rows].astype(np.float64)


def test_settings_are_each_option_after_each_earlier_step(material: Material) -> None:
    assert list(settings("wccn(ridges=(1.0, 10.0))", material)) == [
        "l2 > wccn(ridge=1)",
        "l2 > wccn(ridge=10)",
        "wccn(ridge=1)",
        "wccn(ridge=10)",
    ]
    assert list(settings("leace(by='words')", material)) == ["l2 > leace(by='words')", "leace(by='words')"]
    assert list(settings("center-contexts", material)) == ["l2 > center-contexts", "center-contexts"]


def test_no_more_directions_are_removed_than_there_are(material: Material) -> None:
    dimensions = material.features.array.shape[1]
    names = settings("nap(by='words', directions=(2, 1000, 2000))", material)
    assert list(names) == [
        f"{before}nap(by='words', directions={directions})"
        for before in ("l2 > ", "")
        for directions in (2, dimensions - 1)
    ]
    few = settings("nap(by='contexts', directions=(2, 1000))", replace(material, catalog=_two_contexts(material)))
    assert list(few) == [
        "l2 > nap(by='contexts', directions=2)",
        "nap(by='contexts', directions=2)",
    ]


def _two_contexts(material: Material) -> sp.Catalog:
    """The catalog with items in two contexts only: as many directions as there are classes to fit on."""
    column = material.catalog.table.column_names.index("background")
    contexts = [f"context {number % 2}" for number in range(len(material.catalog))]
    table = material.catalog.table.set_column(column, "background", [contexts])
    return sp.Catalog(table, material.catalog.root, material.catalog.record)


def test_words_in_too_few_directions_are_refused(material: Material) -> None:
    with pytest.raises(InputError, match="contexts within classes differ in too few directions"):
        settings("nap(by='contexts', directions=(20,))", replace(material, catalog=_two_contexts(material)))


def test_nap_removes_directions_from_features_after_their_earlier_steps(material: Material) -> None:
    features = material.features
    for before in ("l2 > ", ""):
        treatment = settings("nap(by='words', directions=(5,))", material)[f"{before}nap(by='words', directions=5)"]
        base = material.base(("l2",) if before else ())
        step = Nap(base=base, catalog=material.base_catalog, by="words", attributes=material.attributes, directions=5)
        directions = step.map.arrays.directions
        values = features.array.astype(np.float64)
        values = unit(values) if before else values
        np.testing.assert_allclose(treated(treatment, features), values - values @ directions @ directions.T, atol=1e-6)


def test_nap_of_changes_is_fitted_on_changed_items(material: Material) -> None:
    treatment = settings("nap(by='changes', directions=(4,))", material)["nap(by='changes', directions=4)"]
    assert material.changed is not None
    values = material.changed.array.astype(np.float64)
    half = len(values) // 2
    moved = values[half:] - values[:half]  # items first, then their changed versions in the same order
    directions = np.linalg.svd(moved, full_matrices=False)[2][:4].T
    expected = material.features.array - material.features.array @ directions @ directions.T
    np.testing.assert_allclose(treated(treatment, material.features), expected, atol=1e-5)


def test_a_ridge_and_an_erasure_are_those_of_the_transforms(material: Material) -> None:
    wccn = settings("wccn(ridges=(3.0,))", material)["wccn(ridge=3)"]
    leace = settings("leace(by='words')", material)["leace(by='words')"]
    base, catalog = material.base(), material.base_catalog
    for treatment, step in (
        (wccn, Wccn(base=base, catalog=catalog, ridge=3.0)),
        (leace, Leace(base=base, catalog=catalog, by="words", attributes=material.attributes)),
    ):
        expected = sp.transform(material.features, step).array
        np.testing.assert_array_equal(sp.transform(material.features, treatment.steps).array, expected)


def test_changes_are_not_erased(material: Material) -> None:
    with pytest.raises(InputError, match=r"nap\(by='changes'\)"):
        settings("leace(by='changes')", material)


def test_contexts_are_centered_by_their_means(material: Material) -> None:
    treatment = settings("center-contexts", material)["center-contexts"]
    context = np.array(material.catalog.table.column("background").to_pylist())
    is_fit = np.array(material.catalog.table.column("split").to_pylist()) == FIT
    features = material.features.array[material.features.rows_of(material.catalog.item_column)].astype(np.float64)
    expected = features.copy()
    for name in set(context):
        mean = features[is_fit & (context == name)].mean(0)
        expected[context == name] += features[is_fit].mean(0) - mean
    rows = material.features.rows_of(material.catalog.item_column)
    np.testing.assert_allclose(treated(treatment, material.features)[rows], expected, atol=1e-5)


def test_preprocessing_by_hand(material: Material) -> None:
    positive = replace(material, features=_positive(material.features))
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
