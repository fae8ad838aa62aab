"""Greedy search for a difficult support set (Agarwal et al., *On Sensitivity of Meta-Learning to Support Data*)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.core.options import option
from shotproof.tasks.search.candidates import Candidates
from shotproof.tasks.search.closed_form import cross_entropy_of_column, highest
from shotproof.tasks.search.support_sampler import SupportSampler, Uniform
from shotproof.tasks.search.swaps import swap_rounds

_START = 17  # what random numbers are drawn for


@dataclass(frozen=True)
class Greedy(SupportSampler):
    """From a random support, one item after the other is replaced by the one that raises the queries' loss most."""

    about = "hard or easy supports for given queries, by exhaustive swaps one after the other"
    paper = "Agarwal et al., On Sensitivity of Meta-Learning to Support Data, NeurIPS 2021"
    example = "greedy(rounds=3)"

    rounds: int = option(2, "rounds over all support items", least=1)
    scale: float = option(1.0, "what the logits are multiplied with", above=0)

    def choose(self, candidates: Candidates, uniform: Uniform) -> Tensor:
        """The supports after the last round."""
        start = highest(uniform(_START), candidates.allowed, candidates.shots)
        scale = candidates.features.new_full((len(candidates.labels),), self.scale)
        return swap_rounds(candidates, start, scale, cross_entropy_of_column, self.sign, self.rounds)

    def peak_floats_per_candidate(self, queries: int) -> int:
        """The logits of each query, for all classes and a few times for one."""
        return 8 + 2 * queries
