"""SimpleShot: the nearest class centroid of normalized features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.methods.heads.inductive.ncc import NearestCentroid
from shotproof.methods.shared.centroid import mean_of_unit_rows
from shotproof.methods.shared.gram import inverse_root


@dataclass(frozen=True)
class SimpleShot(NearestCentroid):
    """Score: minus the squared distance from the query, scaled to length 1, to the mean of such support rows.

    L2N scales rows to length 1, UN leaves them as they are. CL2N, the paper's best, is L2N on features that were
    centered on a base set: the transform `center`. The mean is not scaled to length 1 again, so that with several shots
    this differs from `cosine`.
    """

    about = "SimpleShot: nearest centroid of rows of length 1; CL2N with the transform center"
    paper = "Wang et al., SimpleShot: Revisiting Nearest-Neighbor Classification for Few-Shot Learning, 2019"
    example = "simpleshot(form='UN')"

    form: Literal["UN", "L2N"] = option("L2N", "rows scaled to length 1 (L2N) or as they are (UN)")

    def __post_init__(self) -> None:
        if str(self.form) == "CL2N":
            raise InputError(
                "method 'simpleshot': form: CL2N is L2N on centered features: give the transform "
                "center(base='base.parquet')"
            )
        super().__post_init__()

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
