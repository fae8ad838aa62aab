"""ResNet-10 and ResNet-18: a stem and four stages of basic blocks; also layers that other backbones share."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from shotproof.core.options import option
from shotproof.models.backbone import Backbone, BackboneNetwork, outputs_of

RUNNING_STATISTICS = "batch norm keeps running statistics for evaluation; if not, it uses those of each batch"
STEMS = ("small", "large")
STEM = "first convolution: 3 x 3 without a pool, for 84 pixels (small); 7 x 7 with stride 2 and a pool, for 224 (large)"


def conv3x3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """Build a padded 3 x 3 convolution, without bias because batch norm follows."""
    return nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)


def initialize(network: nn.Module, slope: float = 0.0) -> None:
    """Initialize convolutions before (leaky) ReLUs by Kaiming's normal by fan-out; batch norm starts as identity."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, slope, mode="fan_out", nonlinearity="leaky_relu")


class BasicBlock(nn.Module):
    """Block of two convolutions and a shortcut, as in ResNet-10 and ResNet-18."""

    def __init__(self, inputs: int, outputs: int, stride: int, running_statistics: bool) -> None:
        super().__init__()

        def norm() -> nn.BatchNorm2d:
            return nn.BatchNorm2d(outputs, track_running_stats=running_statistics)

        self.residual = nn.Sequential(
            conv3x3(inputs, outputs, stride), norm(), nn.ReLU(inplace=True), conv3x3(outputs, outputs), norm()
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm())

    def forward(self, maps: Tensor) -> Tensor:
        """Transform maps [b, inputs, h, w] to [b, outputs, h / stride, w / stride]."""
        output: Tensor = self.residual(maps) + self.shortcut(maps)
        return output.relu()


class BasicResNet(BackboneNetwork):
    """Stages of 64, 128, 256 and 512 filters; each but the first halves the size."""

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
            block_sizes = [(inputs, outputs, stride), *[(outputs, outputs, 1)] * (blocks - 1)]
            return nn.Sequential(*(BasicBlock(*block_size, running_statistics) for block_size in block_sizes))

        sizes = ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, last_stride))
        self.parts = nn.ModuleList(stage(*size) for size in sizes)
        initialize(self)

    def stages(self, items: Tensor) -> list[Tensor]:
        """Return the maps of the four stages."""
        return outputs_of(self.parts, self.stem(items))


@dataclass(frozen=True)
class ResNet10(Backbone):
    """Four stages of one basic block; 4,905,792 parameters, with the small stem 4,898,112."""

    about = "four stages of one basic block; 4,905,792 parameters, 512 dimensions"
    paper = "Chen, Liu, Kira, Wang and Huang, A Closer Look at Few-shot Classification, 2019"
    example = "resnet10(stem='small')"

    stem: str = option("large", STEM, choices=STEMS)
    running_statistics: bool = option(True, RUNNING_STATISTICS)

    def network(self, channels: int) -> BackboneNetwork:
        """Build the stem and the stages."""
        return BasicResNet(channels, 1, self.stem, running_statistics=self.running_statistics)


@dataclass(frozen=True)
class ResNet18(Backbone):
    """Four stages of two basic blocks; 11,168,832 parameters. At 84 pixels its maps are 512 x 11 x 11."""

    about = "four stages of two basic blocks; 11,168,832 parameters, 512 dimensions"
    paper = "He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, 2016"
    example = "resnet18(last_stride=1)"

    stem: str = option("small", STEM, choices=STEMS)
    last_stride: int = option(2, "stride of the last stage: with 1, its maps are twice as large", choices=(1, 2))
    running_statistics: bool = option(True, RUNNING_STATISTICS)

    def network(self, channels: int) -> BackboneNetwork:
        """Build the stem and the stages."""
        return BasicResNet(channels, 2, self.stem, self.last_stride, self.running_statistics)
