"""Nearest class centroid, by cosine similarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from shotproof.errors import UnknownName
from shotproof.methods.gram import GramMethod, centroid_products, inverse_root, unit_rows

ROWS = ("unit", "raw")


@dataclass
class CosineCentroid(GramMethod):
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

    def scores_from_gram(
        self, support_gram: Tensor, query_gram: Tensor, query_norm2: Tensor, labels: Tensor, way: int
    ) -> Tensor:
        """x.p / |x||p| for query x and centroid p."""
        query_scale = inverse_root(query_norm2).unsqueeze(-1)
        if self.rows == "unit":
            support_gram, query_gram = unit_rows(support_gram, query_gram, query_norm2)
        else:
            query_gram = query_gram * query_scale
        products, norm2 = centroid_products(support_gram, query_gram, labels, way)
        # Rows that cancel leave a centroid of rounding error, which has no direction.
        largest = support_gram.diagonal(dim1=-2, dim2=-1).amax(-1, keepdim=True)
        return products * inverse_root(norm2, largest).unsqueeze(-2)
