"""The power transform, which makes skewed features more like Gaussians (Hu, Gripon and Pateux 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from shotproof.core.errors import InputError

Negatives = Literal["signed", "relu", "refuse"]
SHIFT = 1e-6


@dataclass(frozen=True)
class PowerTransform:
    """(x + 1e-6)^power, which is defined for x >= 0. What is below 0 (the paper's features never are):

    `signed`: mirrored, -(|x| + 1e-6)^power; `relu`: taken as 0; `refuse`: an error.
    """

    power: float
    negatives: Negatives = "signed"

    def __call__(self, values: Tensor) -> Tensor:
        """The transformed values, in a new tensor."""
        if self.negatives == "refuse" and bool((values < 0).any()):
            raise InputError("power transform: a feature is negative; choose negatives='signed' or negatives='relu'")
        if self.negatives == "relu":
            return values.clamp_min(0).add_(SHIFT).pow_(self.power)
        size = values.abs().add_(SHIFT).pow_(self.power)
        return torch.where(values < 0, -size, size)


def power_transform(power: float, negatives: Negatives) -> PowerTransform | None:
    """The transform of these options; a power of 1 is none."""
    return None if power == 1 else PowerTransform(power, negatives)
