"""Backbone with the learned head of an objective, and initialization from another model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from shotproof.core.errors import InputError
from shotproof.models.backbone import BackboneNetwork

if TYPE_CHECKING:
    from shotproof.models.model import Model

Needs = Literal["vectors", "maps", "items"]  # the head's input
TEACHER = "head.teacher."  # frozen teacher network: stored in no file
MOMENTUM = "head.momentum."  # momentum encoder: stored in checkpoints, not in models
IN_TRAINING_ONLY = (TEACHER, MOMENTUM)


class FewShotNetwork(nn.Module):
    """Network of a `backbone` and a `head`, the learned parameters of an objective (an empty module if it has none).

    On a GPU the backbone computes in bfloat16; its output is float32.
    """

    head: Any  # a module whose parts are defined by the objective

    def __init__(self, backbone: BackboneNetwork, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self._compiles = False
        self._compiled: dict[str, Callable[..., Any]] = {}

    def compile_training(self) -> None:
        """Compile functions when they are first used in training mode; evaluation is not compiled."""
        self._compiles = True

    def compiled(self, name: str, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """Return the compiled function in training mode if compilation is enabled, else the function itself.

        Only the first function of each name is compiled: functions of the same name must be equivalent.
        """
        if not (self._compiles and self.training):
            return function
        if name not in self._compiled:
            self._compiled[name] = torch.compile(function, **options)
        return self._compiled[name]

    def forward(self, items: Tensor, needs: Needs = "vectors") -> Tensor:
        """Compute the head's input from items [..., channels, height, width]: vectors [..., dim], maps, or the items.

        All leading axes become one batch, so tasks [B, n, ...] are one call.
        """
        if needs == "items":
            return items
        leading, batch = items.shape[:-3], items.flatten(0, -4)
        if batch.is_cuda:
            batch = batch.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16, enabled=batch.is_cuda):
            # Use CUDA graphs: otherwise small batches spend their time on kernel launches.
            compute = self.compiled(needs, getattr(self.backbone, needs), mode="reduce-overhead")
            output: Tensor = compute(batch)
        return output.float().reshape(*leading, *output.shape[1:])


def take_weights(net: FewShotNetwork, start: Model) -> None:
    """Initialize a network from another model: its backbone's weights, and its head's if all of them fit.

    Raises:
        InputError: the backbones differ.
    """
    expected = {name: tensor for name, tensor in net.state_dict().items() if not name.startswith(IN_TRAINING_ONLY)}
    weights = start.weights
    for name in {name for name in (*expected, *weights) if name.startswith("backbone.")}:
        if name not in expected or name not in weights or expected[name].shape != weights[name].shape:
            raise InputError(
                f"training cannot start from model '{start.name}': its backbone {start.record.backbone} is a "
                "different network"
            )
    backbone_weights = {name: tensor for name, tensor in weights.items() if name.startswith("backbone.")}
    head_weights = {name: tensor for name, tensor in weights.items() if name.startswith("head.")}
    fits = head_weights.keys() == {name for name in expected if name.startswith("head.")} and all(
        tensor.shape == expected[name].shape for name, tensor in head_weights.items()
    )
    net.load_state_dict({**backbone_weights, **(head_weights if fits else {})}, strict=False)
