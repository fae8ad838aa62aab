from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shotproof.errors import InputError, Mismatch
from shotproof.features.features import Features

ARRAYS = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 5), st.integers(1, 4)),
    elements=st.floats(-1e6, 1e6, width=32),
)


@given(values=ARRAYS)
def test_an_array_comes_back_as_it_went_in(values: np.ndarray) -> None:
    features = Features.from_array([f"i{row}" for row in range(len(values))], values)
    np.testing.assert_array_equal(features.array, values)
    assert features.array.dtype == np.float32
    assert len(features) == len(values)


def test_a_file_gives_the_same_features_digest_and_meta(tmp_path: Path) -> None:
    made_by = {"encoder": "pixels", "size": 8}
    features = Features.from_array(["a", "b"], [[1.0, 2.0], [3.0, 4.0]], {"made_by": made_by})
    features.write(tmp_path / "f.parquet")
    again = Features.read(tmp_path / "f.parquet")
    np.testing.assert_array_equal(again.array, features.array)
    assert (again.digest, again.name, again.meta["made_by"]) == (features.digest, "pixels", made_by)


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
    with pytest.raises(Mismatch, match=r"lack 1 items, e.g. 'z'"):
        features.rows_of(pa.array(["a", "z", "z"]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_names_its_item(value: float) -> None:
    with pytest.raises(InputError, match="item 'b' has a value that is not finite"):
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
