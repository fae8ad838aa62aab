"""A backbone together with what an objective has learned beside it."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from shotproof.models.backbone import BackboneNetwork

Needs = Literal["vectors", "maps", "items"]  # what a head sees of an item


class FewShotNetwork(nn.Module):
    """`backbone`, and `head`, the learned parameters of an objective (a module without any where it has none).

    On a GPU the backbone computes in bfloat16, and what it gives is float32.
    """

    head: Any  # a module, whose parts its objective knows

    def __init__(self, backbone: BackboneNetwork, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self._compiled: dict[str, Any] = {}

    def compile_training(self) -> None:
        """Have the backbone compiled when it first computes in training mode; evaluation stays as it is."""
        self._compiled = {name: torch.compile(getattr(self.backbone, name)) for name in ("maps", "vectors")}

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
            compute = self._compiled.get(needs) if self.training else None
            seen: Tensor = (compute or getattr(self.backbone, needs))(batch)
        return seen.float().reshape(*leading, *seen.shape[1:])
