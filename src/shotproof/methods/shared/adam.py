"""Adam on parameters with a leading axis of tasks: as many independent optimizers, in place."""

from __future__ import annotations

import math

import torch
from torch import Tensor

FIRST, SECOND, EPSILON = 0.9, 0.999, 1e-8  # torch's defaults


class Adam:
    """Adam (Kingma and Ba 2015) for one tensor, without autograd; with a decay of the weights, AdamW."""

    def __init__(self, parameter: Tensor, rate: float, *, decay: float = 0.0, epsilon: float = EPSILON) -> None:
        self._parameter, self._rate, self._steps = parameter, rate, 0
        self._decay, self._epsilon = decay, epsilon
        self._mean, self._square = torch.zeros_like(parameter), torch.zeros_like(parameter)

    def step(self, gradient: Tensor, rate: float | None = None) -> None:
        """Move the parameter against its gradient, at another rate where one is given."""
        rate = self._rate if rate is None else rate
        self._steps += 1
        if self._decay:
            self._parameter.mul_(1 - rate * self._decay)
        root = math.sqrt(1 - SECOND**self._steps)
        self._mean.lerp_(gradient, 1 - FIRST)
        self._square.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        size = rate * root / (1 - FIRST**self._steps)
        self._parameter.addcdiv_(self._mean, self._square.sqrt().add_(self._epsilon * root), value=-size)


def cosine_rate(rate: float, step: int, steps: int) -> float:
    """The rate of a step that falls along a cosine from `rate` to 0."""
    return rate * (1 + math.cos(math.pi * step / steps)) / 2
