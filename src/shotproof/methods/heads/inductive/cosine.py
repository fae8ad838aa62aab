"""Nearest class centroid, by cosine similarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.centroid import CentroidMethod, mean_of_unit_rows
from shotproof.methods.shared.gram import inverse_root, mean_weights


@dataclass(frozen=True)
class CosineCentroid(CentroidMethod):
    """Score: the cosine between the query and the class's centroid; 0 where either is zero.

    The centroid is the mean of the support rows scaled to length 1 (`rows="unit"`), or of the rows as they are
    (`rows="raw"`, as in Meta-Baseline): the two differ where the rows' lengths do.
    """

    about = "nearest class centroid, cosine"
    paper = "Chen, Liu, Xu, Darrell and Wang, Meta-Baseline, 2021"
    example = "cosine(rows='raw')"

    rows: Literal["unit", "raw"] = option("unit", "average support rows scaled to length 1, or as they are")

    def weights(self, support_norm2: Tensor, labels: Tensor, way: int) -> Tensor:
        """Those of the mean of rows of length 1, or of the rows as they are."""
        return mean_of_unit_rows(support_norm2, labels, way) if self.rows == "unit" else mean_weights(labels, way)

    def scores_from_centroids(
        self, products: Tensor, centroid_norm2: Tensor, query_norm2: Tensor, support_norm2: Tensor
    ) -> Tensor:
        """x.p / |x||p| for query x and centroid p."""
        # Rows that cancel leave a centroid of rounding error, which has no direction.
        largest = 1.0 if self.rows == "unit" else support_norm2.amax(1)[:, None, None]
        return products * inverse_root(query_norm2) * inverse_root(centroid_norm2, largest)

    def rounding(self, lengths: Tensor, centroid_norm2: Tensor, query_norm2: Tensor) -> Tensor:
        """That of x.p and that of |p|, beside what is left of p where rows cancel."""
        return 2 * lengths.square() / centroid_norm2
