"""Fitted maps: their formula and their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shotproof as sp
from shotproof.core.errors import InputError
from shotproof.core.records import MapRecord, Source
from shotproof.features.fitted_map import FittedMap
from shotproof.functional.nuisance import LowRankMap
from shotproof.pipeline.file_kinds import kind_of

RANDOM = np.random.default_rng(5)
ARRAYS = LowRankMap(*(RANDOM.normal(size=size) for size in (6, 6, (6, 2), (6, 2))))
MAP = FittedMap.of(
    ARRAYS, MapRecord(name="nap", sources={"catalog": Source("0" * 32, "birds")}, classes=("jay", "owl"))
)


def test_the_formula_is_scale_and_sum_over_directions() -> None:
    values = RANDOM.normal(size=(5, 6))
    expected = []
    for x in values:
        y = ARRAYS.scale * x
        for direction, image in zip(ARRAYS.directions.T, ARRAYS.images.T, strict=True):
            y = y + np.dot(x - ARRAYS.offset, direction) * image
        expected.append(y)
    np.testing.assert_allclose(MAP.apply(values), expected, atol=1e-5)
    maps = RANDOM.normal(size=(5, 6, 2, 3))
    mapped = MAP.apply(maps)
    assert mapped.shape == maps.shape
    for row, column in np.ndindex(2, 3):
        np.testing.assert_allclose(mapped[:, :, row, column], MAP.apply(maps[:, :, row, column]))


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    MAP.write(tmp_path / "nap.parquet")
    again = FittedMap.read(tmp_path / "nap.parquet")
    assert (again.digest, again.name, again.rank, again.dimensions) == (MAP.digest, "nap", 2, 6)
    assert again.record.sources == MAP.record.sources
    assert again.record.classes == ("jay", "owl")
    for written, read in zip(MAP.arrays, again.arrays, strict=True):
        np.testing.assert_array_equal(read, written)
    MAP.write(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "nap.parquet").read_bytes()
    assert kind_of(tmp_path / "nap.parquet") == "fitted map"
    assert repr(sp.read(tmp_path / "nap.parquet")) == "<FittedMap: fitted map of 6 dimensions, rank 2>"


def test_the_digest_is_of_every_number() -> None:
    digests = {MAP.digest}
    for place, array in enumerate(ARRAYS):
        other = array.copy()
        other.flat[0] += 0.5
        digests.add(FittedMap.of(ARRAYS._replace(**{ARRAYS._fields[place]: other})).digest)
    assert len(digests) == 5


def test_a_map_of_rank_0_scales() -> None:
    scaled = FittedMap.of(LowRankMap(np.full(3, 2.0), np.zeros(3), np.zeros((3, 0)), np.zeros((3, 0))))
    assert scaled.apply(np.ones((1, 3))).tolist() == [[2, 2, 2]]


def test_a_projection_of_many_dimensions_is_a_small_file(tmp_path: Path) -> None:
    directions = np.linalg.qr(RANDOM.normal(size=(1280, 15)))[0]
    FittedMap.of(LowRankMap(np.ones(1280), np.zeros(1280), directions, -directions)).write(tmp_path / "nap.parquet")
    assert (tmp_path / "nap.parquet").stat().st_size < 200_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns(["scale"]), "no column 'scale'"),
        (lambda table: table.slice(0, 0), "row per dimension, found no rows"),
        (
            lambda table: table.set_column(2, "directions", pa.array([[1.0]] * 6, pa.list_(pa.float32(), 1))),
            "images as directions, found 2 and 1",
        ),
        (
            lambda table: table.set_column(0, "scale", pa.array([1.0] * 5 + [float("nan")])),
            "column 'scale': expected finite numbers",
        ),
        (lambda table: table.set_column(1, "offset", pa.array([None] * 6)), "column 'offset': expected finite numbers"),
        (
            lambda table: table.set_column(3, "images", pa.array([[np.inf, 0.0]] * 6, pa.list_(pa.float32(), 2))),
            "column 'images': expected finite numbers",
        ),
        (lambda table: table.set_column(0, "scale", pa.array(["x"] * 6)), "column 'scale': expected numbers"),
    ],
)
def test_a_malformed_file_is_refused(change: object, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.parquet"
    pq.write_table(change(MAP.table), file)  # type: ignore[operator]
    with pytest.raises(InputError, match=rf"bad\.parquet.*{message}"):
        FittedMap.read(file)


def test_values_of_other_dimensions_are_refused() -> None:
    with pytest.raises(InputError, match=r"fitted map 'nap': expected values of 6 dimensions, found .* \[2, 5\]"):
        MAP.apply(np.ones((2, 5)))
