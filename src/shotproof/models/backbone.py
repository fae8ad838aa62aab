"""The contract of a backbone, a network from an item to a map and a vector, and the registered ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from shotproof.core.errors import InputError, is_want_of_memory
from shotproof.core.options import Component
from shotproof.core.registry import Registry
from shotproof.models.preprocessing import ImagePreprocessing, Medium, Preprocessing, SoundPreprocessing

Shape = tuple[int, int, int]


class BackboneNetwork(nn.Module, ABC):
    """A network from items [b, channels, height, width] to maps [b, d, h, w] and vectors [b, dim].

    input_shape: channels, height and width of an item
    map_shape: channels, height and width of its last map
    dim: the length of its vector
    steps_together: whether a GPU takes gradient steps of several tasks through it at a time, in bfloat16. Under `vmap`
        PyTorch cannot differentiate residual networks so: their steps are taken task by task, and in float32 where
        they are differentiated in turn
    """

    input_shape: Shape
    map_shape: Shape
    dim: int
    steps_together: bool = False

    @abstractmethod
    def stages(self, items: Tensor) -> list[Tensor]:
        """The map after each stage, the last of which is `maps`."""

    def maps(self, items: Tensor) -> Tensor:
        """The last map, [b, d, h, w]."""
        return self.stages(items)[-1]

    def pool(self, maps: Tensor) -> Tensor:
        """Maps to vectors, [b, dim]: the mean over locations, unless a backbone has another way."""
        return maps.mean(dim=(2, 3))

    def vectors(self, items: Tensor) -> Tensor:
        """The vector of each item, [b, dim]."""
        return self.pool(self.maps(items))

    def forward(self, items: Tensor) -> Tensor:
        """The vectors."""
        return self.vectors(items)

    def settle(self, input_shape: Shape) -> None:
        """Note the shapes that items of this shape lead to, without computing anything."""
        self.input_shape = input_shape
        abstract = {name: each.to("meta") for name, each in (*self.named_parameters(), *self.named_buffers())}
        training = self.training
        self.eval()
        weights = {f"of.{name}": each for name, each in abstract.items()}
        maps, vectors = functional_call(_MapsAndVectors(self), weights, torch.empty(1, *input_shape, device="meta"))
        channels, height, width = maps.shape[1:]
        if not height or not width:
            raise InputError(f"items of {input_shape[1]} x {input_shape[2]} are too small for this backbone")
        self.map_shape = (channels, height, width)
        self.dim = vectors.shape[1]
        self.train(training)


def outputs_of(modules: Iterable[nn.Module], maps: Tensor) -> list[Tensor]:
    """The output of each module, which sees that of the one before, the first one `maps`."""
    return [maps := module(maps) for module in modules]


class _MapsAndVectors(nn.Module):
    """A backbone seen by its maps and vectors: `functional_call` calls `forward` only."""

    def __init__(self, of: BackboneNetwork) -> None:
        super().__init__()
        self.of = of

    def forward(self, items: Tensor) -> tuple[Tensor, Tensor]:
        return self.of.maps(items), self.of.vectors(items)


class Backbone(Component, ABC):
    """Options that decide which network is built; a subclass is a frozen dataclass of them.

    pretrained: its weights come from elsewhere, so that it has its own preprocessing and takes images alone
    pretrained_on: the list of classes that these were trained on, `imagenet`, if it is known
    """

    kind: ClassVar[str] = "backbone"
    pretrained: ClassVar[bool] = False
    pretrained_on: ClassVar[str | None] = None

    @abstractmethod
    def network(self, channels: int) -> BackboneNetwork:
        """The network for items of so many channels, its weights drawn from PyTorch's global generator."""

    def architecture(self, network: BackboneNetwork) -> Mapping[str, Any]:
        """Plain values by which `blank` builds a network without its original weights, if the options do not do."""
        return {}

    def blank(self, channels: int, architecture: Mapping[str, Any]) -> BackboneNetwork:
        """The network whose weights will be replaced by those of a model's file."""
        return self.network(channels)

    def build(self, shape: Shape, architecture: Mapping[str, Any] | None = None) -> BackboneNetwork:
        """The network for items of this shape (channels, height, width), with all its shapes known.

        Args:
            shape: of items
            architecture: what a model's file tells of it, where its weights will come from that file

        Raises:
            InputError: such items cannot be its input.

        Example:
            >>> from shotproof.models.backbone import backbones
            >>> backbones.make("conv64f").build((3, 84, 84)).map_shape
            (64, 5, 5)
        """
        if self.pretrained and shape[0] != 3:
            raise InputError(f"backbone '{self.name}' takes images, 3 channels, found {shape[0]}")
        try:
            built = self.network(shape[0]) if architecture is None else self.blank(shape[0], architecture)
            built.settle(shape)
        except InputError:
            raise
        except (RuntimeError, ValueError) as error:  # a pool with nothing left to see; positions of another size
            if is_want_of_memory(error):
                raise
            raise InputError(f"backbone '{self.name}' cannot take items of {shape[1]} x {shape[2]}: {error}") from error
        return built

    def require_images(self, medium: Medium) -> None:
        """Refuse what a pretrained network was never shown; for `preprocessing`."""
        if medium != "image":
            raise InputError(f"backbone '{self.name}' takes images, the items are {medium}s")

    def preprocessing(self, medium: Medium, size: int | None = None, seconds: float | None = None) -> Preprocessing:
        """How its items are prepared, where images are of `size` pixels a side and sounds of so many seconds."""
        if medium == "sound":
            return SoundPreprocessing() if seconds is None else SoundPreprocessing(seconds=seconds)
        return ImagePreprocessing() if size is None else ImagePreprocessing.of_size(size)


backbones: Registry[Backbone] = Registry(
    "backbone",
    {
        "conv64f": "shotproof.models.backbones.conv64f:Conv64F",
        "hf": "shotproof.models.backbones.hf:HuggingFaceBackbone",
        "lite0": "shotproof.models.backbones.lite0:Lite0Backbone",
        "resnet10": "shotproof.models.backbones.resnet:ResNet10",
        "resnet12": "shotproof.models.backbones.resnet12:ResNet12",
        "resnet18": "shotproof.models.backbones.resnet:ResNet18",
        "timm": "shotproof.models.backbones.timm:TimmBackbone",
        "wrn-28-10": "shotproof.models.backbones.wrn_28_10:WideResNet",
    },
)
