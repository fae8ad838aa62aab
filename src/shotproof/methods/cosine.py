"""Nearest class centroid, by cosine similarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from shotproof.errors import UnknownName
from shotproof.methods.centroid import CentroidMethod, mean_of_unit_rows
from shotproof.methods.gram import inverse_root, mean_weights

ROWS = ("unit", "raw")


@dataclass
class CosineCentroid(CentroidMethod):
    """Score: the cosine between the query and the class's centroid; 0 where either is zero.

    The centroid is the mean of the support rows scaled to length 1 (`rows="unit"`), or of the rows as they are
    (`rows="raw"`, as in Chen, Liu, Xu, Darrell and Wang, Meta-Baseline, 2021): the two differ where the rows' lengths
    do.
    """

    rows: Literal["unit", "raw"] = "unit"

    about = "nearest class centroid, cosine"

    def __post_init__(self) -> None:
        if self.rows not in ROWS:
            raise UnknownName("value of rows", str(self.rows), ROWS)

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
