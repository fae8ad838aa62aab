"""EfficientNet-Lite0 for encoding alone: batch norms folded into the convolutions, rectifiers computed with them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_weights

MOST = 6.0  # where the rectifiers of the network saturate

# A convolution and its rectifier in one pass over memory, if this build of PyTorch has it; for CPUs, without gradients.
_has_fused = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
_fused: Any = getattr(torch.ops.mkldnn, "_convolution_pointwise", None) if _has_fused else None


class FoldedLite0(nn.Module):
    """The network without its classifier, as `efficientnet_lite_pytorch` builds it, to the same maps but for rounding.

    On a CPU, it encodes about twice as many images per second.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.stem = _Convolution(network._conv_stem, network._bn0)
        self.blocks = nn.ModuleList(map(_Block, network._blocks))
        self.head = _Convolution(network._conv_head, network._bn1)

    def maps(self, images: Tensor) -> Iterator[Tensor]:
        """Images, [b, 3, 224, 224], to the map of each block, and at last the network's own, [b, 1280, 7, 7]."""
        current = self.stem(images)
        for block in self.blocks:
            current = block(current)
            yield current
        yield self.head(current)

    def forward(self, images: Tensor) -> Tensor:
        """Images, [b, 3, 224, 224], to the last map, [b, 1280, 7, 7]."""
        (last,) = deque(self.maps(images), maxlen=1)
        return last


class _Block(nn.Module):
    """Expansion, if there is one, depthwise convolution, projection; and the input added if it has the same shape."""

    def __init__(self, block: Any) -> None:
        super().__init__()
        settings = block._block_args
        convolutions = [_Convolution(block._expand_conv, block._bn0)] if settings.expand_ratio != 1 else []
        convolutions.append(_Convolution(block._depthwise_conv, block._bn1))
        convolutions.append(_Convolution(block._project_conv, block._bn2, rectified=False))
        self.convolutions = nn.Sequential(*convolutions)
        self.residual = block.id_skip and settings.stride == 1 and settings.input_filters == settings.output_filters

    def forward(self, maps: Tensor) -> Tensor:
        changed: Tensor = self.convolutions(maps)
        return changed.add_(maps) if self.residual else changed


class _Convolution(nn.Module):
    """A convolution with TensorFlow's padding, the batch norm after it folded in, and the rectifier after that."""

    weight: Tensor
    bias: Tensor

    def __init__(self, convolution: Any, norm: nn.BatchNorm2d, rectified: bool = True) -> None:
        super().__init__()
        assert norm.running_mean is not None
        assert norm.running_var is not None
        weight, bias = fuse_conv_bn_weights(
            convolution.weight.double(),
            None,
            norm.running_mean.double(),
            norm.running_var.double(),
            norm.eps,
            norm.weight.double(),
            norm.bias.double(),
        )
        self.register_buffer("weight", weight.detach().float().contiguous(memory_format=torch.channels_last))
        self.register_buffer("bias", bias.detach().float())
        self.stride, self.groups, self.rectified = tuple(convolution.stride), convolution.groups, rectified
        around = getattr(convolution.static_padding, "padding", (0, 0, 0, 0))
        self.even = around[0] if len(set(around)) == 1 else 0  # padding that the convolution does itself
        self.uneven = None if len(set(around)) == 1 else around

    def forward(self, maps: Tensor) -> Tensor:
        if self.uneven is not None:
            maps = functional.pad(maps, self.uneven)
        if _fused is not None and maps.device.type == "cpu":
            after, limits = ("hardtanh", [0.0, MOST]) if self.rectified else ("none", [])
            pads, strides = [self.even, self.even], list(self.stride)
            fused: Tensor = _fused(maps, self.weight, self.bias, pads, strides, [1, 1], self.groups, after, limits, "")
            return fused
        convolved = functional.conv2d(maps, self.weight, self.bias, self.stride, self.even, 1, self.groups)
        return functional.hardtanh_(convolved, 0.0, MOST) if self.rectified else convolved
