"""A linear classifier trained by stochastic gradient descent on the support set: the head of Baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.sgd import Known, SgdMethod, drawn_weights, residual


@dataclass(frozen=True)
class LinearHead(SgdMethod):
    """Score: W x + b after 100 epochs of SGD on the cross-entropy, from a random start.

    `init='zero'` with `batch=None` draws nothing. Every gradient lies in the span of the support rows, so W is kept as
    `decay` W0 + A S, and a step costs the same in any number of dimensions.
    """

    about = "Baseline: a linear layer trained by SGD"
    paper = "Chen et al., A Closer Look at Few-shot Classification, 2019"
    example = "linear(init='zero', batch=None)"

    init: Literal["uniform", "normal", "zero"] = option("uniform", "how the starting weights are drawn")

    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """The bias is the weight of a constant feature of 1: it decays, too."""
        rows, asked = (torch.nn.functional.pad(values.double(), (0, 1), value=1.0) for values in (support, query))
        start = self._start(rows, way, seeds)
        known = Known.of(rows, labels, start)
        weights = torch.zeros_like(known.at_start)  # A: [B, way, n]
        decay = rows.new_ones(1)
        self.train([weights, decay], known, seeds)
        return (weights @ (rows @ asked.mT) + decay * (start @ asked.mT)).mT

    def gradients(self, parameters: Sequence[Tensor], known: Known, rows: slice) -> list[Tensor]:
        """Only the weights of the mini-batch's rows have one; `decay` is moved by the weight decay alone."""
        weights, decay = parameters
        logits = weights @ known.kernel[..., rows] + decay * known.at_start[..., rows]
        of_weights = torch.zeros_like(weights)
        of_weights[..., rows] = residual(logits, known.target[..., rows])
        return [of_weights, torch.zeros_like(decay)]

    def _start(self, rows: Tensor, way: int, seeds: Tensor) -> Tensor:
        """W0 and b0, [B, way, d + 1]; both are drawn by the number of features d, as torch does."""
        d = rows.shape[-1] - 1
        if self.init == "zero":
            return rows.new_zeros(len(rows), way, d + 1)
        scale = ((d + 1) / d) ** 0.5 if self.init == "uniform" else 1.0
        return drawn_weights(seeds, way, d + 1, self.init) * scale
