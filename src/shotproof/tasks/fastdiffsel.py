"""FastDiffSel: a difficult support set for a query set by one gradient step (Basu et al., *Hard-Meta-Dataset++*)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from shotproof.catalog.catalog import Catalog
from shotproof.features.features import Features
from shotproof.methods.method import require_positive
from shotproof.tables import Meta
from shotproof.tasks.candidates import Candidates
from shotproof.tasks.pool import Design, IntArray
from shotproof.tasks.support_sampler import SupportSampler
from shotproof.tasks.support_search import cross_entropy_slopes, highest, project_on_l1_ball
from shotproof.tasks.taskset import TaskSet

_WEIGHTS = 16  # what random numbers are drawn for


class FastDiffSelSampler(SupportSampler):
    """Algorithm 1: random weights, a step up the gradient of the queries' loss, projection, the highest weights."""

    about: ClassVar[str] = (
        "hard or easy supports for given queries, by a gradient step on weights (Hard-Meta-Dataset++)"
    )

    def __init__(
        self,
        catalog: Catalog,
        design: Design,
        seed: int,
        *,
        features: Features,
        like: TaskSet | None = None,
        mode: str = "hard",
        alpha: float = 200.0,
        steps: int = 1,
        scale: float = 1.0,
        normalise: bool = False,
        skip_small_classes: bool = False,
        device: str | None = None,
    ) -> None:
        super().__init__(catalog, design, seed, features, like, mode, normalise, skip_small_classes, device)
        require_positive("alpha", alpha, float)
        require_positive("steps", steps, int)
        require_positive("scale", scale, float)
        self.alpha, self.steps, self.scale = float(alpha), steps, float(scale)

    def choose(self, candidates: Candidates, numbers: IntArray) -> Tensor:
        """The candidates with the highest weights after the last step."""
        allowed = candidates.allowed
        weights = self.uniform(numbers, _WEIGHTS, candidates.way, allowed.shape[-1]).to(allowed.device) * allowed
        for _ in range(self.steps):
            stepped = weights + self.sign * self.alpha * weight_gradient(candidates, weights, self.scale) * allowed
            weights = project_on_l1_ball(stepped, candidates.shots)
        # The projection keeps the order, but makes many weights zero: these are told apart by what they were.
        return highest(stepped, allowed, candidates.shots)

    def parameters(self) -> Meta:
        """All that decides the steps."""
        return {**super().parameters(), "alpha": self.alpha, "steps": self.steps, "scale": self.scale}


def weight_gradient(candidates: Candidates, weights: Tensor, scale: float) -> Tensor:
    """The derivative of the queries' mean cross-entropy by the weights [S, P]: (f - c) . dL/dc over their sum."""

    def slopes(logits: Tensor, labels: Tensor) -> Tensor:
        return scale * cross_entropy_slopes(scale * logits, labels)

    prototypes = candidates.prototypes(weights)
    gradient = candidates.gradient(prototypes, slopes).flatten(0, 1)
    along = candidates.products(gradient) - (prototypes.flatten(0, 1) * gradient).sum(-1, keepdim=True)
    return along / weights.sum(-1, keepdim=True)
