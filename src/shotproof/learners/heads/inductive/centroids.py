"""Heads that compare a query with each class's centroid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shotproof.core.errors import InputError
from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.feature_rows import NEGLIGIBLE, class_means, inverse_root, mean_weights
from shotproof.learners.bases import CentroidMethod, mean_of_unit_rows
from shotproof.learners.method import Method

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class NearestCentroid(CentroidMethod):
    """Score: minus the squared Euclidean distance from the query to the class's mean support row.

    As prototypical networks classify.
    """

    about = "nearest class centroid, Euclidean"
    paper = "Snell, Swersky and Zemel, Prototypical Networks for Few-shot Learning, 2017"

    def weights(self, support_norm2: Tensor, labels: Tensor, way: int) -> Tensor:
        """Those of the mean row."""
        return mean_weights(labels, way)

    def scores_from_centroids(
        self, products: Tensor, centroid_norm2: Tensor, query_norm2: Tensor, support_norm2: Tensor
    ) -> Tensor:
        """Minus |x|^2 - 2 x.p + |p|^2 for query x and centroid p."""
        lengths = query_norm2 + centroid_norm2
        distance = torch.sub(lengths, products, alpha=2)
        return torch.where(distance > NEGLIGIBLE * lengths, distance, 0.0).neg_()

    def rounding(self, lengths: Tensor, centroid_norm2: Tensor, query_norm2: Tensor) -> Tensor:
        """Twice that of x.p, and that of |p|^2."""
        return (lengths + query_norm2.sqrt()).square_()


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
        prototypes = class_means(support.double(), labels, way)
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


@dataclass(frozen=True)
class HelaVfa(Method):
    """Score: minus |sqrt|f(x)| - sqrt|f(p)||^2 / sqrt 2, f(u) = mean + exp(-(u - mean)^2 / (2 std^2)) / sqrt(2 pi).

    As the published code computes it. Mean and standard deviation are taken over all queries of the task, and over all
    prototypes: a query's score depends on the other queries.
    """

    about = "HELA-VFA's distance; its statistics are over all queries"
    paper = (
        "Lee et al., HELA-VFA: A Hellinger Distance-Attention-based Feature Aggregation Network for Few-Shot "
        "Classification, 2024"
    )
    family = "transductive"

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Statistics count each query once per class and each prototype once per query, as the published code does."""
        prototypes, rows = class_means(support.double(), labels, way), query.double()
        freedom = max(1, rows.shape[1] * way * rows.shape[2] - 1)
        bells = _bell(rows, way / freedom), _bell(prototypes, rows.shape[1] / freedom)
        return -torch.cdist(*bells, compute_mode="donot_use_mm_for_euclid_dist").square() / math.sqrt(2)


def _bell(values: Tensor, weight: float) -> Tensor:
    """sqrt|f| of values [B, r, d], with variance `weight` times the summed squares of the task."""
    mean = values.mean((1, 2), keepdim=True)
    square = (values - mean).square()
    variance = weight * square.sum((1, 2), keepdim=True)
    # Values that are all the same lie on the top of the bell.
    curve = (-square / (2 * torch.where(variance > 0, variance, 1.0))).exp() / math.sqrt(2 * math.pi)
    return (mean + curve).abs().sqrt()
