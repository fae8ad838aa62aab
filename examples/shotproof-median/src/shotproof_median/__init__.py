"""Custom method in a package of its own: nearest class median."""

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof import Method
from shotproof.core.options import option


@dataclass(frozen=True)
class NearestMedian(Method):
    """Score: minus the distance (in the norm 1 or 2) from the query to the class's median support row."""

    about = "nearest class median, which one odd example does not move"
    example = "median(norm=2)"

    norm: int = option(1, "the norm of the distances", choices=(1, 2))

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute scores [B, m, way] from support [B, n, d] with labels [B, n] and query [B, m, d]."""
        of_class = [support.masked_fill((labels != c).unsqueeze(-1), torch.nan).nanmedian(1).values for c in range(way)]
        return -torch.cdist(query, torch.stack(of_class, 1), p=self.norm)
