"""Custom backbone: two convolutions."""

from dataclasses import dataclass

from torch import Tensor, nn

from shotproof.core.options import option
from shotproof.models.backbone import Backbone, BackboneNetwork


@dataclass(frozen=True)
class Tiny(Backbone):
    """Two strided convolutions; the vector is the mean over the map."""

    about = "two convolutions, for trying things out"
    example = "tiny(filters=8)"

    filters: int = option(16, "of each convolution", least=1)

    def network(self, channels: int) -> BackboneNetwork:
        """Build the two convolutions."""
        return TinyNetwork(channels, self.filters)


class TinyNetwork(BackboneNetwork):
    """Maps of an eighth of the items' size."""

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()

        def stage(inputs: int, stride: int) -> nn.Module:
            return nn.Sequential(nn.Conv2d(inputs, filters, 3, stride, 1), nn.BatchNorm2d(filters), nn.ReLU())

        self.first, self.second = stage(channels, 2), stage(filters, 4)

    def stages(self, items: Tensor) -> list[Tensor]:
        """Return both maps."""
        first = self.first(items)
        return [first, self.second(first)]
