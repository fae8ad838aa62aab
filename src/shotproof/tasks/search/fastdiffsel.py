"""FastDiffSel: difficult supports for given queries, by one gradient step (Basu et al., *Hard-Meta-Dataset++*)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from shotproof.core.options import option
from shotproof.tasks.search.candidates import Candidates
from shotproof.tasks.search.closed_form import cross_entropy_gradient, highest, project_on_l1_ball
from shotproof.tasks.search.support_sampler import SupportSampler, Uniform

_WEIGHTS = 16  # purpose of random numbers


@dataclass(frozen=True)
class FastDiffSel(SupportSampler):
    """Algorithm 1: random weights, a gradient step that raises the queries' loss, projection, the highest weights."""

    about = "hard or easy supports for given queries, by a gradient step on weights (Hard-Meta-Dataset++)"
    paper = "Basu et al., Hard-Meta-Dataset++, ICLR 2023"
    example = "fastdiffsel(alpha=20000)"

    loss: Literal["sum", "mean"] = option("sum", "sum (Eq. 1) or mean of the queries' cross-entropy")
    alpha: float = option(200.0, "step size", above=0)
    steps: int = option(1, "gradient steps", least=1)
    scale: float = option(1.0, "factor of the logits", above=0)

    def choose(self, candidates: Candidates, uniform: Uniform) -> Tensor:
        """Choose the candidates with the highest weights after the last step."""
        allowed = candidates.allowed
        weights = uniform(_WEIGHTS) * allowed
        step_size = self.alpha / (candidates.labels.shape[1] if self.loss == "mean" else 1)
        for _ in range(self.steps):
            gradient = weight_gradient(candidates, weights, self.scale)
            stepped = weights + self.sign * step_size * gradient * allowed
            weights = project_on_l1_ball(stepped, candidates.shots)
        # The projection keeps the order but makes many weights zero, so select by the weights before it.
        return highest(stepped, allowed, candidates.shots)


def weight_gradient(candidates: Candidates, weights: Tensor, scale: float) -> Tensor:
    """Compute the gradient of the summed cross-entropy in the weights [S, P]: (f - c) . dL/dc over their sum."""

    def logit_gradient(logits: Tensor, labels: Tensor) -> Tensor:
        return scale * cross_entropy_gradient(scale * logits, labels)

    prototypes = candidates.prototypes(weights)
    gradient = candidates.gradient(prototypes, logit_gradient).flatten(0, 1)
    derivatives = candidates.products(gradient) - (prototypes.flatten(0, 1) * gradient).sum(-1, keepdim=True)
    return derivatives / weights.sum(-1, keepdim=True)
