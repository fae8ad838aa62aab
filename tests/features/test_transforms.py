from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.records import Maker
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.features.nuisance_transforms import Leace
from shotproof.features.transforms import Transform, transform, transforms
from shotproof.learners.method import make_method
from tests.drawn_tasks import draw_task_set

RANDOM = np.random.default_rng(0)
VECTORS = RANDOM.normal(size=(7, 6)).astype(np.float32)
MAPS = RANDOM.normal(size=(7, 6, 4, 3)).astype(np.float16)
BASE = Features.from_array([f"b{row}" for row in range(50)], RANDOM.normal(2, 3, size=(50, 6)))
# Five base classes, whose items are in three contexts; the items to transform are of another class.
CATALOG = Catalog.from_pandas(
    pd.DataFrame(
        {
            "item": [*BASE.table["item"].to_pylist(), *(f"i{row}" for row in range(7))],
            "label": [*(f"base {row % 5}" for row in range(50)), *["new"] * 7],
            "context": [("sea", "land", "air")[row % 3] for row in range(57)],
        }
    )
)
ON_CLASSES = {"base": BASE, "catalog": CATALOG}
OPTIONS = {
    "center": {"base": BASE},
    "standardize": {"base": BASE},
    "wccn": ON_CLASSES,
    "nap": {**ON_CLASSES, "directions": 2},
    "leace": ON_CLASSES,
    "center-contexts": ON_CLASSES,
    "fitted": {"file": Leace(**ON_CLASSES).map},
    "project": {"dimensions": 3},
    "pool": {"height": 2, "width": 1},
}


def features(values: np.ndarray = VECTORS) -> Features:
    return Features.from_array([f"i{row}" for row in range(7)], values, name="drawn")


def _row_of(encoded: Features, row: int) -> Features:
    return Features(encoded.table.slice(row, 1), encoded.record)


@pytest.mark.parametrize("name", transforms.names())
@pytest.mark.parametrize("values", [VECTORS, MAPS], ids=["vectors", "maps"])
def test_an_item_does_not_depend_on_the_others(name: str, values: np.ndarray) -> None:
    if name == "pool" and values is VECTORS:
        return
    step = transforms.make(name, **OPTIONS.get(name, {}))
    encoded = features(values)
    alone = np.concatenate([step.apply_to(_row_of(encoded, row)) for row in range(7)])
    whole = step.apply_to(encoded)
    np.testing.assert_allclose(alone, whole, rtol=1e-6 if values is VECTORS else 1e-2, atol=1e-6)
    if name != "center-contexts":  # which needs to know the items
        rows = values.astype(np.float64)
        alone = np.concatenate([step.apply(rows[row : row + 1]) for row in range(7)])
        np.testing.assert_allclose(alone, step.apply(rows), rtol=1e-12, atol=1e-12)
    after = transform(encoded, step)
    assert after.name.startswith(f"drawn > {name}")
    assert after.record.transforms == (Maker.of(step),)
    assert after.record.sources["features"].digest == features(values).digest
    np.testing.assert_allclose(after.maps if after.shape else after.array, whole, rtol=2e-3, atol=2e-3)


def test_what_each_step_does() -> None:
    rows = VECTORS.astype(np.float64)
    mean, std = BASE.array.astype(np.float64).mean(0), BASE.array.astype(np.float64).std(0)
    expected = {
        "center": rows - mean,
        "standardize": (rows - mean) / std,
        "l2": rows / np.linalg.norm(rows, axis=1, keepdims=True),
        "power": np.sign(rows) * np.sqrt(np.abs(rows) + 1e-6),
    }
    for name, values in expected.items():
        made = transforms.make(name, **OPTIONS.get(name, {}))
        np.testing.assert_allclose(transform(features(), made).array, values, rtol=1e-5, atol=1e-5)
    halves = MAPS.astype(np.float64).reshape(7, 6, 2, 2, 3).mean((3, 4))
    np.testing.assert_allclose(transform(features(MAPS), "pool(height=2, width=1)").maps[..., 0], halves, atol=1e-3)


def test_a_location_of_a_map_is_treated_as_a_vector() -> None:
    step = transforms.make("l2")
    unit = step.apply(MAPS.astype(np.float64))
    np.testing.assert_allclose(unit[:, :, 1, 2], step.apply(MAPS[:, :, 1, 2].astype(np.float64)))


def test_a_projection_keeps_distances_on_average() -> None:
    rows = RANDOM.normal(size=(40, 300))
    projected = transforms.make("project", dimensions=2000, seed=1).apply(rows)
    ratio = np.linalg.norm(projected, axis=1) / np.linalg.norm(rows, axis=1)
    assert ratio.mean() == pytest.approx(1, abs=0.02)
    assert not np.allclose(projected, transforms.make("project", dimensions=2000, seed=2).apply(rows))


def test_zero_stays_zero() -> None:
    zero = Features.from_array(["a"], np.zeros((1, 4)))
    assert transform(zero, "l2").array.tolist() == [[0, 0, 0, 0]]


def test_cl2n_is_a_centered_base_and_l2n() -> None:
    tasks, encoded = draw_task_set()
    base = Features.from_array([f"b{row}" for row in range(30)], RANDOM.normal(1, 2, size=(30, 16)))
    steps: list[str | Transform] = [transforms.make("center", base=base), "l2"]
    twice = evaluate(tasks, transform(encoded, steps), "ncc")
    once = evaluate(tasks, transform(encoded, steps[0]), "simpleshot")
    assert once.counts("simpleshot").n_correct.tolist() == twice.counts("ncc").n_correct.tolist()
    assert make_method("simpleshot").name == "simpleshot"


def test_steps_are_recorded_with_the_base_set_they_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    BASE.write(tmp_path / "base.parquet")
    spelled = f"base.parquet@{BASE.digest[:8]}"
    after = transform(features(), [{"name": "center", "base": str(tmp_path / "base.parquet")}, "l2"])
    assert after.name == f"drawn > center(base='{spelled}') > l2"
    assert after.record.transforms[0] == Maker("center", f"center(base='{spelled}')", {"base": spelled})
    assert str(tmp_path) not in str(after.record.to_meta())
    monkeypatch.chdir(tmp_path)
    again = transform(features(), after.record.transforms[0].spelling)
    assert again.digest == transform(features(), f"center(base='{tmp_path / 'base.parquet'}')").digest
    with pytest.raises(Mismatch, match=r"base\.parquet has the digest .*, not 0badbeef"):
        transform(features(), "center(base='base.parquet@0badbeef')")


def test_bad_steps_are_explained(tmp_path: Path) -> None:
    for step, message in [
        ("centre(base='x')", "unknown transform 'centre': did you mean 'center'"),
        ("center", r"transform 'center' needs base: e\.g\. center\(base='base\.parquet'\)"),
        (f"center(base='{tmp_path / 'none.parquet'}')", "does not exist"),
        ("power(power=0)", "power: expected a number above 0"),
        (
            "power(negatives='sign')",
            "negatives: expected signed or relu or refuse, found 'sign': did you mean 'signed'",
        ),
        ("power(negatives='refuse')", "a feature is negative"),
        ("project(dimensions=0)", "dimensions: expected a whole number from 1 to 10,000,000, found 0"),
        ("pool(height=1, width=1)", "an encoder with maps=True gives local maps"),
        ("pool(height=0, width=1)", "height: expected a whole number from 1 to 10,000,000, found 0"),
    ]:
        with pytest.raises(InputError, match=message):
            transform(features(), step)
    with pytest.raises(InputError, match="maps of 4 x 3 have no 5 x 1 parts"):
        transform(features(MAPS), "pool(height=5, width=1)")


def test_features_without_items_are_refused() -> None:
    empty = Features(pa.table({"item": pa.array([], pa.string()), "feature": pa.array([], pa.list_(pa.float32(), 2))}))
    with pytest.raises(InputError, match=r"have no items .*'l2'"):
        transform(empty, "l2")


def test_a_base_set_of_other_dimensions_is_refused_and_one_of_the_test_set_is_noted() -> None:
    narrow = Features.from_array(["b"], np.ones((1, 5)))
    with pytest.raises(Mismatch, match=r"the base set has 5 dimensions \('features'\), the features 6 \('drawn'\)"):
        transform(features(), transforms.make("center", base=narrow))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        transform(features(), transforms.make("center", base=features()))
    assert "the base set contains all items" in str(told[0].message)
