"""ResNet-18 in its few-shot form: a small stem without a pool."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.core.options import option
from shotproof.models.backbone import Backbone, BackboneNetwork
from shotproof.models.backbones.basic import STEM, STEMS, BasicResNet
from shotproof.models.backbones.layers import RUNNING_STATISTICS


@dataclass(frozen=True)
class ResNet18(Backbone):
    """Four stages of two basic blocks; 11,168,832 parameters. At 84 pixels its maps are 512 x 11 x 11."""

    about = "four stages of two basic blocks; 11,168,832 parameters, 512 dimensions"
    paper = "He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, 2016"
    example = "resnet18(last_stride=1)"

    stem: str = option("small", STEM, choices=STEMS)
    last_stride: int = option(2, "of the last stage: 1 leaves its maps twice as large", choices=(1, 2))
    running_statistics: bool = option(True, RUNNING_STATISTICS)

    def network(self, channels: int) -> BackboneNetwork:
        """The stem and the stages."""
        return BasicResNet(channels, 2, self.stem, self.last_stride, self.running_statistics)
