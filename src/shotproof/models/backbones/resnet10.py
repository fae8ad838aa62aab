"""ResNet-10: one basic block per stage, for large images."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.core.options import option
from shotproof.models.backbone import Backbone, BackboneNetwork
from shotproof.models.backbones.basic import STEM, STEMS, BasicResNet
from shotproof.models.backbones.layers import RUNNING_STATISTICS


@dataclass(frozen=True)
class ResNet10(Backbone):
    """Four stages of one basic block; 4,905,792 parameters, with the small stem 4,898,112."""

    about = "four stages of one basic block; 4,905,792 parameters, 512 dimensions"
    paper = "Chen, Liu, Kira, Wang and Huang, A Closer Look at Few-shot Classification, 2019"
    example = "resnet10(stem='small')"

    stem: str = option("large", STEM, choices=STEMS)
    running_statistics: bool = option(True, RUNNING_STATISTICS)

    def network(self, channels: int) -> BackboneNetwork:
        """The stem and the stages."""
        return BasicResNet(channels, 1, self.stem, running_statistics=self.running_statistics)
