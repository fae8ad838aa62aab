"""MCL: how central the class's locations are to a random walk between query and support."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.methods.shared.gram import centroids
from shotproof.methods.shared.map_method import MapMethod
from shotproof.models.scoring.local_maps import chunks, descriptors, unit


@dataclass(frozen=True)
class MutualCentralizedLearning(MapMethod):
    """Score: the class's share of the Katz centrality of the support's locations.

    A class's map is the mean over its shots, location by location. A walk goes from a query's location to the support's
    by the softmax of gamma times the cosines, back by that of gamma2 times the cosines over the query's locations, and
    is cut short with probability 1 - katz at each step.
    """

    about = "MCL: centrality in a random walk between local descriptors"
    paper = "Liu et al., Learning to Affiliate: Mutual Centralized Learning for Few-shot Classification, 2022"

    gamma: float = option(20.0, "sharpness of the walk to the support", above=0)
    gamma2: float = option(10.0, "sharpness of the walk back to the query", above=0)
    katz: float = option(0.5, "probability of going on at each step, below 1", above=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.katz == 1:
            raise InputError("method 'mcl': katz: expected a number below 1, found 1.0")

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """A system of the size of the query's locations for each query: the support's nodes are eliminated."""
        nodes = unit(centroids(descriptors(support), labels, way)).flatten(1, 2)  # [B, way r, d]
        asked = unit(descriptors(query))
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
