"""Our own search for the most difficult support set: the candidates are pruned, round by round, by the closed form."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError
from shotproof.features.features import Features
from shotproof.methods.method import require_positive
from shotproof.tables import Meta
from shotproof.tasks.candidates import Candidates
from shotproof.tasks.pool import Design, IntArray
from shotproof.tasks.support_sampler import SupportSampler
from shotproof.tasks.support_search import (
    expected_error_of_column,
    expected_error_slopes,
    highest,
    margins,
)
from shotproof.tasks.swaps import swap_rounds
from shotproof.tasks.taskset import TaskSet


class HardestSampler(SupportSampler):
    """Every round drops the candidates that contribute least to the expected error of the mean of those left.

    The logits' scale is `sharpness` over the root mean square margin of the task's queries, anew in every round: it
    fits features of any length, and grows as the margins shrink. `swaps` rounds of exact swaps may follow.
    """

    about: ClassVar[str] = "the hardest (or easiest) supports for given queries, by pruning: harder than greedy, faster"

    def __init__(
        self,
        catalog: Catalog,
        design: Design,
        seed: int,
        *,
        features: Features,
        like: TaskSet | None = None,
        mode: str = "hard",
        rounds: int = 1,
        sharpness: float = 2.0,
        swaps: int = 0,
        normalise: bool = False,
        skip_small_classes: bool = False,
        device: str | None = None,
    ) -> None:
        super().__init__(catalog, design, seed, features, like, mode, normalise, skip_small_classes, device)
        require_positive("rounds", rounds, int)
        require_positive("sharpness", sharpness, float)
        if isinstance(swaps, bool) or not isinstance(swaps, int) or swaps < 0:
            raise InputError(f"swaps: expected a number of rounds, 0 or more, found {swaps!r}")
        self.rounds, self.sharpness, self.swaps = rounds, float(sharpness), swaps

    def choose(self, candidates: Candidates, numbers: IntArray) -> Tensor:
        """The candidates that are left after pruning, swapped for better ones if asked for."""
        left = candidates.allowed
        count = left.sum(-1)
        for done in range(1, self.rounds + 1):
            # Every round keeps the same share, and the last one leaves the shots.
            fewer = (count * (candidates.shots / count) ** (done / self.rounds)).round().long()
            left = highest(self.sign * contributions(candidates, left, self.sharpness), left, fewer)
        if self.swaps:
            # Swaps are exact, and so may aim at the errors themselves more sharply than a linearised loss.
            logits = candidates.logits(candidates.prototypes(left.double()))
            scale = logit_scale(logits, candidates.labels, 4 * self.sharpness)
            left = swap_rounds(candidates, left, scale, expected_error_of_column, self.sign, self.swaps)
        return left

    def floats_a_candidate(self, queries: int) -> int:
        """The logits of each query where candidates are swapped."""
        return 8 + 2 * queries * bool(self.swaps)

    def parameters(self) -> Meta:
        """All that decides the pruning and the swaps."""
        return {**super().parameters(), "rounds": self.rounds, "sharpness": self.sharpness, "swaps": self.swaps}


def contributions(candidates: Candidates, left: Tensor, sharpness: float) -> Tensor:
    """How fast the expected error rises with the weight of each candidate [S, P], all those left weighing the same.

    Up to a constant a slot, which the comparison within a slot does not see.
    """

    def slopes(logits: Tensor, labels: Tensor) -> Tensor:
        scale = logit_scale(logits, labels, sharpness).view(-1, 1, 1)
        return scale * expected_error_slopes(scale * logits, labels)

    prototypes = candidates.prototypes(left.double())
    return candidates.products(candidates.gradient(prototypes, slopes).flatten(0, 1))


def logit_scale(logits: Tensor, labels: Tensor, sharpness: float) -> Tensor:
    """What logits [B, R, W] must be multiplied with for a root mean square margin of `sharpness` in each task: [B]."""
    return sharpness / margins(logits, labels).square().mean(-1).sqrt().clamp(min=1e-300)
