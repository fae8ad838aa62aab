"""Layers that several backbones share."""

from __future__ import annotations

from torch import Tensor, nn

RUNNING_STATISTICS = "whether batch norm keeps statistics for evaluation; without, it uses those of each batch"


def conv3x3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """A padded convolution without a bias: batch norm follows."""
    return nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)


def initialize(network: nn.Module, slope: float = 0.0) -> None:
    """Kaiming's normal weights by fan-out for convolutions before (leaky) ReLUs; batch norm starts as identity."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, slope, mode="fan_out", nonlinearity="leaky_relu")


class BasicBlock(nn.Module):
    """Two convolutions and a shortcut, as in ResNet-10 and ResNet-18."""

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
        """Maps [b, inputs, h, w] to [b, outputs, h / stride, w / stride]."""
        added: Tensor = self.residual(maps) + self.shortcut(maps)
        return added.relu()
