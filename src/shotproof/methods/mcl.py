"""MCL: how central the class's locations are to a random walk between query and support."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.errors import InputError
from shotproof.methods.gram import centroids
from shotproof.methods.local_maps import MapMethod, chunks, descriptors, unit_descriptors
from shotproof.methods.method import require_positive


@dataclass
class MutualCentralizedLearning(MapMethod):
    """Score: the class's share of the Katz centrality of the support's locations.

    Liu et al., Learning to Affiliate: Mutual Centralized Learning for Few-shot Classification, 2022. A class's map is
    the mean over its shots, location by location. A walk goes from a query's location to the support's by the softmax
    of gamma times the cosines, back by that of gamma2 times the cosines over the query's locations, and is cut short
    with probability 1 - katz at each step.
    """

    gamma: float = 20.0
    gamma2: float = 10.0
    katz: float = 0.5

    about = "MCL: centrality in a random walk between local descriptors"

    def __post_init__(self) -> None:
        for option in ("gamma", "gamma2", "katz"):
            require_positive(option, getattr(self, option), float)
        if self.katz >= 1:
            raise InputError(f"katz: expected a number between 0 and 1, found {self.katz!r}")

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """A system of the size of the query's locations for each query: the support's nodes are eliminated."""
        nodes = unit_descriptors(centroids(descriptors(support), labels, way)).flatten(1, 2)  # [B, way r, d]
        asked = unit_descriptors(descriptors(query))
        locations = asked.shape[2]
        eye = torch.eye(locations, dtype=torch.float64, device=query.device)
        scores = []
        for part in chunks(asked, held=4 * locations * nodes.shape[1]):
            cosines = (part.flatten(1, 2) @ nodes.mT).view(*part.shape[:3], -1)
            to_support, to_query = (self.gamma * cosines).softmax(-1), (self.gamma2 * cosines).softmax(-2)
            system = eye - self.katz**2 * to_query @ to_support.mT
            visits = torch.linalg.solve(system, 1 + self.katz * to_query.sum(-1))
            central = (visits.unsqueeze(-2) @ to_support).view(*part.shape[:2], way, locations).sum(-1)
            scores.append(central / central.sum(-1, keepdim=True))
        return torch.cat(scores, 1)
