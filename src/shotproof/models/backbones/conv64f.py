"""Conv-4-64: four small convolutions, the first standard backbone of few-shot learning."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from shotproof.core.options import option
from shotproof.models.backbone import Backbone, BackboneNetwork, outputs_of
from shotproof.models.backbones.resnet import RUNNING_STATISTICS


@dataclass(frozen=True)
class Conv64F(Backbone):
    """Four blocks of a 3 x 3 convolution with 64 filters, batch norm and ReLU; the first `pools` end in a 2 x 2 pool.

    113,088 parameters. At 84 pixels its maps are 64 x 5 x 5, with three pools 10 x 10, with two 21 x 21. Its vector is
    the flattened map (1,600 numbers) or, with `pooling='mean'`, the mean over locations (64).
    """

    about = "four convolutions of 64 filters; 113,088 parameters, 1,600 dimensions at 84 pixels"
    paper = "Snell, Swersky and Zemel, Prototypical Networks for Few-shot Learning, 2017"
    example = "conv64f(pools=3, pooling='mean')"

    pools: int = option(4, "number of blocks that end in a pool, counted from the first", least=0, most=4)
    pooling: str = option("flat", "how a map becomes a vector", choices=("flat", "mean"))
    slope: float = option(0.0, "negative slope of the ReLU: 0.2 for methods on local maps", least=0)
    running_statistics: bool = option(True, RUNNING_STATISTICS)

    def network(self, channels: int) -> BackboneNetwork:
        """Build the four blocks."""
        return _Network(self, channels)


class _Network(BackboneNetwork):
    steps_together = True

    def __init__(self, options: Conv64F, channels: int) -> None:
        super().__init__()
        self.flat = options.pooling == "flat"

        def block(index: int) -> nn.Sequential:
            pool = [nn.MaxPool2d(2)] if index < options.pools else []
            norm = nn.BatchNorm2d(64, track_running_stats=options.running_statistics)
            activation = nn.LeakyReLU(options.slope, inplace=True)
            return nn.Sequential(nn.Conv2d(64 if index else channels, 64, 3, padding=1), norm, activation, *pool)

        self.blocks = nn.ModuleList(block(index) for index in range(4))

    def stages(self, items: Tensor) -> list[Tensor]:
        return outputs_of(self.blocks, items)

    def pool(self, maps: Tensor) -> Tensor:
        return maps.flatten(1) if self.flat else super().pool(maps)
