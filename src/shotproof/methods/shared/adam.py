"""Adam on parameters with a leading axis of tasks: as many independent optimizers, in place."""

from __future__ import annotations

import math

import torch
from torch import Tensor

FIRST, SECOND, EPSILON = 0.9, 0.999, 1e-8  # torch's defaults


class Adam:
    """Adam (Kingma and Ba 2015) for one tensor, without autograd."""

    def __init__(self, parameter: Tensor, rate: float) -> None:
        self._parameter, self._rate, self._steps = parameter, rate, 0
        self._mean, self._square = torch.zeros_like(parameter), torch.zeros_like(parameter)

    def step(self, gradient: Tensor) -> None:
        """Move the parameter against its gradient."""
        self._steps += 1
        root = math.sqrt(1 - SECOND**self._steps)
        self._mean.lerp_(gradient, 1 - FIRST)
        self._square.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        size = self._rate * root / (1 - FIRST**self._steps)
        self._parameter.addcdiv_(self._mean, self._square.sqrt().add_(EPSILON * root), value=-size)
