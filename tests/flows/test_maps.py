"""Local maps from encoder to results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode, encoders
from shotproof.features.features import Features, Tally
from shotproof.learners.method import methods
from tests.drawn_images import draw_catalog
from tests.drawn_tasks import draw_task_set
from tests.features.encoders.test_hf import saved
from tests.features.encoders.test_onnx import convolution

MAP_HEADS = [name for name in methods.names() if methods.get(name).needs == "maps"]


@pytest.mark.parametrize("kind", ["lite0", "pixels", "hf", "hf-tokens", "onnx"])
def test_the_mean_over_a_map_is_the_vector(tmp_path: Path, kind: str) -> None:
    if kind.startswith("hf"):
        saved("vit" if kind == "hf-tokens" else "resnet", tmp_path / "model")
    specs = {"hf": f"hf:{tmp_path / 'model'}", "hf-tokens": f"hf:{tmp_path / 'model'}"}
    spec = convolution(tmp_path / "m.onnx", ["b", 3, 8, 8]) if kind == "onnx" else specs.get(kind, kind)
    catalog = draw_catalog(tmp_path / "images", 3)
    plain = {"hf": {"pooling": "mean"}, "hf-tokens": {"pooling": "mean"}}.get(kind, {})
    maps = encode(catalog, encoders.make(spec, maps=True), runtime=Runtime(cache=tmp_path / "cache", workers=1))
    vectors = encode(catalog, encoders.make(spec, **plain), runtime=Runtime(cache=tmp_path / "cache", workers=1))
    assert maps.shape is not None
    assert maps.name.endswith("(maps=True)")
    assert maps.maps.dtype == np.float16
    expected = vectors.array.reshape(3, 8, 8, 3).mean((1, 2)) if kind == "pixels" else vectors.array
    np.testing.assert_allclose(maps.array, expected, rtol=5e-3, atol=5e-3)


def test_maps_come_from_the_cache_with_their_shape(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 3)
    runtime = Runtime(cache=tmp_path / "cache", workers=1)
    first = encode(catalog, "pixels(size=2, maps=True)", runtime=runtime)
    again = encode(catalog, "pixels(size=2, maps=True)", runtime=runtime)
    assert again.tally == Tally(encoded=0, reused=3)
    assert again.shape == first.shape == (3, 2, 2)
    assert again.digest == first.digest
    next((tmp_path / "cache").glob("features/*/shape.json")).unlink()
    assert encode(catalog, "pixels(size=2, maps=True)", runtime=runtime).tally == Tally(encoded=3, reused=0)


def test_what_has_no_maps_says_so() -> None:
    with pytest.raises(InputError, match="encoder 'file' has no option 'maps'"):
        encoders.make("file:f.npy", maps=True)


def test_maps_are_not_pooled(tmp_path: Path) -> None:
    saved("vit", tmp_path / "model")
    with pytest.raises(InputError, match=r"maps are not pooled: .*pooling='cls'"):
        encoders.make(f"hf:{tmp_path / 'model'}", maps=True, pooling="cls")


def maps_of(features: Features) -> Features:
    items = features.table.column("item").to_pylist()
    return Features.from_array(items, features.array.reshape(len(features), -1, 2, 2), record=features.record)


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
        InputError, match=f"method '{name}' needs local maps, but .*'drawn' are one vector per item.*maps=True"
    ):
        evaluate(tasks, features, ["ncc", name])
