"""Re-evaluations as files: what is kept comes back, and what was tampered with is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shotproof.analysis.reevaluation.kept_arrays import SCHEMA, KeptArrays, keep_values, restore_halves, restore_values
from shotproof.core.errors import InputError
from shotproof.results.evaluated import Classifier


def test_values_come_back_from_their_file_as_they_were(tmp_path: Path) -> None:
    values = {Classifier("lite0", name): {"acc": np.array([50.0, 70]), "wacc": np.zeros(2)} for name in ("ncc", "knn")}
    kept = keep_values(values, uses={"wren": 3})  # type: ignore[arg-type]
    kept.write(tmp_path / "kept.parquet")
    read = KeptArrays.read(tmp_path / "kept.parquet")
    assert (read.digest, read.facts["uses"]) == (kept.digest, {"wren": 3})
    again = restore_values(read)
    assert list(again) == list(values)
    np.testing.assert_array_equal(again[Classifier("lite0", "knn")]["acc"], [50.0, 70])


def test_a_reason_is_kept_in_place_of_arrays(tmp_path: Path) -> None:
    KeptArrays.refusal("too few images").write(tmp_path / "kept.parquet")
    assert restore_halves(KeptArrays.read(tmp_path / "kept.parquet")) == "too few images"


def test_what_was_tampered_with_is_told() -> None:
    with pytest.raises(InputError, match=r"re-evaluation is damaged: delete .*reevaluations/"):
        restore_halves(KeptArrays.of({"difference": [1.0]}, freedom=3))
    with pytest.raises(InputError, match="expected the columns name, shape, values, found name"):
        KeptArrays(pa.table({"name": ["difference"]}))
    assert KeptArrays(SCHEMA.empty_table()).facts == {}
