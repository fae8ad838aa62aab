"""ResNet-12: the most common backbone of few-shot learning, four wide residual blocks with DropBlock."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.models.backbone import Backbone, BackboneNetwork, outputs_of
from shotproof.models.backbones.resnet import RUNNING_STATISTICS, conv3x3, initialize

SLOPE = 0.1
WIDTHS = {"640": (64, 160, 320, 640), "512": (64, 128, 256, 512), "64": (8, 16, 32, 64)}


class DropBlock(nn.Module):
    """DropBlock: zeroes `size` x `size` squares of maps in training, and rescales the rest to preserve the mean.

    The dropped fraction rises linearly to `rate` over `warm_up` updates. The trainer sets the progress by
    `advance_drop_blocks`; the current rate is not saved with the weights.
    """

    rate_now: Tensor

    def __init__(self, rate: float, size: int, warm_up: int) -> None:
        super().__init__()
        self.rate, self.size, self.warm_up = rate, size, warm_up
        self.register_buffer("rate_now", torch.tensor(rate), persistent=False)

    def advance(self, updates: int) -> None:
        """Set the rate for this number of training updates."""
        self.rate_now.fill_(self.rate * min(1.0, updates / self.warm_up) if self.warm_up else self.rate)

    def forward(self, maps: Tensor) -> Tensor:
        """Drop squares of maps [b, d, h, w] in training mode; return them unchanged in evaluation mode."""
        if not self.training or self.rate == 0:
            return maps
        height, width = maps.shape[-2:]
        size = min(self.size, height, width)
        positions = (height - size + 1) * (width - size + 1)
        rate = self.rate_now / size**2 * (height * width / positions)
        corners = torch.rand(*maps.shape[:-2], height - size + 1, width - size + 1, device=maps.device) < rate
        # A cell is dropped if a square starts at it, or up to size - 1 cells before it in either direction.
        margin = size - 1
        padded = functional.pad(corners.to(maps.dtype), (margin, margin, margin, margin))
        mask = 1 - functional.max_pool2d(padded, size, stride=1)
        return maps * mask * (mask.numel() / mask.sum().clamp(min=1))


def advance_drop_blocks(network: nn.Module, updates: int) -> None:
    """Set the rate of every DropBlock in a network for this number of training updates."""
    for module in network.modules():
        if isinstance(module, DropBlock):
            module.advance(updates)


@dataclass(frozen=True)
class ResNet12(Backbone):
    """Four residual blocks of 64, 160, 320 and 640 filters, each followed by a 2 x 2 pool; 12,424,320 parameters.

    At 84 pixels its maps are 640 x 5 x 5, and without the last two pools 640 x 21 x 21. The first two blocks end in
    dropout, the last two in DropBlock.
    """

    about = "four residual blocks up to 640 filters, with DropBlock; 12,424,320 parameters, 640 dimensions"
    paper = "Lee, Maji, Ravichandran and Soatto, Meta-Learning with Differentiable Convex Optimization, 2019"
    example = "resnet12(drop_rate=0)"

    width: str = option("640", "filters of the last block; 64 is for tests and small data", choices=tuple(WIDTHS))
    drop_rate: float = option(0.1, "fraction of values zeroed by dropout and DropBlock in training", least=0, most=0.9)
    block_size: int = option(5, "side of DropBlock's squares", least=1)
    warm_up: int = option(40_000, "updates over which DropBlock's rate rises", least=0)
    pools: int = option(4, "number of blocks that end in a pool, counted from the first", least=0, most=4)
    running_statistics: bool = option(True, RUNNING_STATISTICS)

    def network(self, channels: int) -> BackboneNetwork:
        """Build the four blocks."""
        return _Network(self, channels)


class _Network(BackboneNetwork):
    def __init__(self, options: ResNet12, channels: int) -> None:
        super().__init__()
        widths = (channels, *WIDTHS[options.width])
        self.blocks = nn.ModuleList(_Block(options, index, *widths[index : index + 2]) for index in range(4))
        initialize(self, SLOPE)

    def stages(self, items: Tensor) -> list[Tensor]:
        return outputs_of(self.blocks, items)


class _Block(nn.Module):
    def __init__(self, options: ResNet12, index: int, inputs: int, outputs: int) -> None:
        super().__init__()

        def norm() -> nn.BatchNorm2d:
            return nn.BatchNorm2d(outputs, track_running_stats=options.running_statistics)

        self.residual = nn.Sequential(
            conv3x3(inputs, outputs),
            norm(),
            nn.LeakyReLU(SLOPE, inplace=True),
            conv3x3(outputs, outputs),
            norm(),
            nn.LeakyReLU(SLOPE, inplace=True),
            conv3x3(outputs, outputs),
            norm(),
        )
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), norm())
        self.activation = nn.LeakyReLU(SLOPE, inplace=True)
        self.pool = nn.MaxPool2d(2) if index < options.pools else nn.Identity()
        rate = options.drop_rate
        self.drop = nn.Dropout(rate) if index < 2 else DropBlock(rate, options.block_size, options.warm_up)

    def forward(self, maps: Tensor) -> Tensor:
        output: Tensor = self.drop(self.pool(self.activation(self.residual(maps) + self.shortcut(maps))))
        return output
