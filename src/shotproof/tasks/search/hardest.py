"""Our search for the most difficult supports: candidates are pruned round by round, by their effect on the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.tasks.search.candidates import Candidates
from shotproof.tasks.search.closed_form import expected_error_gradient, expected_error_of_column, highest, margins
from shotproof.tasks.search.support_sampler import SupportSampler, Uniform
from shotproof.tasks.search.swaps import swap_rounds

# Candidates left by each round, as a power of (shots / candidates). A third round if it is cheap beside greedy search.
TWO_ROUNDS, THREE_ROUNDS = (0.8, 1.0, 1.0), (0.6, 0.85, 1.0)
SHARPNESS = 2.0  # root mean square margin of the scaled logits for linearized contributions
SWAP_SHARPNESS = 8.0  # swaps are exact, so the loss can be closer to the error itself
SWAP_ROUNDS = 2


@dataclass(frozen=True)
class Hardest(SupportSampler):
    """Rounds of pruning: each drops the candidates that contribute least to the expected error of the remaining mean.

    Every round sets the logits' scale from the margins of the task's queries, so that it suits features of any length
    and grows as the margins shrink. With high effort, rounds of exact swaps follow.
    """

    about = "the hardest (or easiest) supports for given queries, by pruning: harder than greedy, ten times faster"
    example = "hardest(effort='high')"

    effort: Literal["low", "medium", "high"] = option(
        "medium",
        "how long to search: one round of pruning (low), two or three (medium), or also exact swaps, which take about "
        "as long as greedy (high)",
    )

    def choose(self, candidates: Candidates, uniform: Uniform) -> Tensor:
        """Choose the candidates that one to three rounds of pruning leave, improved by swaps with high effort."""
        effort = self.effort
        remaining, shots = candidates.allowed, candidates.shots
        count = remaining.sum(-1)
        first = self.sign * first_contributions(candidates)
        if effort == "low":
            return highest(first, remaining, shots)
        third_round = third_round_is_cheap(count, shots, candidates.features.shape[-1])
        powers = torch.tensor([TWO_ROUNDS, THREE_ROUNDS], device=third_round.device)[third_round.long()]
        counts = (count.unsqueeze(-1) * (shots / count).unsqueeze(-1) ** powers).round().long()
        remaining = highest(first, remaining, counts[:, 0])
        # The third round changes nothing in slots whose second round has left only the shots.
        for index in (1, 2) if bool(third_round.any()) else (1,):
            remaining = highest(self.sign * contributions(candidates, remaining), remaining, counts[:, index])
        if effort == "high":
            logits = candidates.logits(candidates.prototypes(remaining.double()))
            scale = logit_scale(logits, candidates.labels, SWAP_SHARPNESS)
            remaining = swap_rounds(candidates, remaining, scale, expected_error_of_column, self.sign, SWAP_ROUNDS)
        return remaining

    def peak_floats_per_candidate(self, queries: int) -> int:
        """Return the numbers that `choose` holds at once, including the logits of each query for swaps."""
        return 8 + 2 * queries * (self.effort == "high")


def third_round_is_cheap(count: Tensor, shots: Tensor, dimensions: int) -> Tensor:
    """Return for which slots greedy search takes at least ten times as long as three rounds: [S].

    The time of greedy search grows with shots and candidates, that of a round with the dimensions; the constants were
    measured. Each slot decides for itself, so that no task depends on others.
    """
    return shots * count >= 0.4 * (dimensions + 400)


def first_contributions(candidates: Candidates) -> Tensor:
    """Compute the derivative of the expected error in the weight of each candidate [S, P], if all logits are equal.

    It does not depend on prototypes, only on how much closer a candidate is to the queries of all classes than to
    those of its own class.
    """
    means = candidates.query_means()
    means -= means.mean(1, keepdim=True)
    return -candidates.products(means.flatten(0, 1))


def contributions(candidates: Candidates, remaining: Tensor) -> Tensor:
    """Compute the derivative of the expected error in the weight of each remaining candidate, at equal weights."""

    def logit_gradient(logits: Tensor, labels: Tensor) -> Tensor:
        scale = logit_scale(logits, labels, SHARPNESS).view(-1, 1, 1)
        return scale * expected_error_gradient(scale * logits, labels)

    return candidates.contributions(remaining, logit_gradient)


def logit_scale(logits: Tensor, labels: Tensor, sharpness: float) -> Tensor:
    """Compute the factor of the logits [B, R, W] that gives each task a root mean square margin of `sharpness`: [B]."""
    return sharpness / margins(logits, labels).square().mean(-1).sqrt().clamp(min=1e-300)
