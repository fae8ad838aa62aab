"""FastDiffSel: a difficult support set for a query set by one gradient step (Basu et al., *Hard-Meta-Dataset++*)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from shotproof.core.options import option
from shotproof.tasks.search.candidates import Candidates
from shotproof.tasks.search.closed_form import cross_entropy_slopes, highest, project_on_l1_ball
from shotproof.tasks.search.support_sampler import SupportSampler, Uniform

_WEIGHTS = 16  # what random numbers are drawn for


@dataclass(frozen=True)
class FastDiffSel(SupportSampler):
    """Algorithm 1: random weights, a step up the gradient of the queries' loss, projection, the highest weights."""

    about = "hard or easy supports for given queries, by a gradient step on weights (Hard-Meta-Dataset++)"
    paper = "Basu et al., Hard-Meta-Dataset++, ICLR 2023"
    example = "fastdiffsel(alpha=20000)"

    loss: Literal["sum", "mean"] = option("sum", "of the queries' cross-entropy, their sum (Eq. 1) or their mean")
    alpha: float = option(200.0, "the length of a step", above=0)
    steps: int = option(1, "gradient steps", least=1)
    scale: float = option(1.0, "what the logits are multiplied with", above=0)

    def choose(self, candidates: Candidates, uniform: Uniform) -> Tensor:
        """The candidates with the highest weights after the last step."""
        allowed = candidates.allowed
        weights = uniform(_WEIGHTS) * allowed
        length = self.alpha / (candidates.labels.shape[1] if self.loss == "mean" else 1)
        for _ in range(self.steps):
            gradient = weight_gradient(candidates, weights, self.scale)
            stepped = weights + self.sign * length * gradient * allowed
            weights = project_on_l1_ball(stepped, candidates.shots)
        # The projection keeps the order, but makes many weights zero: these are told apart by what they were.
        return highest(stepped, allowed, candidates.shots)


def weight_gradient(candidates: Candidates, weights: Tensor, scale: float) -> Tensor:
    """The derivative of the queries' summed cross-entropy by the weights [S, P]: (f - c) . dL/dc over their sum."""

    def slopes(logits: Tensor, labels: Tensor) -> Tensor:
        return scale * cross_entropy_slopes(scale * logits, labels)

    prototypes = candidates.prototypes(weights)
    gradient = candidates.gradient(prototypes, slopes).flatten(0, 1)
    along = candidates.products(gradient) - (prototypes.flatten(0, 1) * gradient).sum(-1, keepdim=True)
    return along / weights.sum(-1, keepdim=True)
