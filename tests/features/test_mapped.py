"""Large feature files are mapped, and say the same as those that are read."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shotproof.core.errors import InputError
from shotproof.features import mapped
from shotproof.features.features import Features


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    values = np.random.default_rng(0).normal(size=(40_000, 3))
    Features.from_array([f"item{i}" for i in range(40_000)], values).write(tmp_path / "features.parquet")
    monkeypatch.setattr(mapped, "LARGE", 1000)
    return tmp_path / "features.parquet"


def test_a_mapped_file_is_the_same_as_one_that_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = Features.read(path)
    monkeypatch.setattr(mapped, "LARGE", 2**40)
    small = Features.read(path)
    assert large.digest == small.digest == small.record.stated_digest
    assert np.array_equal(large.array, small.array)
    assert large.record == small.record
    assert not large.array.flags.writeable
    assert pickle.loads(pickle.dumps(large)).digest == small.digest


def test_wrong_columns_and_empty_values_are_told(path: Path, tmp_path: Path) -> None:
    lists = pa.FixedSizeListArray.from_arrays(pa.array([1.0, None] * 2000, pa.float32()), 2)
    items = [f"item{i}" for i in range(2000)]
    pq.write_table(pa.table({"item": items, "feature": lists}), tmp_path / "empty.parquet")
    with pytest.raises(InputError, match=r"empty.parquet, column 'feature' .*empty"):
        Features.read(tmp_path / "empty.parquet")
    pq.write_table(pa.table({"item": items, "features": lists}), tmp_path / "named.parquet")
    with pytest.raises(InputError, match="no column 'feature': did you mean 'features'"):
        Features.read(tmp_path / "named.parquet")
