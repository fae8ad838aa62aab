"""SimpleShot: the nearest class centroid of normalised features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from shotproof.errors import InputError, UnknownName
from shotproof.methods.centroid import mean_of_unit_rows
from shotproof.methods.gram import inverse_root
from shotproof.methods.ncc import NearestCentroid

FORMS = ("UN", "L2N")


@dataclass
class SimpleShot(NearestCentroid):
    """Score: minus the squared distance from the query, scaled to length 1, to the mean of such support rows.

    Wang, Chao, Weinberger and van der Maaten, SimpleShot: Revisiting Nearest-Neighbor Classification for Few-Shot
    Learning, 2019. L2N scales rows to length 1, UN leaves them as they are. CL2N, the paper's best, is L2N on features
    that were centred on a base set: the transform `center`. The mean is not scaled to length 1 again, so that with
    several shots this differs from `cosine`.
    """

    form: Literal["UN", "L2N"] = "L2N"

    about = "SimpleShot: nearest centroid of rows of length 1; CL2N with the transform center"

    def __post_init__(self) -> None:
        if str(self.form) == "CL2N":
            raise InputError(
                "simpleshot: CL2N is L2N on centred features: give the transform center(base='base.parquet')"
            )
        if self.form not in FORMS:
            raise UnknownName("form of simpleshot", str(self.form), FORMS)

    def weights(self, support_norm2: Tensor, labels: Tensor, way: int) -> Tensor:
        """Those of the mean of the scaled rows."""
        if self.form == "UN":
            return super().weights(support_norm2, labels, way)
        return mean_of_unit_rows(support_norm2, labels, way)

    def scores_from_centroids(
        self, products: Tensor, centroid_norm2: Tensor, query_norm2: Tensor, support_norm2: Tensor
    ) -> Tensor:
        """As the nearest centroid, of the scaled query."""
        if self.form == "L2N":
            products = products * inverse_root(query_norm2)
            query_norm2 = (query_norm2 > 0).to(query_norm2)
        return super().scores_from_centroids(products, centroid_norm2, query_norm2, support_norm2)

    def rounding(self, lengths: Tensor, centroid_norm2: Tensor, query_norm2: Tensor) -> Tensor:
        """As the nearest centroid's, of the scaled query."""
        return super().rounding(lengths, centroid_norm2, query_norm2 if self.form == "UN" else query_norm2.new_ones(1))
