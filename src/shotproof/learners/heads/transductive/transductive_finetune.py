"""Transductive fine-tuning of the head: a linear classifier from the support, made sure of the queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.feature_rows import mean_weights, members
from shotproof.learners.heads.inductive.gradient_descent import Adam
from shotproof.learners.method import Method

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TransductiveFinetune(Method):
    """Score: the logits w x + b on x = relu(features), scaled to length 1.

    w starts as the class means of relu(features), scaled to length 1, and b as 0. Each of `epochs` makes two steps of
    Adam: on the cross-entropy of the support, then on the mean entropy of the queries.

    The paper tunes the whole network and puts this head on the logits of the pretrained classifier; here the features
    stay as they are.
    """

    about = "linear head from the support, then entropy of the queries"
    paper = "Dhillon, Chaudhari, Ravichandran, Soatto, A Baseline for Few-Shot Image Classification, ICLR 2020"
    example = "transductive-finetune(epochs=50)"
    family = "transductive"

    epochs: int = option(25, "pairs of steps: on the support, then on the queries", least=0)
    rate: float = option(5e-5, "learning rate of Adam", above=0)

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The rows as they are and of length 1, in float32."""
        return (support + query) * dims

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The gradient in closed form; in float64 where the features are."""
        dtype = torch.float64 if support.dtype == torch.float64 else torch.float32
        known, asked = support.to(dtype).relu(), query.to(dtype).relu()
        weights = unit_(mean_weights(labels, way).to(dtype) @ known)
        known, asked = unit_(known), unit_(asked)
        bias = torch.zeros_like(weights[..., :1])
        target = members(labels, way).to(dtype)
        optimizers = Adam(weights, self.rate), Adam(bias, self.rate)

        def step(slope: Tensor, rows: Tensor) -> None:
            """Along the slope of the loss in the logits [B, way, rows]."""
            optimizers[0].step(slope @ rows)
            optimizers[1].step(slope.sum(2, keepdim=True))

        for _ in range(self.epochs):
            logits = torch.baddbmm(bias, weights, known.mT)
            step(logits.softmax(1).sub_(target).div_(target.shape[2]), known)
            log_p = torch.baddbmm(bias, weights, asked.mT).log_softmax(1)
            p = log_p.exp()
            surprise = (p * log_p).sum(1, keepdim=True)
            step(log_p.sub_(surprise).mul_(p).div_(-p.shape[2]), asked)
        return torch.baddbmm(bias, weights, asked.mT).mT


def unit_(rows: Tensor) -> Tensor:
    """Rows scaled to length 1, in place; a zero row stays zero."""
    return rows.div_(torch.linalg.vector_norm(rows, dim=-1, keepdim=True).clamp_min_(torch.finfo(rows.dtype).tiny))
