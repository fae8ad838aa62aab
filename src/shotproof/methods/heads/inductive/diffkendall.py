"""DiffKendall: the rank correlation between the channels of a query and of a prototype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.method import Method
from shotproof.methods.shared.gram import centroids


@dataclass(frozen=True)
class DiffKendall(Method):
    """Score: Kendall's tau between the query and the class's mean support row, over all pairs of channels.

    `form='rank'` is the test head: the mean of sign(dx) sign(dp), channels that tie count 0. `form='smooth'` is the
    training head: the mean of 2 sigmoid(beta dx dp) - 1, divided by the temperature.
    """

    about = "DiffKendall: Kendall's rank correlation with the class centroid"
    paper = (
        "Zheng, Zhang and Yin, DiffKendall: A Novel Approach for Few-Shot Learning with Differentiable Kendall's Rank "
        "Correlation, 2023"
    )
    example = "diffkendall(form='smooth')"

    form: Literal["rank", "smooth"] = option("rank", "the test head by ranks, or the smooth training head")
    beta: float = option(1.0, "steepness of the smooth form", above=0)
    temperature: float = option(0.0125, "divisor of the smooth form's scores", above=0)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Pairs of channels that are `lag` apart, one lag after the other: d^2 pairs are never held at once."""
        prototypes = centroids(support.double(), labels, way)
        rows = query if self.form == "rank" else query.double()  # the sign of a difference is exact in any precision
        d = rows.shape[-1]
        total = prototypes.new_zeros(*rows.shape[:2], way)
        for lag in range(1, d):
            of_query, of_class = (values[..., lag:] - values[..., :-lag] for values in (rows, prototypes))
            if self.form == "rank":
                # Sums of signs are whole numbers, which float32 holds exactly.
                total += of_query.sign().float() @ of_class.sign().float().mT
            else:
                products = of_query.unsqueeze(2) * of_class.unsqueeze(1)
                total += (self.beta / 2 * products).tanh().sum(-1) / self.temperature
        return total / max(1, d * (d - 1) // 2)
