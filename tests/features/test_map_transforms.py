"""Transforms that apply a fitted map from a file."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shotproof.core.errors import InputError, Mismatch
from shotproof.core.records import FittedOn, Maker, MapRecord
from shotproof.features.features import Features
from shotproof.features.fitted_map import FittedMap
from shotproof.features.map_transforms import Fitted
from shotproof.features.transforms import transform
from shotproof.functional.nuisance import projection_map

RANDOM = np.random.default_rng(1)
DIRECTIONS = np.linalg.qr(RANDOM.normal(size=(5, 2)))[0]
UNIT = MapRecord(name="nap", transform=Maker("nap"), features="drawn > l2", transforms=("l2",))
MAP = FittedMap.of(projection_map(DIRECTIONS), UNIT)
FEATURES = Features.from_array(["a", "b", "c"], RANDOM.normal(size=(3, 5)), name="drawn")


def test_a_file_and_an_object_do_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    MAP.write("nap.parquet")
    after = transform(FEATURES, ["l2", "fitted(file='nap.parquet')"])
    unit = transform(FEATURES, "l2").array
    np.testing.assert_allclose(after.array, unit - unit @ DIRECTIONS @ DIRECTIONS.T, atol=1e-6)
    assert after.name == f"drawn > l2 > fitted(file='nap.parquet@{MAP.digest[:8]}')"
    in_memory = transform(FEATURES, ["l2", Fitted(file=MAP)])
    assert in_memory.array.tobytes() == after.array.tobytes()
    assert in_memory.name == f"drawn > l2 > fitted(file='nap@{MAP.digest[:8]}')"
    spelled = after.record.transforms[1].spelling
    assert transform(FEATURES, ["l2", spelled]).digest == after.digest
    with pytest.raises(Mismatch, match=r"transform 'fitted': nap\.parquet has the digest .*, not 0badbeef"):
        transform(FEATURES, "fitted(file='nap.parquet@0badbeef')")


def test_another_file_is_refused(tmp_path: Path) -> None:
    FEATURES.write(tmp_path / "features.parquet")
    with pytest.raises(InputError, match="expected a file of kind 'fitted map', found kind 'features'"):
        transform(FEATURES, Fitted(file=tmp_path / "features.parquet"))
    with pytest.raises(InputError, match="does not exist"):
        transform(FEATURES, Fitted(file=tmp_path / "none.parquet"))


def test_features_of_other_dimensions_are_refused() -> None:
    narrow = Features.from_array(["a"], np.ones((1, 4)))
    with pytest.raises(Mismatch, match=r"the map has 5 dimensions \('nap' on 'drawn > l2'\), the features 4"):
        transform(narrow, Fitted(file=MAP))
    with pytest.raises(Mismatch, match=r"the map has 5 dimensions \('map'\)"):
        transform(narrow, Fitted(file=FittedMap.of(projection_map(DIRECTIONS))))


def test_features_after_other_steps_are_noted() -> None:
    with pytest.warns(UserWarning, match="fitted after l2, and the features went through no other step"):
        transform(FEATURES, Fitted(file=MAP))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        transform(FEATURES, ["l2", Fitted(file=MAP)])
        transform(FEATURES, Fitted(file=FittedMap.of(projection_map(DIRECTIONS))))  # of unknown origin


def test_the_record_states_what_the_map_was_fitted_by_and_on(tmp_path: Path) -> None:
    maker = Maker("nap", "nap(by='words')", {"by": "words", "directions": 2})
    record = replace(UNIT, transform=maker, classes=("jay", "owl", "tit"))
    after = transform(FEATURES, ["l2", Fitted(file=FittedMap.of(projection_map(DIRECTIONS), record)), "power"])
    assert after.record.fitted == (FittedOn(maker, 3),)
    after.write(tmp_path / "features.parquet")
    assert Features.read(tmp_path / "features.parquet").record.fitted == after.record.fitted
    unknown = transform(FEATURES, Fitted(file=FittedMap.of(projection_map(DIRECTIONS))))
    assert unknown.record.fitted == (FittedOn(),)
    assert "fitted" not in transform(FEATURES, "l2").record.to_meta()
