"""Heads on local maps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.errors import InputError
from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.distance_covariance import bdc_products
from shotproof.functional.feature_rows import class_means, mean_weights, unit
from shotproof.functional.gram import GramBlocks, unit_rows
from shotproof.functional.local_maps import (
    ClassDescriptors,
    descriptors,
    nearest_descriptor_scores,
    reconstruction_errors,
    rows_by_class,
    split_queries,
    sum_largest,
)
from shotproof.learners.bases import GramMethod, MapMethod
from shotproof.learners.heads.inductive.centroids import NearestCentroid

if TYPE_CHECKING:
    from torch import Tensor

PAPER = "Li et al., Revisiting Local Descriptor based Image-to-Class Measure for Few-shot Learning, 2019"
RIDGE = 0.01  # added to the diagonal of every covariance, as the published code does


@dataclass(frozen=True)
class Dn4(MapMethod):
    """Classify by the k largest cosines of each local descriptor to the class's descriptors, summed over locations.

    If the smallest class of a task has fewer than k descriptors, k is their number.
    """

    about = "DN4: nearest local descriptors, image to class"
    paper = PAPER
    example = "dn4(k=1)"

    k: int = option(3, "number of nearest descriptors of each class", least=1)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Sum the largest cosines between descriptors."""
        classes = ClassDescriptors.of(unit(descriptors(support)), labels, way)
        return nearest_descriptor_scores(classes, unit(descriptors(query)), self.k)


@dataclass(frozen=True)
class GlobalDn4(GramMethod):
    """Score: the sum of the k largest cosines to the class's support rows, k at most the shots of the smallest class.

    DN4's rule on one vector per item, as in SpurAudio's comparison of heads; with one shot, the nearest neighbor.
    """

    about = "DN4's rule on whole items: k largest cosines of each class"
    paper = PAPER
    example = "dn4-global(k=1)"

    k: int = option(3, "number of nearest support rows of each class", least=1)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """Group the cosines by class and sum the largest."""
        _, cosines = unit_rows(gram)
        index, present = rows_by_class(labels, way)
        columns = index.flatten(1).unsqueeze(1).expand(-1, cosines.shape[1], -1)
        by_class = cosines.gather(-1, columns).view(*cosines.shape[:2], *index.shape[1:])
        return sum_largest(by_class, present.unsqueeze(1), self.k)


@dataclass(frozen=True)
class FeatureMapReconstruction(MapMethod):
    """Score: minus gamma times the mean squared error of the query's descriptors, rebuilt by ridge regression.

    With the class's k r descriptors S of d channels, the penalty is k r / d e^alpha + 1e-6 and the reconstruction of q
    is e^beta q (S^T S + penalty I)^-1 S^T S. alpha, beta and gamma are learned in the paper; the defaults are where
    training starts. `divide` divides all descriptors by sqrt(d) first, as the paper does for its ResNet.
    """

    about = "FRN: ridge reconstruction of the query's map from the class's maps"
    paper = "Wertheimer, Tang and Hariharan, Few-Shot Classification with Feature Map Reconstruction Networks, 2021"
    example = "frn(divide=False)"

    alpha: float = option(0.0, "logarithm of the penalty's factor", least=-700, most=700)
    beta: float = option(0.0, "logarithm of the reconstruction's factor", least=-300, most=300)
    gamma: float = option(1.0, "factor of the error", above=0)
    divide: bool = option(True, "divide descriptors by the root of their number of channels")

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute minus the reconstruction errors, in the dual."""
        scale = 1 / math.sqrt(support.shape[2]) if self.divide else 1.0
        classes = ClassDescriptors.of(descriptors(support) * scale, labels, way)
        query_descriptors = descriptors(query) * scale
        return -self.gamma * reconstruction_errors(
            classes, query_descriptors, math.exp(self.alpha), math.exp(self.beta)
        )


@dataclass(frozen=True)
class MutualCentralizedLearning(MapMethod):
    """Classify by the class's share of the Katz centrality of the support's locations.

    A class's map is the mean over its shots, location by location. A random walk goes from a query's location to the
    support's by the softmax of gamma times the cosines, returns by the softmax of gamma2 times the cosines over the
    query's locations, and stops with probability 1 - katz at each step.
    """

    about = "MCL: centrality in a random walk between local descriptors"
    paper = "Liu et al., Learning to Affiliate: Mutual Centralized Learning for Few-shot Classification, 2022"

    gamma: float = option(20.0, "sharpness of the walk to the support", above=0)
    gamma2: float = option(10.0, "sharpness of the walk back to the query", above=0)
    katz: float = option(0.5, "probability of continuing at each step, below 1", above=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.katz == 1:
            raise InputError("method 'mcl': katz: expected a number below 1, found 1.0")

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Solve a system of the size of the query's locations for each query; support nodes are eliminated."""
        nodes = unit(class_means(descriptors(support), labels, way)).flatten(1, 2)  # [B, way r, d]
        query_descriptors = unit(descriptors(query))
        locations = query_descriptors.shape[2]
        eye = torch.eye(locations, dtype=torch.float64, device=query.device)
        scores = []
        for chunk in split_queries(query_descriptors, numbers_per_query=4 * locations * nodes.shape[1]):
            cosines = (chunk.flatten(1, 2) @ nodes.mT).view(*chunk.shape[:3], -1)
            to_support, to_query = (self.gamma * cosines).softmax(-1), (self.gamma2 * cosines).softmax(-2)
            system = eye - self.katz**2 * to_query @ to_support.mT
            visits = torch.linalg.solve(system, 1 + self.katz * to_query.sum(-1))
            centrality = (visits.unsqueeze(-2) @ to_support).view(*chunk.shape[:2], way, locations).sum(-1)
            scores.append(centrality / centrality.sum(-1, keepdim=True))
        return torch.cat(scores, 1)


@dataclass(frozen=True)
class AsymmetricDistribution(MapMethod):
    """Score: minus the Kullback-Leibler divergence from the query's Gaussian to the class's.

    ADM-KL. The Gaussians are those of the local descriptors, covariances divided by their number less one, plus 0.01 I.
    (ADM itself adds DN4's score by weights that are learned.) Covariances of d channels have the rank of their few
    descriptors, so that only products between descriptors are formed, never a d x d matrix.
    """

    about = "ADM-KL: divergence between Gaussians of local descriptors"
    paper = "Li et al., Asymmetric Distribution Measure for Few-shot Learning, 2020"

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute minus the divergence, with inverse and determinant by Woodbury's identity from one factor."""
        query_descriptors = descriptors(query)
        d, locations = query_descriptors.shape[-1], query_descriptors.shape[2]
        if locations < 2:
            raise InputError(f"method 'adm' needs maps of at least 2 locations, found {list(query.shape[2:])}")
        classes = ClassDescriptors.of(descriptors(support), labels, way)
        mean = classes.rows.sum(2) / classes.count.unsqueeze(-1)
        centered = (classes.rows - mean.unsqueeze(2)) * classes.present.unsqueeze(-1)
        # The covariance is (Z^T Z + shift I) / (count - 1), and its inverse (count - 1)(I - Z^T M^-1 Z) / shift.
        shift = RIDGE * (classes.count - 1)
        size = centered.shape[2]
        eye = torch.eye(size, dtype=torch.float64, device=support.device)
        factor = torch.linalg.cholesky(centered @ centered.mT + shift[..., None, None] * eye)
        inverse_factor = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
        trace = d - size + shift * inverse_factor.square().sum((2, 3))  # of RIDGE times the class's inverse covariance
        logdet = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) - size * shift.log()
        mean_products = (centered @ mean.unsqueeze(-1)).squeeze(-1)  # Z mean: [B, way, p]
        scores = []
        for chunk in split_queries(
            query_descriptors, numbers_per_query=3 * (locations + 1) * classes.present[0].numel()
        ):
            query_mean = chunk.mean(2)
            rows = chunk - query_mean.unsqueeze(2)
            to_mean = mean.unsqueeze(1) - query_mean.unsqueeze(2)  # [B, m, way, d]
            # Z times the query's centered descriptors and times the difference of the means, [B, way, p, m, r + 1].
            row_products = (centered @ rows.flatten(1, 2).mT.unsqueeze(1)).view(*centered.shape[:3], *rows.shape[1:3])
            difference_products = mean_products.unsqueeze(-1) - centered @ query_mean.mT.unsqueeze(1)
            products = torch.cat([row_products, difference_products.unsqueeze(-1)], -1)
            solved = torch.linalg.solve_triangular(factor, products.flatten(3), upper=False)
            explained = solved.square().sum(2).view(*products.shape[:2], *products.shape[3:]).transpose(1, 2)
            lengths = rows.square().sum(-1).unsqueeze(2)  # [B, m, 1, r]
            spread = (lengths - explained[..., :-1]).sum(-1) / (RIDGE * (locations - 1))
            mean_distance = (to_mean.square().sum(-1) - explained[..., -1]) / RIDGE
            query_logdet = _logdet(rows).unsqueeze(-1)
            scores.append(-(trace.unsqueeze(1) + spread + mean_distance + logdet.unsqueeze(1) - query_logdet - d) / 2)
        return torch.cat(scores, 1)


def _logdet(rows: Tensor) -> Tensor:
    """Compute the log-determinant of the covariance of centered rows [B, m, r, d], relative to RIDGE I: [B, m]."""
    gram = rows @ rows.mT / (RIDGE * (rows.shape[2] - 1))
    eye = torch.eye(rows.shape[2], dtype=rows.dtype, device=rows.device)
    factor: Tensor = torch.linalg.cholesky(gram + eye)
    return 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


@dataclass(frozen=True)
class DeepBdc(MapMethod):
    """Score: minus the squared distance from the query's BDC matrix to the class's mean one.

    With one shot per class it is their inner product. The BDC matrix is sqrt(e^t |F_i - F_j|^2 + 1e-5) over all pairs
    of channels, its rows' and columns' means removed; the upper triangle counts. t is learned in the paper; None is
    where training starts, log(1 / (2 locations)). The cost grows with the square of the channels: the transform
    `project` makes fewer of them, as the paper's trained layer does.
    """

    about = "DeepBDC: Brownian distance covariance of channels"
    paper = (
        "Xie et al., Joint Distribution Matters: Deep Brownian Distance Covariance for Few-Shot Classification, 2022"
    )

    t: float | None = option(None, "logarithm of the scale; None: the paper's initial value", least=-700, most=700)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Score as the nearest centroid, from the inner products of the matrices."""
        maps = torch.cat([support, query], 1).double().flatten(3)
        t = -math.log(2 * maps.shape[-1]) if self.t is None else self.t
        gram = bdc_products(maps, support.shape[1], math.exp(t))
        distance = NearestCentroid().scores_from_gram(gram, labels, way)
        products = gram.query @ mean_weights(labels, way).mT
        is_one_shot = torch.nn.functional.one_hot(labels, way).sum(1).amax(-1) == 1
        return torch.where(is_one_shot[:, None, None], products, distance)
