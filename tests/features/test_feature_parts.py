"""Features encoded part by part, and gone on with."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, UnreadableItem
from shotproof.core.runtime.runtime import Runtime
from shotproof.features import mapped
from shotproof.features.encoder import encode
from shotproof.features.feature_parts import encode_parts, join_parts
from shotproof.features.features import Features
from tests.drawn_images import draw_catalog

ENCODER = "pixels(size=4)"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return draw_catalog(tmp_path / "images", 10)


def test_they_are_those_of_one_file(catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime(workers=1, cache=None)
    one = encode(catalog, ENCODER, runtime=runtime)
    made = encode_parts(catalog, ENCODER, tmp_path / "features.parts", rows=4, runtime=runtime)
    assert (made.items, made.size, made.tally.encoded, made.existing) == (10, 48, 10, 0)
    for large in (2**30, 10):
        monkeypatch.setattr(mapped, "LARGE", large)
        features = Features.read(tmp_path / "features.parts")
        assert (features.mapped is None) == (large > 10)
        assert features.digest == one.digest == features.record.stated_digest
        assert features.record.encoder == one.record.encoder
        assert features.record.sources == one.record.sources
        assert np.array_equal(features.array, one.array)


def test_it_goes_on_where_it_was(catalog: Catalog, tmp_path: Path) -> None:
    runtime, folder = Runtime(workers=1, cache=None), tmp_path / "features.parts"
    broken = catalog.paths[5]
    content = broken.read_bytes()
    broken.write_bytes(b"no image")
    with pytest.raises(UnreadableItem, match=broken.name):
        encode_parts(catalog, ENCODER, folder, rows=4, runtime=runtime)
    assert sorted(path.name for path in folder.iterdir()) == ["part-00000.parquet"]
    with pytest.raises(InputError, match=r"is incomplete .*whole.json"):
        Features.read(folder)
    broken.write_bytes(content)
    os.utime(folder / "part-00000.parquet", ns=(1, 1))
    made = encode_parts(catalog, ENCODER, folder, rows=4, runtime=runtime)
    assert (made.existing, made.tally.encoded) == (1, 6)
    assert (folder / "part-00000.parquet").stat().st_mtime_ns == 1
    assert Features.read(folder).digest == encode(catalog, ENCODER, runtime=runtime).digest
    other = encode_parts(catalog, "pixels(size=2)", folder, rows=4, runtime=runtime)
    assert (other.existing, other.size) == (0, 12)


def test_skipped_items_are_named_in_the_whole(catalog: Catalog, tmp_path: Path) -> None:
    for row in (1, 9):
        catalog.paths[row].write_bytes(b"no image")
    runtime, folder = Runtime(workers=1, cache=None), tmp_path / "features.parts"
    encode_parts(catalog, ENCODER, folder, rows=4, on_error="skip", runtime=runtime)
    features = Features.read(folder)
    assert list(features.record.skipped) == [catalog.items[1], catalog.items[9]]
    assert len(features) == 8


def test_parts_that_do_not_fit_together_are_told(tmp_path: Path) -> None:
    first = Features.from_array(["a"], [[1.0, 2.0]])
    for second, told in (
        (Features.from_array(["a"], [[1.0, 2.0]]), "must be unique: 'a'"),
        (Features.from_array(["b"], [[1.0]]), "has other columns than"),
    ):
        first.write(tmp_path / "part-00000.parquet")
        second.write(tmp_path / "part-00001.parquet")
        with pytest.raises(InputError, match=told):
            join_parts(tmp_path, 2, first.record)
