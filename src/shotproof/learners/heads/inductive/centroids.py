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

    This is the classifier of prototypical networks.
    """

    about = "nearest class centroid, Euclidean"
    paper = "Snell, Swersky and Zemel, Prototypical Networks for Few-shot Learning, 2017"

    def weights(self, support_norm2: Tensor, labels: Tensor, way: int) -> Tensor:
        """Return the weights of the class mean."""
        return mean_weights(labels, way)

    def scores_from_centroids(
        self, products: Tensor, centroid_norm2: Tensor, query_norm2: Tensor, support_norm2: Tensor
    ) -> Tensor:
        """Compute -(|x|^2 - 2 x.p + |p|^2) for query x and centroid p."""
        norm2_sum = query_norm2 + centroid_norm2
        distance = torch.sub(norm2_sum, products, alpha=2)
        return torch.where(distance > NEGLIGIBLE * norm2_sum, distance, 0.0).neg_()

    def rounding(self, lengths: Tensor, centroid_norm2: Tensor, query_norm2: Tensor) -> Tensor:
        """Bound twice the error of x.p plus the error of |p|^2."""
        return (lengths + query_norm2.sqrt()).square_()


@dataclass(frozen=True)
class CosineCentroid(CentroidMethod):
    """Score: the cosine between the query and the class's centroid; 0 if either is zero.

    The centroid is the mean of the support rows scaled to length 1 (`rows="unit"`), or of the unscaled rows
    (`rows="raw"`, as in Meta-Baseline); the two differ if the rows have different lengths.
    """

    about = "nearest class centroid, cosine"
    paper = "Chen, Liu, Xu, Darrell and Wang, Meta-Baseline, 2021"
    example = "cosine(rows='raw')"

    rows: Literal["unit", "raw"] = option("unit", "average support rows scaled to length 1 (unit) or unscaled (raw)")

    def weights(self, support_norm2: Tensor, labels: Tensor, way: int) -> Tensor:
        """Return the weights of the mean of the rows, scaled to length 1 or unscaled."""
        return mean_of_unit_rows(support_norm2, labels, way) if self.rows == "unit" else mean_weights(labels, way)

    def scores_from_centroids(
        self, products: Tensor, centroid_norm2: Tensor, query_norm2: Tensor, support_norm2: Tensor
    ) -> Tensor:
        """Compute x.p / |x||p| for query x and centroid p."""
        # If rows cancel, the centroid is rounding error and has no direction.
        largest = 1.0 if self.rows == "unit" else support_norm2.amax(1)[:, None, None]
        return products * inverse_root(query_norm2) * inverse_root(centroid_norm2, largest)

    def rounding(self, lengths: Tensor, centroid_norm2: Tensor, query_norm2: Tensor) -> Tensor:
        """Bound the errors of x.p and |p| relative to |p|, which is small if rows cancel."""
        return 2 * lengths.square() / centroid_norm2


@dataclass(frozen=True)
class SimpleShot(NearestCentroid):
    """Score: minus the squared distance from the query, scaled to length 1, to the mean of such support rows.

    L2N scales rows to length 1, UN leaves them unscaled. CL2N, the paper's best, is L2N on features centered on a base
    set, with the transform `center`. The mean is not scaled to length 1 again, so with several shots this differs from
    `cosine`.
    """

    about = "SimpleShot: nearest centroid of rows of length 1; CL2N with the transform center"
    paper = "Wang et al., SimpleShot: Revisiting Nearest-Neighbor Classification for Few-Shot Learning, 2019"
    example = "simpleshot(form='UN')"

    form: Literal["UN", "L2N"] = option("L2N", "rows scaled to length 1 (L2N) or unscaled (UN)")

    def __post_init__(self) -> None:
        if str(self.form) == "CL2N":
            raise InputError(
                "method 'simpleshot': form: CL2N is L2N on centered features: use form='L2N' with the transform "
                "center(base='base.parquet')"
            )
        super().__post_init__()

    def weights(self, support_norm2: Tensor, labels: Tensor, way: int) -> Tensor:
        """Return the weights of the mean of the scaled rows."""
        if self.form == "UN":
            return super().weights(support_norm2, labels, way)
        return mean_of_unit_rows(support_norm2, labels, way)

    def scores_from_centroids(
        self, products: Tensor, centroid_norm2: Tensor, query_norm2: Tensor, support_norm2: Tensor
    ) -> Tensor:
        """Score the scaled query as the nearest centroid does."""
        if self.form == "L2N":
            products = products * inverse_root(query_norm2)
            query_norm2 = (query_norm2 > 0).to(query_norm2)
        return super().scores_from_centroids(products, centroid_norm2, query_norm2, support_norm2)

    def rounding(self, lengths: Tensor, centroid_norm2: Tensor, query_norm2: Tensor) -> Tensor:
        """Bound the error as the nearest centroid does, for the scaled query."""
        return super().rounding(lengths, centroid_norm2, query_norm2 if self.form == "UN" else query_norm2.new_ones(1))


@dataclass(frozen=True)
class DiffKendall(Method):
    """Score: Kendall's tau between the query and the class's mean support row, over all pairs of channels.

    `form='rank'` is the test head: the mean of sign(dx) sign(dp), where ties count 0. `form='smooth'` is the training
    head: the mean of 2 sigmoid(beta dx dp) - 1, divided by the temperature.
    """

    about = "DiffKendall: Kendall's rank correlation with the class centroid"
    paper = (
        "Zheng, Zhang and Yin, DiffKendall: A Novel Approach for Few-Shot Learning with Differentiable Kendall's Rank "
        "Correlation, 2023"
    )
    example = "diffkendall(form='smooth')"

    form: Literal["rank", "smooth"] = option("rank", "rank-based test head, or smooth training head")
    beta: float = option(1.0, "steepness of the smooth form", above=0)
    temperature: float = option(0.0125, "divisor of the smooth form's scores", above=0)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Sum over pairs of channels `lag` apart, one lag at a time, so that d^2 pairs are never in memory at once."""
        prototypes = class_means(support.double(), labels, way)
        rows = query if self.form == "rank" else query.double()  # signs of differences are exact in any precision
        d = rows.shape[-1]
        total = prototypes.new_zeros(*rows.shape[:2], way)
        for lag in range(1, d):
            query_differences, class_differences = (
                values[..., lag:] - values[..., :-lag] for values in (rows, prototypes)
            )
            if self.form == "rank":
                # Sums of signs are whole numbers, which float32 holds exactly.
                total += query_differences.sign().float() @ class_differences.sign().float().mT
            else:
                products = query_differences.unsqueeze(2) * class_differences.unsqueeze(1)
                total += (self.beta / 2 * products).tanh().sum(-1) / self.temperature
        return total / max(1, d * (d - 1) // 2)


@dataclass(frozen=True)
class HelaVfa(Method):
    """Score: minus |sqrt|f(x)| - sqrt|f(p)||^2 / sqrt 2, f(u) = mean + exp(-(u - mean)^2 / (2 std^2)) / sqrt(2 pi).

    As computed by the published code. Mean and standard deviation are taken over all queries of the task, and over all
    prototypes, so a query's score depends on the other queries.
    """

    about = "HELA-VFA's Hellinger distance, with statistics over all queries"
    paper = (
        "Lee et al., HELA-VFA: A Hellinger Distance-Attention-based Feature Aggregation Network for Few-Shot "
        "Classification, 2024"
    )
    family = "transductive"

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Score with statistics that count each query per class and each prototype per query, as published."""
        prototypes, rows = class_means(support.double(), labels, way), query.double()
        degrees_of_freedom = max(1, rows.shape[1] * way * rows.shape[2] - 1)
        bells = _bell(rows, way / degrees_of_freedom), _bell(prototypes, rows.shape[1] / degrees_of_freedom)
        return -torch.cdist(*bells, compute_mode="donot_use_mm_for_euclid_dist").square() / math.sqrt(2)


def _bell(values: Tensor, weight: float) -> Tensor:
    """Compute sqrt|f| of values [B, r, d], with variance `weight` times the task's sum of squared deviations."""
    mean = values.mean((1, 2), keepdim=True)
    square = (values - mean).square()
    variance = weight * square.sum((1, 2), keepdim=True)
    # If all values are equal, they lie at the peak of the bell.
    curve = (-square / (2 * torch.where(variance > 0, variance, 1.0))).exp() / math.sqrt(2 * math.pi)
    return (mean + curve).abs().sqrt()
