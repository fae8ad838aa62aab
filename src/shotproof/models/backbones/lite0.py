"""EfficientNet-Lite0 with its ImageNet weights, for further training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from shotproof.features.encoders.lite0 import SIZE, blank_network, load_network
from shotproof.features.pretraining.class_lists import IMAGENET
from shotproof.models.backbone import Backbone, BackboneNetwork
from shotproof.models.preprocessing import ImagePreprocessing, Medium, Preprocessing


@dataclass(frozen=True)
class Lite0Backbone(Backbone):
    """Network of the encoder `lite0`, with the same weights and preprocessing, but with gradients.

    Its stages are the last maps of each size; the last stage follows the last convolution, 1,280 x 7 x 7 at 224 pixels.
    """

    about = "EfficientNet-Lite0, ImageNet weights, 1,280 dimensions (extra: lite)"
    pretrained = True
    pretrained_on = IMAGENET

    def network(self, channels: int) -> BackboneNetwork:
        """Load the network with its weights."""
        return _Network(load_network())

    def blank(self, channels: int, architecture: Mapping[str, Any]) -> BackboneNetwork:
        """Build the network without its weights."""
        return _Network(blank_network())

    def preprocessing(self, medium: Medium, size: int | None = None, seconds: float | None = None) -> Preprocessing:
        """Return the preprocessing of the encoder: the whole image, (x - 127) / 128."""
        self.require_images(medium)
        side = SIZE if size is None else size
        mean, std = (127 / 255,) * 3, (128 / 255,) * 3
        return ImagePreprocessing(size=side, stored=side, fit="stretch", mean=mean, std=std)


class _Network(BackboneNetwork):
    def __init__(self, network: Any) -> None:
        super().__init__()
        del network._fc  # the classifier of ImageNet
        self.whole = network

    def stages(self, items: Tensor) -> list[Tensor]:
        network = self.whole
        current = network._swish(network._bn0(network._conv_stem(items)))
        maps, drop_rate = [current], network._global_params.drop_connect_rate or 0.0
        for index, block in enumerate(network._blocks):
            current = block(current, drop_connect_rate=drop_rate * index / len(network._blocks))
            if current.shape[-1] == maps[-1].shape[-1]:
                maps.pop()  # only the last map of each size is kept
            maps.append(current)
        maps[-1] = network._swish(network._bn1(network._conv_head(current)))
        return maps
