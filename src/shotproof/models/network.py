"""A backbone together with what an objective has learned beside it, and where its weights may start."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from shotproof.core.errors import InputError
from shotproof.models.backbone import BackboneNetwork

if TYPE_CHECKING:
    from shotproof.models.model import Model

Needs = Literal["vectors", "maps", "items"]  # what a head sees of an item
TEACHER = "head.teacher."  # a network that helps in training, and stays as it was: no file has it
MOMENTUM = "head.momentum."  # one that follows in training: checkpoints have it, models do not
IN_TRAINING_ONLY = (TEACHER, MOMENTUM)


class FewShotNetwork(nn.Module):
    """`backbone`, and `head`, the learned parameters of an objective (a module without any where it has none).

    On a GPU the backbone computes in bfloat16, and what it gives is float32.
    """

    head: Any  # a module, whose parts its objective knows

    def __init__(self, backbone: BackboneNetwork, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self._compiles = False
        self._compiled: dict[str, Callable[..., Any]] = {}

    def compile_training(self) -> None:
        """Have compiled what computes in training mode, when it first does; evaluation stays as it is."""
        self._compiles = True

    def compiled(self, name: str, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """A function of the network in compiled form where training is compiled and goes on, else the function itself.

        Of all functions that are given by the same name, the first is compiled, so let them be the same.
        """
        if not (self._compiles and self.training):
            return function
        if name not in self._compiled:
            self._compiled[name] = torch.compile(function, **options)
        return self._compiled[name]

    def forward(self, items: Tensor, needs: Needs = "vectors") -> Tensor:
        """What a head sees of items [..., channels, height, width]: vectors [..., dim], maps, or the items themselves.

        All leading axes become one batch, so that tasks [B, n, ...] are one call.
        """
        if needs == "items":
            return items
        leading, batch = items.shape[:-3], items.flatten(0, -4)
        if batch.is_cuda:
            batch = batch.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16, enabled=batch.is_cuda):
            # As one graph of the GPU's, which small batches would otherwise wait for the launches of.
            compute = self.compiled(needs, getattr(self.backbone, needs), mode="reduce-overhead")
            seen: Tensor = compute(batch)
        return seen.float().reshape(*leading, *seen.shape[1:])


def take_weights(net: FewShotNetwork, start: Model) -> None:
    """Start from another model: its backbone's weights, and its head's where all of them fit.

    Raises:
        InputError: the backbone is another one.
    """
    own = {name: each for name, each in net.state_dict().items() if not name.startswith(IN_TRAINING_ONLY)}
    given = start.weights
    for name in {name for name in (*own, *given) if name.startswith("backbone.")}:
        if name not in own or name not in given or own[name].shape != given[name].shape:
            raise InputError(
                f"model '{start.name}' cannot be the start: its backbone is {start.record.backbone}, another network"
            )
    body = {name: each for name, each in given.items() if name.startswith("backbone.")}
    head = {name: each for name, each in given.items() if name.startswith("head.")}
    fits = head.keys() == {name for name in own if name.startswith("head.")} and all(
        each.shape == own[name].shape for name, each in head.items()
    )
    net.load_state_dict({**body, **(head if fits else {})}, strict=False)
