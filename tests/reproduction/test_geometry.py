"""What is kept of a run's features, and the worlds that experiments read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from reproduction.geometry import keep_geometry, read_geometry, read_plane
from reproduction.worlds import write_worlds

from shotproof.analysis.context_effect import feature_change
from shotproof.catalog.catalog import Catalog
from shotproof.features.features import Features
from shotproof.pipeline.study import run
from shotproof.worlds.sounds import SoundsWorld
from tests.pipeline.test_mix_section import EXPERIMENT, write_recordings


def test_length_and_direction_and_a_plane_are_kept(tmp_path: Path) -> None:
    write_recordings(tmp_path, SoundsWorld(foregrounds=2, backgrounds=3, items=4))
    file = tmp_path / "sounds.toml"
    file.write_text(EXPERIMENT.replace('"ood"', '"context"'))
    run(file)
    keep_geometry(file, tmp_path / "kept")
    catalog, features = Catalog.read(tmp_path / "out/catalog.parquet"), tmp_path / "out/features-logmel.parquet"
    expected = feature_change(Features.read(features), catalog, "clean").overall
    assert expected.ratio is not None
    assert read_geometry("sounds", tmp_path / "kept")["logmel"]["ratio"]["mean"] == expected.ratio.mean
    plane = read_plane("sounds", tmp_path / "kept")
    assert plane is not None
    iid, ood = plane.tasks
    assert [iid.sampler, ood.sampler] == ["iid", "ood"]
    assert iid.items[0] == ood.items[0]  # a support
    assert np.array_equal(iid.places[0], ood.places[0])
    assert iid.is_query.sum() == ood.is_query.sum() == 2


def test_what_was_not_run_is_not_there(tmp_path: Path) -> None:
    assert read_geometry("sounds", tmp_path) == {}
    assert read_plane("sounds", tmp_path) is None


def test_the_worlds_are_catalogs_and_features(tmp_path: Path) -> None:
    write_worlds(tmp_path, classes=3, items=2)
    shapes, gaussian = (Catalog.read(tmp_path / name / "catalog.parquet") for name in ("shapes", "gaussian"))
    assert len(shapes) == len(gaussian) == 6
    assert all(path.is_file() for path in shapes.paths)
    eight, four = (Features.read(tmp_path / "gaussian" / f"{name}.parquet").array for name in ("eight", "four"))
    assert np.array_equal(eight[:, :4], four)
