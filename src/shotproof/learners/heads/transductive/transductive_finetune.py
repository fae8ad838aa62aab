"""Transductive fine-tuning of the head: a linear classifier trained on the support and on the queries' entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.feature_rows import class_membership, mean_weights
from shotproof.learners.heads.inductive.gradient_descent import Adam
from shotproof.learners.method import Method

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TransductiveFinetune(Method):
    """Score: the logits w x + b on x = relu(features), scaled to length 1.

    w starts as the class means of relu(features), scaled to length 1, and b as 0. Each epoch takes two steps of Adam:
    on the cross-entropy of the support, then on the mean entropy of the queries.

    The paper fine-tunes the whole network and puts this head on the logits of the pretrained classifier; here the
    features are frozen.
    """

    about = "linear head trained on the support and on the entropy of the queries"
    paper = "Dhillon, Chaudhari, Ravichandran, Soatto, A Baseline for Few-Shot Image Classification, ICLR 2020"
    example = "transductive-finetune(epochs=50)"
    family = "transductive"

    epochs: int = option(25, "pairs of steps: on the support, then on the queries", least=0)
    rate: float = option(5e-5, "learning rate of Adam", above=0)

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """Count the rows, raw and scaled to length 1, in float32."""
        return (support + query) * dims

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Train with the closed-form gradient, in float64 if the features are float64, else in float32."""
        dtype = torch.float64 if support.dtype == torch.float64 else torch.float32
        support_rows, query_rows = support.to(dtype).relu(), query.to(dtype).relu()
        weights = scale_to_unit_(mean_weights(labels, way).to(dtype) @ support_rows)
        support_rows, query_rows = scale_to_unit_(support_rows), scale_to_unit_(query_rows)
        bias = torch.zeros_like(weights[..., :1])
        target = class_membership(labels, way).to(dtype)
        optimizers = Adam(weights, self.rate), Adam(bias, self.rate)

        def step(logit_gradient: Tensor, rows: Tensor) -> None:
            """Update weights and bias by the gradient with respect to the logits [B, way, rows]."""
            optimizers[0].step(logit_gradient @ rows)
            optimizers[1].step(logit_gradient.sum(2, keepdim=True))

        for _ in range(self.epochs):
            logits = torch.baddbmm(bias, weights, support_rows.mT)
            step(logits.softmax(1).sub_(target).div_(target.shape[2]), support_rows)
            log_p = torch.baddbmm(bias, weights, query_rows.mT).log_softmax(1)
            p = log_p.exp()
            negative_entropy = (p * log_p).sum(1, keepdim=True)
            step(log_p.sub_(negative_entropy).mul_(p).div_(-p.shape[2]), query_rows)
        return torch.baddbmm(bias, weights, query_rows.mT).mT


def scale_to_unit_(rows: Tensor) -> Tensor:
    """Scale rows to length 1 in place; a zero row stays zero."""
    return rows.div_(torch.linalg.vector_norm(rows, dim=-1, keepdim=True).clamp_min_(torch.finfo(rows.dtype).tiny))
