"""WRN-28-10: a wide residual network with non-negative features."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from shotproof.core.options import option
from shotproof.models.backbone import Backbone, BackboneNetwork, outputs_of
from shotproof.models.backbones.resnet import RUNNING_STATISTICS, conv3x3, initialize


@dataclass(frozen=True)
class WideResNet(Backbone):
    """Three groups of four pre-activation blocks, 160, 320 and 640 filters; 36,472,784 parameters.

    At 84 pixels its maps are 640 x 21 x 21; vectors are their mean.
    """

    about = "three groups of four wide blocks up to 640 filters; 36,472,784 parameters, 640 dimensions"
    paper = "Zagoruyko and Komodakis, Wide Residual Networks, 2016"
    example = "wrn-28-10(drop_rate=0.5)"

    drop_rate: float = option(0.0, "fraction of values zeroed by dropout in training", least=0, most=0.9)
    running_statistics: bool = option(True, RUNNING_STATISTICS)

    def network(self, channels: int) -> BackboneNetwork:
        """Build the three groups."""
        return _Network(self, channels)


class _Network(BackboneNetwork):
    def __init__(self, options: WideResNet, channels: int) -> None:
        super().__init__()
        self.stem = conv3x3(channels, 16)
        sizes = ((16, 160, 1), (160, 320, 2), (320, 640, 2))
        self.groups = nn.ModuleList(
            nn.Sequential(
                _Block(options, inputs, outputs, stride), *(_Block(options, outputs, outputs, 1) for _ in range(3))
            )
            for inputs, outputs, stride in sizes
        )
        self.norm = nn.BatchNorm2d(640, track_running_stats=options.running_statistics)
        initialize(self)

    def stages(self, items: Tensor) -> list[Tensor]:
        *maps, last = outputs_of(self.groups, self.stem(items))
        return [*maps, self.norm(last).relu()]


class _Block(nn.Module):
    def __init__(self, options: WideResNet, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()

        def norm(filters: int) -> nn.BatchNorm2d:
            return nn.BatchNorm2d(filters, track_running_stats=options.running_statistics)

        self.before = norm(inputs)
        self.residual = nn.Sequential(
            conv3x3(inputs, outputs, stride),
            norm(outputs),
            nn.ReLU(inplace=True),
            nn.Dropout(options.drop_rate),
            conv3x3(outputs, outputs),
        )
        is_widened = inputs != outputs
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if is_widened else None

    def forward(self, maps: Tensor) -> Tensor:
        active = self.before(maps).relu()
        # If the width changes, the shortcut also takes the activated maps.
        shortcut: Tensor = maps if self.shortcut is None else self.shortcut(active)
        residual: Tensor = self.residual(active)
        return shortcut + residual
