"""The network of ResNet-10 and ResNet-18: a stem, then four stages of basic blocks."""

from __future__ import annotations

from torch import Tensor, nn

from shotproof.models.backbone import BackboneNetwork
from shotproof.models.backbones.layers import BasicBlock, conv3x3, initialize

STEMS = ("small", "large")
STEM = "small: 3 x 3 and no pool, for 84 pixels; large: 7 x 7 with stride 2 and a pool, for 224"


class BasicResNet(BackboneNetwork):
    """Stages of 64, 128, 256 and 512 filters, each but the first halved."""

    def __init__(
        self, channels: int, blocks: int, stem: str, last_stride: int = 2, running_statistics: bool = True
    ) -> None:
        super().__init__()
        norm = nn.BatchNorm2d(64, track_running_stats=running_statistics)
        if stem == "large":
            first = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
            self.stem = nn.Sequential(first, norm, nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        else:
            self.stem = nn.Sequential(conv3x3(channels, 64), norm, nn.ReLU(inplace=True))

        def stage(inputs: int, outputs: int, stride: int) -> nn.Sequential:
            firsts = [(inputs, outputs, stride), *[(outputs, outputs, 1)] * (blocks - 1)]
            return nn.Sequential(*(BasicBlock(*one, running_statistics) for one in firsts))

        sizes = ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, last_stride))
        self.parts = nn.ModuleList(stage(*size) for size in sizes)
        initialize(self)

    def stages(self, items: Tensor) -> list[Tensor]:
        """The maps of the four stages."""
        maps, current = [], self.stem(items)
        for part in self.parts:
            current = part(current)
            maps.append(current)
        return maps
