"""Greedy search for a difficult support set (Agarwal et al., *On Sensitivity of Meta-Learning to Support Data*)."""

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
from shotproof.tasks.support_search import cross_entropy_of_column, highest
from shotproof.tasks.swaps import swap_rounds
from shotproof.tasks.taskset import TaskSet

_START = 17  # what random numbers are drawn for


class GreedySampler(SupportSampler):
    """From a random support, one item after the other is replaced by the one that raises the queries' loss most."""

    about: ClassVar[str] = "hard or easy supports for given queries, by exhaustive swaps one after the other"

    def __init__(
        self,
        catalog: Catalog,
        design: Design,
        seed: int,
        *,
        features: Features,
        like: TaskSet | None = None,
        mode: str = "hard",
        rounds: int = 2,
        scale: float = 1.0,
        normalise: bool = False,
        skip_small_classes: bool = False,
        device: str | None = None,
    ) -> None:
        super().__init__(catalog, design, seed, features, like, mode, normalise, skip_small_classes, device)
        require_positive("rounds", rounds, int)
        require_positive("scale", scale, float)
        self.rounds, self.scale = rounds, float(scale)

    def choose(self, candidates: Candidates, numbers: IntArray) -> Tensor:
        """The supports after the last round."""
        allowed = candidates.allowed
        keys = self.uniform(numbers, _START, candidates.way, allowed.shape[-1]).to(allowed.device)
        start = highest(keys, allowed, candidates.shots)
        scale = candidates.features.new_full((len(numbers),), self.scale)
        return swap_rounds(candidates, start, scale, cross_entropy_of_column, self.sign, self.rounds)

    def floats_a_candidate(self, queries: int) -> int:
        """The logits of each query, for all classes and a few times for one."""
        return 8 + 2 * queries

    def parameters(self) -> Meta:
        """All that decides the swaps."""
        return {**super().parameters(), "rounds": self.rounds, "scale": self.scale}
