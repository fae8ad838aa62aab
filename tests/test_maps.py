"""Local maps from encoder to results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from shotproof.cli.app import app
from shotproof.errors import InputError
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import Tally, encode, make_encoder
from shotproof.features.features import Features
from shotproof.methods.method import make_method, methods
from tests.drawn_images import draw_catalog
from tests.drawn_tasks import draw_task_set
from tests.test_hf import saved
from tests.test_onnx import convolution

MAP_HEADS = [name for name in methods.names() if make_method(name).needs == "maps"]


@pytest.mark.parametrize("kind", ["lite0", "pixels", "hf", "hf-tokens", "onnx"])
def test_the_mean_over_a_map_is_the_vector(tmp_path: Path, kind: str) -> None:
    if kind.startswith("hf"):
        saved("vit" if kind == "hf-tokens" else "resnet", tmp_path / "model")
    specs = {"hf": f"hf:{tmp_path / 'model'}", "hf-tokens": f"hf:{tmp_path / 'model'}"}
    spec = convolution(tmp_path / "m.onnx", ["b", 3, 8, 8]) if kind == "onnx" else specs.get(kind, kind)
    catalog = draw_catalog(tmp_path / "images", 3)
    plain = {"hf": {"pooling": "mean"}, "hf-tokens": {"pooling": "mean"}}.get(kind, {})
    maps = encode(catalog, spec, cache=tmp_path / "cache", workers=0, maps=True)
    vectors = encode(catalog, spec, cache=tmp_path / "cache", workers=0, **plain)
    assert maps.shape is not None
    assert maps.name.endswith("(maps=True)")
    assert maps.maps.dtype == np.float16
    expected = vectors.array.reshape(3, 8, 8, 3).mean((1, 2)) if kind == "pixels" else vectors.array
    np.testing.assert_allclose(maps.array, expected, rtol=5e-3, atol=5e-3)


def test_maps_come_from_the_cache_with_their_shape(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 3)
    first = encode(catalog, "pixels(size=2)", cache=tmp_path / "cache", workers=0, maps=True)
    tally = Tally()
    again = encode(catalog, "pixels(size=2, maps=True)", cache=tmp_path / "cache", workers=0, tally=tally)
    assert tally == Tally(encoded=0, reused=3)
    assert again.shape == first.shape == (3, 2, 2)
    assert again.digest == first.digest
    next((tmp_path / "cache").glob("features/*/shape.json")).unlink()
    encode(catalog, "pixels(size=2, maps=True)", cache=tmp_path / "cache", workers=0, tally=tally)
    assert tally == Tally(encoded=3, reused=0)


def test_the_command_line_makes_maps(tmp_path: Path) -> None:
    draw_catalog(tmp_path / "images", 3).write(tmp_path / "catalog.parquet")
    arguments = ["encode", str(tmp_path / "catalog.parquet"), "--encoder", "pixels", "--maps", "--workers", "0"]
    told = CliRunner().invoke(app, [*arguments, "--cache", str(tmp_path / "c"), "-o", str(tmp_path / "f.parquet")])
    assert told.exit_code == 0
    assert "3 items, maps of 3 x 8 x 8 by pixels(maps=True)" in told.output
    assert Features.read(tmp_path / "f.parquet").shape == (3, 8, 8)


def test_what_has_no_maps_says_so() -> None:
    with pytest.raises(InputError, match="encoder 'file' has no option 'maps'"):
        make_encoder("file:f.npy", maps=True)


def test_maps_are_not_pooled(tmp_path: Path) -> None:
    saved("vit", tmp_path / "model")
    with pytest.raises(InputError, match="maps are not pooled: leave pooling='cls' out"):
        make_encoder(f"hf:{tmp_path / 'model'}", maps=True, pooling="cls")


def maps_of(features: Features) -> Features:
    items = features.table.column("item").to_pylist()
    return Features.from_array(items, features.array.reshape(len(features), -1, 2, 2), features.meta)


def test_methods_on_maps_and_on_vectors_are_evaluated_together() -> None:
    tasks, features = draw_task_set(tasks=10)
    maps = maps_of(features)
    specs = [*MAP_HEADS, "ncc", "cosine"]
    whole = evaluate(tasks, maps, specs)
    assert whole.table.equals(evaluate(tasks, maps, specs, chunk=1).table)
    means = Features.from_array(maps.table.column("item").to_pylist(), maps.array)
    for name in ("ncc", "cosine"):
        expected = evaluate(tasks, means, name).counts(name).n_correct
        assert whole.counts(name).n_correct.tolist() == expected.tolist()


@pytest.mark.parametrize("name", MAP_HEADS)
def test_a_method_on_maps_refuses_vectors(name: str) -> None:
    tasks, features = draw_task_set()
    with pytest.raises(
        InputError, match=f"method '{name}' needs local maps, but .*'drawn' are one vector an item.*--maps"
    ):
        evaluate(tasks, features, ["ncc", name])
