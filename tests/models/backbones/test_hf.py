from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import shotproof as sp
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.models.backbone import backbones
from tests.drawn_images import draw_catalog
from tests.features.encoders.test_hf import KINDS, build, saved
from tests.small_networks import SMALL, write_world

pytestmark = pytest.mark.usefixtures("quiet_transformers")


@pytest.mark.parametrize("kind", KINDS)
def test_its_vectors_are_the_encoders_features(tmp_path: Path, kind: str) -> None:
    """The encoder prepares images with the model's own processor, the backbone with steps read from it."""
    saved(kind, tmp_path / "model")
    catalog = draw_catalog(tmp_path / "images", 3, width=44, height=44)
    backbone = backbones.make(f"hf:{tmp_path / 'model'}")
    preprocessing = backbone.preprocessing("image")
    network = backbone.build(preprocessing.shape).eval()
    stored = torch.from_numpy(np.stack([preprocessing.load(path) for path in catalog.paths]))
    with torch.no_grad():
        vectors = network.vectors(preprocessing.prepared(stored))
    encoded = sp.encode(catalog, f"hf:{tmp_path / 'model'}", runtime=Runtime(cache=None, workers=1))
    assert vectors.shape == (3, network.dim)
    # A corner of the crop may be rounded to the other pixel.
    np.testing.assert_allclose(vectors, encoded.array, rtol=0.02, atol=0.02 * float(np.abs(encoded.array).max()))


def test_a_model_of_it_is_trained_and_encodes(tmp_path: Path) -> None:
    saved("vit", tmp_path / "model")
    world, file = write_world(tmp_path / "world"), tmp_path / "some.model"
    settings = {**SMALL, "epochs": 1, "size": None, "backbone": f"hf:{tmp_path / 'model'}(pooling='mean')"}
    runtime = Runtime(cache=None, workers=1, progress=False)
    model = sp.train(world, "protonet", output=file, runtime=runtime, **settings)
    before = backbones.make(settings["backbone"]).build((3, 32, 32)).state_dict()
    changed = [name for name, each in before.items() if not torch.equal(each, model.weights[f"backbone.{name}"])]
    assert [name for name in changed if "layer.0" in name or "layers.0" in name]
    shutil.rmtree(tmp_path / "model")  # the model has all that it needs
    features = sp.encode(world.in_split("val"), f"model:{file}", runtime=runtime)
    assert features.array.shape == (32, 16)


def test_what_it_cannot_take_is_refused(tmp_path: Path) -> None:
    _, processor = saved("vit", tmp_path / "vit")
    backbone = backbones.make(f"hf:{tmp_path / 'vit'}")
    with pytest.raises(InputError, match="backbone 'hf' cannot take items of 48 x 48"):
        backbone.build((3, 48, 48))
    assert backbone.preprocessing("image", size=16).shape == (3, 16, 16)
    processor.size = {"height": 32, "width": 48}
    processor.save_pretrained(tmp_path / "vit")
    with pytest.raises(InputError, match=r"processor has the size .* expected a square"):
        backbones.make(f"hf:{tmp_path / 'vit'}").preprocessing("image")
    build("vit")[0].save_pretrained(tmp_path / "no-processor")
    with pytest.raises(InputError, match="cannot load its ImageProcessor"):
        backbones.make(f"hf:{tmp_path / 'no-processor'}").preprocessing("image")
