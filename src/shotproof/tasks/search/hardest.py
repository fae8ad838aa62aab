"""Our own search for the most difficult support set: the candidates are pruned, round by round, by the closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.tasks.search.candidates import Candidates
from shotproof.tasks.search.closed_form import expected_error_of_column, expected_error_slopes, highest, margins
from shotproof.tasks.search.support_sampler import SupportSampler, Uniform
from shotproof.tasks.search.swaps import swap_rounds

# What each round leaves, as a power of (shots / candidates). A third round where it costs little beside greedy search.
TWO_ROUNDS, THREE_ROUNDS = (0.8, 1.0, 1.0), (0.6, 0.85, 1.0)
SHARPNESS = 2.0  # the root mean square margin to which logits are scaled where contributions are linearized
SWAP_SHARPNESS = 8.0  # swaps are exact, and so may aim at the errors themselves more sharply
SWAP_ROUNDS = 2


@dataclass(frozen=True)
class Hardest(SupportSampler):
    """Every round drops the candidates that contribute least to the expected error of the mean of those left.

    The logits' scale follows the margins of the task's queries, anew in every round: it fits features of any length,
    and grows as the margins shrink. With high effort, rounds of exact swaps follow.
    """

    about = "the hardest (or easiest) supports for given queries, by pruning: harder than greedy, ten times faster"
    example = "hardest(effort='high')"

    effort: Literal["low", "medium", "high"] = option(
        "medium",
        "how long to search: one round of pruning, two or three, or these and then exact swaps in about greedy's time",
    )

    def choose(self, candidates: Candidates, uniform: Uniform) -> Tensor:
        """The candidates that one to three rounds of pruning leave, swapped for better ones with high effort."""
        effort = self.effort
        left, shots = candidates.allowed, candidates.shots
        count = left.sum(-1)
        first = self.sign * first_contributions(candidates)
        if effort == "low":
            return highest(first, left, shots)
        more = third_round_is_cheap(count, shots, candidates.features.shape[-1])
        powers = torch.tensor([TWO_ROUNDS, THREE_ROUNDS], device=more.device)[more.long()]
        fewer = (count.unsqueeze(-1) * (shots / count).unsqueeze(-1) ** powers).round().long()
        left = highest(first, left, fewer[:, 0])
        for place in (1, 2) if bool(more.any()) else (1,):  # the third changes nothing where the second left the shots
            left = highest(self.sign * contributions(candidates, left), left, fewer[:, place])
        if effort == "high":
            logits = candidates.logits(candidates.prototypes(left.double()))
            scale = logit_scale(logits, candidates.labels, SWAP_SHARPNESS)
            left = swap_rounds(candidates, left, scale, expected_error_of_column, self.sign, SWAP_ROUNDS)
        return left

    def peak_floats_per_candidate(self, queries: int) -> int:
        """The logits of each query where candidates are swapped."""
        return 8 + 2 * queries * (self.effort == "high")


def third_round_is_cheap(count: Tensor, shots: Tensor, dimensions: int) -> Tensor:
    """Where greedy search, whose work grows with shots and candidates, takes ten times that of three rounds: [S].

    A round's work grows with the dimensions; the constants were measured. Each slot decides for itself, so that no
    task depends on others.
    """
    return shots * count >= 0.4 * (dimensions + 400)


def first_contributions(candidates: Candidates) -> Tensor:
    """How fast the expected error rises with the weight of each candidate [S, P] where all logits are level.

    Then prototypes have no say: candidates count by how much nearer they lie to the queries of all classes than to
    those of their own.
    """
    means = candidates.query_means()
    means -= means.mean(1, keepdim=True)
    return -candidates.products(means.flatten(0, 1))


def contributions(candidates: Candidates, left: Tensor) -> Tensor:
    """How fast the expected error rises with the weight of each candidate [S, P], all those left weighing the same."""

    def slopes(logits: Tensor, labels: Tensor) -> Tensor:
        scale = logit_scale(logits, labels, SHARPNESS).view(-1, 1, 1)
        return scale * expected_error_slopes(scale * logits, labels)

    return candidates.contributions(left, slopes)


def logit_scale(logits: Tensor, labels: Tensor, sharpness: float) -> Tensor:
    """What logits [B, R, W] must be multiplied with for a root mean square margin of `sharpness` in each task: [B]."""
    return sharpness / margins(logits, labels).square().mean(-1).sqrt().clamp(min=1e-300)
