"""Our own search for the most difficult support set: the candidates are pruned, round by round, by the closed form."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.core.arrays import IntArray
from shotproof.core.options import option
from shotproof.tasks.sampler import BoundSampler, SamplerInputs
from shotproof.tasks.search.candidates import Candidates
from shotproof.tasks.search.closed_form import expected_error_of_column, expected_error_slopes, highest, margins
from shotproof.tasks.search.support_sampler import BoundSupportSampler, SupportSampler
from shotproof.tasks.search.swaps import swap_rounds


@dataclass(frozen=True)
class Hardest(SupportSampler):
    """Every round drops the candidates that contribute least to the expected error of the mean of those left.

    The logits' scale is `sharpness` over the root mean square margin of the task's queries, anew in every round: it
    fits features of any length, and grows as the margins shrink. `swaps` rounds of exact swaps may follow.
    """

    about = "the hardest (or easiest) supports for given queries, by pruning: harder than greedy, faster"
    example = "hardest(rounds=2)"

    rounds: int = option(1, "rounds of pruning", least=1)
    sharpness: float = option(2.0, "the root mean square margin to which logits are scaled", above=0)
    swaps: int = option(0, "rounds of exact swaps after the pruning", least=0)

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Hardest]:
        """Supports for the queries of these inputs."""
        return BoundHardest(self, inputs)


class BoundHardest(BoundSupportSampler[Hardest]):
    """Searches by pruning."""

    def choose(self, candidates: Candidates, numbers: IntArray) -> Tensor:
        """The candidates that are left after pruning, swapped for better ones if asked for."""
        left = candidates.allowed
        count = left.sum(-1)
        for done in range(1, self.sampler.rounds + 1):
            # Every round keeps the same share, and the last one leaves the shots.
            fewer = (count * (candidates.shots / count) ** (done / self.sampler.rounds)).round().long()
            left = highest(self.sign * contributions(candidates, left, self.sampler.sharpness), left, fewer)
        if self.sampler.swaps:
            # Swaps are exact, and so may aim at the errors themselves more sharply than a linearized loss.
            logits = candidates.logits(candidates.prototypes(left.double()))
            scale = logit_scale(logits, candidates.labels, 4 * self.sampler.sharpness)
            left = swap_rounds(candidates, left, scale, expected_error_of_column, self.sign, self.sampler.swaps)
        return left

    def peak_floats_per_candidate(self, queries: int) -> int:
        """The logits of each query where candidates are swapped."""
        return 8 + 2 * queries * bool(self.sampler.swaps)


def contributions(candidates: Candidates, left: Tensor, sharpness: float) -> Tensor:
    """How fast the expected error rises with the weight of each candidate [S, P], all those left weighing the same.

    Up to a constant per slot, which the comparison within a slot does not see.
    """

    def slopes(logits: Tensor, labels: Tensor) -> Tensor:
        scale = logit_scale(logits, labels, sharpness).view(-1, 1, 1)
        return scale * expected_error_slopes(scale * logits, labels)

    prototypes = candidates.prototypes(left.double())
    return candidates.products(candidates.gradient(prototypes, slopes).flatten(0, 1))


def logit_scale(logits: Tensor, labels: Tensor, sharpness: float) -> Tensor:
    """What logits [B, R, W] must be multiplied with for a root mean square margin of `sharpness` in each task: [B]."""
    return sharpness / margins(logits, labels).square().mean(-1).sqrt().clamp(min=1e-300)
