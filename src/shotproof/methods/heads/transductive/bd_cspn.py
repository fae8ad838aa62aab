"""BD-CSPN: prototypes rectified by the queries that look like them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.gram import inverse_root, mean_weights, members
from shotproof.methods.shared.pairwise import PairwiseMethod, normalized
from shotproof.methods.shared.shifted import ShiftedRows

FORMS = {"easyfsl": 1.0, "laplacianshot": 10.0, "soft": 30.0}  # and the temperature of each


@dataclass(frozen=True)
class BdCspn(PairwiseMethod):
    """Prototypes are averaged anew over the support and the queries, these shifted so that both have one mean.

    The paper has no code of its own, and three published forms differ. All take rows of length 1; z is a row (a query
    shifted), P a class's mean support row.

    - `easyfsl`: a query votes for its nearest P by cosine, a support row for its class; a class's voters are averaged
      with weights exp(temperature cos(z, P)). Score: the cosine with the query as it was.
    - `laplacianshot`: every row, support too, votes for its nearest P; the prototype is the mean of the voters times
      softmax(temperature cos), so it is shorter than they are. Score: minus the squared distance of the shifted query.
    - `soft`: each z, scaled to length 1, is shared out by softmax(temperature cos). Score: minus the squared distance
      between the query as it was and the weighted mean, scaled to length 1.

    The temperature is 1, 10 and 30 unless given. A class that gets no weight keeps P.
    """

    about = "prototypes rectified by pseudo-labeled queries"
    paper = "Liu, Song, Qin, Prototype Rectification for Few-Shot Learning, ECCV 2020"
    example = "bd-cspn(form='soft')"

    form: Literal["easyfsl", "laplacianshot", "soft"] = option("easyfsl", "which of the published forms")
    temperature: float | None = option(None, "factor of the cosines; None: 1, 10 or 30 by form", above=0)

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Rectify, then compare."""
        temperature = self.temperature or FORMS[self.form]
        rows = ShiftedRows(cosines, labels, way)
        if self.form == "laplacianshot":
            return -voted_distances(rows, labels, way, temperature).mT
        if self.form == "easyfsl":
            votes = _votes(rows.cosines)
            votes[..., : labels.shape[1]] = members(labels, way)
            weights = votes * (temperature * rows.cosines).exp()
        else:
            weights = (temperature * rows.cosines).softmax(1) * inverse_root(rows.squares, 1.0)
        products_with_x, _, squares = rows.products_with_sums(normalized(weights))
        cosines = (products_with_x * inverse_root(squares, 1.0))[..., labels.shape[1] :].mT
        return cosines if self.form == "easyfsl" else 2 * cosines - 2


def voted_distances(rows: ShiftedRows, labels: Tensor, way: int, temperature: float) -> Tensor:
    """Form `laplacianshot`: squared distances of the shifted queries to the rectified prototypes, [B, way, m]."""
    votes = _votes(rows.cosines)
    voters = votes.sum(2, keepdim=True)
    weights = votes * (temperature * rows.cosines).softmax(1) / voters.clamp_min(1)
    weights = torch.where(voters > 0, weights, mean_weights(labels, way, votes.shape[2]))
    _, products_with_z, squares = rows.products_with_sums(weights)
    distances = (rows.squares - 2 * products_with_z + squares)[..., labels.shape[1] :]
    return distances.clamp_min_(0)


def _votes(cosines: Tensor) -> Tensor:
    """1 for each row's nearest class, and for each of those that tie: [B, way, rows]."""
    return (cosines == cosines.amax(1, keepdim=True)).double()
