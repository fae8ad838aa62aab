"""EfficientNet-Lite0 for inference: batch norms are folded into the convolutions, and rectifiers fused with them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_weights

CEILING = 6.0  # value at which the network's rectifiers saturate

# A convolution fused with its rectifier, if this build of PyTorch has it; for CPUs, without gradients.
_has_mkldnn = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
_fused_convolution: Any = getattr(torch.ops.mkldnn, "_convolution_pointwise", None) if _has_mkldnn else None


class FoldedLite0(nn.Module):
    """Network of `efficientnet_lite_pytorch` without its classifier; its maps differ only by rounding.

    On a CPU, it encodes about twice as many images per second.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.stem = _Convolution(network._conv_stem, network._bn0)
        self.blocks = nn.ModuleList(map(_Block, network._blocks))
        self.head = _Convolution(network._conv_head, network._bn1)

    def maps(self, images: Tensor) -> Iterator[Tensor]:
        """Yield the map of each block for images, [b, 3, 224, 224], and the last map, [b, 1280, 7, 7]."""
        current = self.stem(images)
        for block in self.blocks:
            current = block(current)
            yield current
        yield self.head(current)

    def forward(self, images: Tensor) -> Tensor:
        """Return the last map, [b, 1280, 7, 7], of images, [b, 3, 224, 224]."""
        (last,) = deque(self.maps(images), maxlen=1)
        return last


class _Block(nn.Module):
    """Block of an optional expansion, a depthwise convolution, a projection, and a shortcut if the shapes agree."""

    def __init__(self, block: Any) -> None:
        super().__init__()
        settings = block._block_args
        convolutions = [_Convolution(block._expand_conv, block._bn0)] if settings.expand_ratio != 1 else []
        convolutions.append(_Convolution(block._depthwise_conv, block._bn1))
        convolutions.append(_Convolution(block._project_conv, block._bn2, rectified=False))
        self.convolutions = nn.Sequential(*convolutions)
        self.residual = block.id_skip and settings.stride == 1 and settings.input_filters == settings.output_filters

    def forward(self, maps: Tensor) -> Tensor:
        output: Tensor = self.convolutions(maps)
        return output.add_(maps) if self.residual else output


class _Convolution(nn.Module):
    """Convolution with TensorFlow's padding, the folded batch norm after it, and the rectifier after that."""

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
        padding = getattr(convolution.static_padding, "padding", (0, 0, 0, 0))
        self.even_padding = padding[0] if len(set(padding)) == 1 else 0  # done by the convolution
        self.uneven_padding = None if len(set(padding)) == 1 else padding

    def forward(self, maps: Tensor) -> Tensor:
        if self.uneven_padding is not None:
            maps = functional.pad(maps, self.uneven_padding)
        if _fused_convolution is not None and maps.device.type == "cpu":
            activation, limits = ("hardtanh", [0.0, CEILING]) if self.rectified else ("none", [])
            pads, strides = [self.even_padding, self.even_padding], list(self.stride)
            output: Tensor = _fused_convolution(
                maps, self.weight, self.bias, pads, strides, [1, 1], self.groups, activation, limits, ""
            )
            return output
        output = functional.conv2d(maps, self.weight, self.bias, self.stride, self.even_padding, 1, self.groups)
        return functional.hardtanh_(output, 0.0, CEILING) if self.rectified else output
