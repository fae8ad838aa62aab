"""Greedy search for difficult supports (Agarwal et al., *On Sensitivity of Meta-Learning to Support Data*)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.core.options import option
from shotproof.tasks.search.candidates import Candidates
from shotproof.tasks.search.closed_form import cross_entropy_of_column, highest
from shotproof.tasks.search.support_sampler import SupportSampler, Uniform
from shotproof.tasks.search.swaps import swap_rounds

_START = 17  # purpose of random numbers


@dataclass(frozen=True)
class Greedy(SupportSampler):
    """A random support, whose items are replaced one after the other by the item that raises the queries' loss most."""

    about = "hard or easy supports for given queries, by exhaustive swaps one after the other"
    paper = "Agarwal et al., On Sensitivity of Meta-Learning to Support Data, NeurIPS 2021"
    example = "greedy(rounds=3)"

    rounds: int = option(2, "rounds over all support items", least=1)
    scale: float = option(1.0, "factor of the logits", above=0)

    def choose(self, candidates: Candidates, uniform: Uniform) -> Tensor:
        """Choose the supports by swaps from a random start."""
        start = highest(uniform(_START), candidates.allowed, candidates.shots)
        scale = candidates.features.new_full((len(candidates.labels),), self.scale)
        return swap_rounds(candidates, start, scale, cross_entropy_of_column, self.sign, self.rounds)

    def peak_floats_per_candidate(self, queries: int) -> int:
        """Return the numbers that `choose` holds at once, among them the logits of each query in several versions."""
        return 8 + 2 * queries
