"""DropBlock: zeroes squares of a map, at a rate that rises while training goes on."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class DropBlock(nn.Module):
    """Zeroes `size` x `size` squares of maps in training, and scales what is left so that the mean stays.

    The share that is dropped rises linearly to `rate` over `warm_up` updates. A trainer says where it is by
    `advance_drop_blocks`: the rate is no part of the weights.
    """

    rate_now: Tensor

    def __init__(self, rate: float, size: int, warm_up: int) -> None:
        super().__init__()
        self.rate, self.size, self.warm_up = rate, size, warm_up
        self.register_buffer("rate_now", torch.tensor(rate), persistent=False)

    def advance(self, updates: int) -> None:
        """Take the rate after so many updates of training."""
        self.rate_now.fill_(self.rate * min(1.0, updates / self.warm_up) if self.warm_up else self.rate)

    def forward(self, maps: Tensor) -> Tensor:
        """Maps [b, d, h, w], as they are in evaluation mode."""
        if not self.training or self.rate == 0:
            return maps
        height, width = maps.shape[-2:]
        size = min(self.size, height, width)
        places = (height - size + 1) * (width - size + 1)
        hit = self.rate_now / size**2 * (height * width / places)
        corners = torch.rand(*maps.shape[:-2], height - size + 1, width - size + 1, device=maps.device) < hit
        # A cell is dropped where a square begins at it, or up to size - 1 before it in either direction.
        margin = size - 1
        padded = functional.pad(corners.to(maps.dtype), (margin, margin, margin, margin))
        kept = 1 - functional.max_pool2d(padded, size, stride=1)
        return maps * kept * (kept.numel() / kept.sum().clamp(min=1))


def advance_drop_blocks(network: nn.Module, updates: int) -> None:
    """Set the rate of every DropBlock in a network to that after so many updates of training."""
    for module in network.modules():
        if isinstance(module, DropBlock):
            module.advance(updates)
