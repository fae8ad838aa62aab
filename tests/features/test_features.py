from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shotproof.core.errors import InputError, Mismatch
from shotproof.core.records import FeaturesRecord, Maker
from shotproof.features.features import Features

ARRAYS = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 5), st.integers(1, 4)),
    elements=st.floats(-1e6, 1e6, width=32),
)


@settings(deadline=None)
@given(values=ARRAYS)
def test_an_array_comes_back_as_it_went_in(values: np.ndarray) -> None:
    features = Features.from_array([f"i{row}" for row in range(len(values))], values)
    np.testing.assert_array_equal(features.array, values)
    assert features.array.dtype == np.float32
    assert len(features) == len(values)


def test_a_file_gives_the_same_features_digest_and_record(tmp_path: Path) -> None:
    record = FeaturesRecord(encoder=Maker("pixels", "pixels(size=4)", {"size": 4}))
    features = Features.from_array(["a", "b"], [[1.0, 2.0], [3.0, 4.0]], record=record)
    features.write(tmp_path / "f.parquet")
    again = Features.read(tmp_path / "f.parquet")
    np.testing.assert_array_equal(again.array, features.array)
    assert (again.digest, again.name) == (features.digest, "pixels(size=4)")
    assert replace(again.record, stated_digest=None) == record


def test_a_file_of_somebody_elses_script_is_accepted(tmp_path: Path) -> None:
    feature = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({"item": ["a", "b"], "feature": feature}), tmp_path / "f.parquet")
    features = Features.read(tmp_path / "f.parquet")
    assert features.digest == Features.from_array(["a", "b"], np.array([[1, 2], [3, 4]], np.float32)).digest
    assert features.name == "features"


def test_the_digest_depends_on_values_and_order() -> None:
    values = np.array([[1, 2], [3, 4]], np.float32)
    digests = {
        Features.from_array(["a", "b"], values).digest,
        Features.from_array(["b", "a"], values).digest,
        Features.from_array(["a", "b"], values[::-1]).digest,
        Features.from_array(["a", "b"], np.nextafter(values, 9)).digest,
    }
    assert len(digests) == 4


def test_half_precision_stays_half_precision() -> None:
    assert Features.from_array(["a"], np.ones((1, 3), np.float16)).array.dtype == np.float16


def test_rows_of_items_and_an_item_without_a_feature() -> None:
    features = Features.from_array(["a", "b", "c"], np.eye(3))
    np.testing.assert_array_equal(features.rows_of(pa.array(["c", "a", "c"])), [2, 0, 2])
    with pytest.raises(Mismatch, match=r"lack 1 of the 2 items, e.g. 'z'"):
        features.rows_of(pa.array(["a", "z", "z"]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_names_its_item(value: float) -> None:
    with pytest.raises(InputError, match=r"item 'b' .*not finite"):
        Features.from_array(["a", "b"], [[0.0, 1.0], [value, 1.0]])


@pytest.mark.parametrize("values", [np.ones(2), np.ones((3, 2)), np.ones((2, 0)), np.ones((2, 2, 2))])
def test_another_shape_is_refused(values: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"expected an array of shape \[2, d\]"):
        Features.from_array(["a", "b"], values)


def test_an_item_twice_is_refused() -> None:
    with pytest.raises(InputError, match="'a' occurs 2 times"):
        Features.from_array(["a", "a"], np.eye(2))


def test_a_plain_list_column_is_refused(tmp_path: Path) -> None:
    table = pa.table({"item": ["a"], "feature": pa.array([[1.0]], pa.list_(pa.float32()))})
    pq.write_table(table, tmp_path / "f.parquet")
    with pytest.raises(InputError, match="expected a fixed-size list of float32"):
        Features.read(tmp_path / "f.parquet")


def test_maps_come_back_as_they_went_in_and_their_means_are_the_vectors(tmp_path: Path) -> None:
    maps = np.random.default_rng(0).normal(size=(300, 4, 2, 3))
    items = [f"i{row}" for row in range(300)]
    Features.from_array(items, maps, name="drawn").write(tmp_path / "f.parquet")
    features = Features.read(tmp_path / "f.parquet")
    assert features.shape == (4, 2, 3)
    np.testing.assert_array_equal(features.maps, maps.astype(np.float16))
    np.testing.assert_allclose(features.array, maps.mean((2, 3)), atol=2e-3)
    assert features.array.dtype == np.float32
    assert features.table.schema.field("feature").type.list_size == 24


def test_files_of_maps_are_in_groups_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shotproof.features.features.GROUP_BYTES", 100)
    Features.from_array(["a", "b", "c"], np.ones((3, 4, 2, 3))).write(tmp_path / "f.parquet")
    assert pq.ParquetFile(tmp_path / "f.parquet").num_row_groups == 2
    assert len(Features.read(tmp_path / "f.parquet")) == 3


def test_vectors_have_no_maps() -> None:
    with pytest.raises(InputError, match=r"'features' .*: an encoder with maps=True"):
        _ = Features.from_array(["a"], np.ones((1, 3))).maps


def test_a_value_too_large_for_a_map_names_its_item() -> None:
    with pytest.raises(InputError, match=r"item 'b' .*not finite"):
        Features.from_array(["a", "b"], [[[[1.0]]], [[[1e6]]]])


@pytest.mark.parametrize("shape", [(2, 2), (2, 3, 1), (2.0, 2, 1), (-2, -2, 1)])
def test_a_shape_that_is_not_that_of_the_lists_is_refused(shape: tuple[int, ...]) -> None:
    table = Features.from_array(["a"], np.ones((1, 4))).table
    with pytest.raises(InputError, match=r"expected a shape \[d, h, w\] of 4 numbers .*found"):
        Features(table, FeaturesRecord(shape=shape))
