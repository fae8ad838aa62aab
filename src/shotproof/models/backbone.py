"""Interface of backbones, networks that map an item to a feature map and a vector, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from shotproof.core.errors import InputError, is_out_of_memory
from shotproof.core.options import Component
from shotproof.core.registry import Registry
from shotproof.models.preprocessing import ImagePreprocessing, Medium, Preprocessing, SoundPreprocessing

Shape = tuple[int, int, int]


class BackboneNetwork(nn.Module, ABC):
    """Network that maps items [b, channels, height, width] to maps [b, d, h, w] and vectors [b, dim].

    input_shape: channels, height and width of an item
    map_shape: channels, height and width of its last map
    dim: length of its vector
    steps_together: whether a GPU takes the gradient steps of several tasks at once with `vmap`, in bfloat16. PyTorch
        cannot differentiate residual networks this way: they take their steps task by task, and in float32 if the
        steps themselves are differentiated
    """

    input_shape: Shape
    map_shape: Shape
    dim: int
    steps_together: bool = False

    @abstractmethod
    def stages(self, items: Tensor) -> list[Tensor]:
        """Compute the map after each stage; the last one is `maps`."""

    def maps(self, items: Tensor) -> Tensor:
        """Compute the last map, [b, d, h, w]."""
        return self.stages(items)[-1]

    def pool(self, maps: Tensor) -> Tensor:
        """Pool maps to vectors, [b, dim]: the mean over locations, unless the backbone overrides it."""
        return maps.mean(dim=(2, 3))

    def vectors(self, items: Tensor) -> Tensor:
        """Compute the vector of each item, [b, dim]."""
        return self.pool(self.maps(items))

    def forward(self, items: Tensor) -> Tensor:
        """Compute the vectors."""
        return self.vectors(items)

    def settle(self, input_shape: Shape) -> None:
        """Set the shapes that result from this input shape, using meta tensors only."""
        self.input_shape = input_shape
        meta_tensors = {name: tensor.to("meta") for name, tensor in (*self.named_parameters(), *self.named_buffers())}
        training = self.training
        self.eval()
        weights = {f"backbone.{name}": tensor for name, tensor in meta_tensors.items()}
        maps, vectors = functional_call(_MapsAndVectors(self), weights, torch.empty(1, *input_shape, device="meta"))
        channels, height, width = maps.shape[1:]
        if not height or not width:
            raise InputError(f"items of {input_shape[1]} x {input_shape[2]} are too small for this backbone")
        self.map_shape = (channels, height, width)
        self.dim = vectors.shape[1]
        self.train(training)


def outputs_of(modules: Iterable[nn.Module], maps: Tensor) -> list[Tensor]:
    """Chain the modules and return the output of each; the first one sees `maps`."""
    return [maps := module(maps) for module in modules]


class _MapsAndVectors(nn.Module):
    """Wrapper that returns maps and vectors, because `functional_call` calls only `forward`."""

    def __init__(self, backbone: BackboneNetwork) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, items: Tensor) -> tuple[Tensor, Tensor]:
        return self.backbone.maps(items), self.backbone.vectors(items)


class Backbone(Component, ABC):
    """Options that decide which network is built; subclasses are frozen dataclasses.

    pretrained: its weights come from elsewhere, so it has its own preprocessing and takes only images
    pretrained_on: name of the class list these weights were trained on (`imagenet`), if known
    """

    kind: ClassVar[str] = "backbone"
    pretrained: ClassVar[bool] = False
    pretrained_on: ClassVar[str | None] = None

    @abstractmethod
    def network(self, channels: int) -> BackboneNetwork:
        """Build the network for this many input channels, with weights drawn from PyTorch's global generator."""

    def architecture(self, network: BackboneNetwork) -> Mapping[str, Any]:
        """Return plain values from which `blank` rebuilds the network, if the options do not suffice."""
        return {}

    def blank(self, channels: int, architecture: Mapping[str, Any]) -> BackboneNetwork:
        """Build the network without its original weights; a model file replaces them."""
        return self.network(channels)

    def build(self, shape: Shape, architecture: Mapping[str, Any] | None = None) -> BackboneNetwork:
        """Build the network for items of this shape (channels, height, width) and infer its output shapes.

        Args:
            shape: shape of an item
            architecture: values from a model file, if the weights will be loaded from that file

        Raises:
            InputError: the network cannot take such items.

        Example:
            >>> from shotproof.models.backbone import backbones
            >>> backbones.make("conv64f").build((3, 84, 84)).map_shape
            (64, 5, 5)
        """
        if self.pretrained and shape[0] != 3:
            raise InputError(f"backbone '{self.name}' needs images with 3 channels, found {shape[0]}")
        try:
            network = self.network(shape[0]) if architecture is None else self.blank(shape[0], architecture)
            network.settle(shape)
        except InputError:
            raise
        except (RuntimeError, ValueError) as error:  # empty pooling windows, position embeddings of another size
            if is_out_of_memory(error):
                raise
            raise InputError(f"backbone '{self.name}' cannot take items of {shape[1]} x {shape[2]}: {error}") from error
        return network

    def require_images(self, medium: Medium) -> None:
        """Raise InputError unless the items are images; pretrained backbones call it in `preprocessing`."""
        if medium != "image":
            raise InputError(f"backbone '{self.name}' needs images, but the items are {medium}s")

    def preprocessing(self, medium: Medium, size: int | None = None, seconds: float | None = None) -> Preprocessing:
        """Return the preprocessing for images of `size` pixels a side, or sounds of this many seconds."""
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
