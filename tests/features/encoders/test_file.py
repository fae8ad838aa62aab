from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shotproof.core.errors import InputError
from shotproof.core.records import FeaturesRecord, FittedOn, Maker
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from tests.drawn_images import catalog_of

VALUES = np.arange(12, dtype=np.float64).reshape(4, 3) / 7
ITEMS = ["a", "b", "c", "d"]
CATALOG = catalog_of(Path(), ["c", "a", "d"])


def test_npy_rows_are_in_the_order_of_the_catalog(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", VALUES[:3])
    features = encode(CATALOG, f"file:{tmp_path / 'f.npy'}")
    np.testing.assert_array_equal(features.array, VALUES[:3].astype(np.float32))
    assert features.array.dtype == np.float32
    assert features.table.column("item").to_pylist() == ["c", "a", "d"]


def test_npz_rows_are_found_by_item(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", items=np.array(ITEMS), features=VALUES)
    features = encode(CATALOG, f"file:{tmp_path / 'f.npz'}")
    np.testing.assert_array_equal(features.array, VALUES[[2, 0, 3]].astype(np.float32))


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.float32(), 3), pa.list_(pa.float64()), pa.large_list(pa.float16()), pa.list_(pa.float64(), 3)],
    ids=str,
)
def test_parquet_rows_are_found_by_item(tmp_path: Path, kind: pa.DataType) -> None:
    feature = pa.array(VALUES.tolist(), pa.list_(pa.float64())).cast(kind)
    pq.write_table(pa.table({"item": ITEMS, "feature": feature}), tmp_path / "f.parquet", row_group_size=2)
    features = encode(CATALOG, f"file:{tmp_path / 'f.parquet'}")
    tolerance = 1e-3 if kind.value_type == pa.float16() else 1e-7
    np.testing.assert_allclose(features.array, VALUES[[2, 0, 3]], atol=tolerance)


def test_our_own_features_file_can_be_brought_again(tmp_path: Path) -> None:
    Features.from_array(ITEMS, VALUES).write(tmp_path / "f.parquet")
    features = encode(CATALOG, f"file:{tmp_path / 'f.parquet'}")
    np.testing.assert_array_equal(features.array, VALUES[[2, 0, 3]].astype(np.float32))
    assert features.record.encoder == Maker("file", "file:f.parquet", {"path": "f.parquet"})
    assert features.record.sources["file"].name == "f.parquet"


def save(path: Path, **arrays: np.ndarray) -> None:
    np.savez(path, **arrays)  # type: ignore[arg-type]


BROKEN = VALUES.copy()
BROKEN[3, 1] = np.nan


def test_a_features_file_states_what_was_fitted(tmp_path: Path) -> None:
    fitted = (FittedOn(Maker("wccn", "wccn(ridge=2)", {"ridge": 2.0}), 8),)
    Features.from_array(ITEMS, VALUES, record=FeaturesRecord(fitted=fitted)).write(tmp_path / "f.parquet")
    assert encode(CATALOG, f"file:{tmp_path / 'f.parquet'}").record.fitted == fitted


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"items": np.array(ITEMS[:2]), "features": VALUES[:2]}, r"lacks 2 of the 3 items, e\.g\. 'c'"),
        ({"items": np.array(ITEMS), "features": BROKEN}, "item 'd' .*not finite"),
        ({"items": np.array(ITEMS), "features": VALUES * 1e300}, "not finite"),
        ({"items": np.array(ITEMS), "features": VALUES[:3]}, "4 items, but 3 rows"),
        ({"items": np.array(["a", "c", "d", "a"]), "features": VALUES}, "'a' occurs 2 times"),
        ({"items": np.arange(4), "features": VALUES}, r"'items' must be \[n\] strings"),
        ({"items": np.array(ITEMS, dtype=object), "features": VALUES}, "not .*readable .*npz"),
        ({"items": np.array(["\ud800", *ITEMS[1:]]), "features": VALUES}, "must be text, found half a surrogate pair"),
        ({"items": np.full(len(ITEMS), 2**31 - 1, "<u4").view("<U1"), "features": VALUES}, "must be text, found half"),
        ({"items": np.array(ITEMS), "feature": VALUES}, "no array 'features': did you mean 'feature'"),
        ({"items": np.array(ITEMS), "features": VALUES[:, :, None]}, r"expected \[n, d\] values"),
        ({"items": np.array(ITEMS), "features": np.array(["x"] * 4)}, "expected an array of numbers"),
    ],
)
def test_an_npz_that_does_not_fit_is_refused(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    save(tmp_path / "f.npz", **arrays)
    with pytest.raises(InputError, match=message):
        encode(CATALOG, f"file:{tmp_path / 'f.npz'}")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"item": ["a"], "features": [[1.0]]}, "no column 'feature': did you mean 'features'"),
        ({"item": ["a", "c", "d"], "feature": [[1.0], [1.0, 2.0], [3.0]]}, "lists of one length"),
        ({"item": ["a", "c", "d"], "feature": [[1.0], None, [3.0]]}, "lists of one length"),
        ({"item": ["a", "c", "d"], "feature": [[1.0], [None], [3.0]]}, "item 'c' .*not finite"),
        ({"item": ["a", "c", "d"], "feature": [1.0, 2.0, 3.0]}, "lists of one length"),
        ({"item": ["a", "c"], "feature": [[1.0], [2.0]]}, r"lacks 1 of the 3 items, e\.g\. 'd'"),
    ],
)
def test_a_parquet_file_that_does_not_fit_is_refused(tmp_path: Path, columns: dict[str, list], message: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    with pytest.raises(InputError, match=message):
        encode(CATALOG, f"file:{tmp_path / 'f.parquet'}")


def test_an_npy_of_another_length_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", VALUES)
    with pytest.raises(InputError, match="has 4 rows, the catalog has 3 items"):
        encode(CATALOG, f"file:{tmp_path / 'f.npy'}")


@pytest.mark.parametrize("name", ["f.npy", "f.npz", "f.parquet"])
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x80\x04something else")
    with pytest.raises(InputError, match=r"not .*readable"):
        encode(CATALOG, f"file:{tmp_path / name}")


@pytest.mark.parametrize(
    ("name", "message"), [("none.npy", "does not exist"), ("f.csv", "ends with .npy, .npz, .parquet")]
)
def test_a_file_that_is_not_there_or_unknown_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        encode(CATALOG, f"file:{tmp_path / name}")
