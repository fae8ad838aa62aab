"""ADM's distribution measure: the divergence between the descriptors of a query and of a class."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.methods.shared.map_method import MapMethod
from shotproof.models.scoring.local_maps import ClassDescriptors, chunks, descriptors

RIDGE = 0.01  # added to the diagonal of every covariance, as the published code does


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
        """Woodbury's identity for the inverse of the class's covariance, and its determinant from the same factor."""
        asked = descriptors(query)
        d, locations = asked.shape[-1], asked.shape[2]
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
        half = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
        trace = d - size + shift * half.square().sum((2, 3))  # of RIDGE times the class's inverse covariance
        logdet = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) - size * shift.log()
        of_mean = (centered @ mean.unsqueeze(-1)).squeeze(-1)  # Z mean: [B, way, p]
        scores = []
        for part in chunks(asked, held=3 * (locations + 1) * classes.present[0].numel()):
            middle = part.mean(2)
            rows = part - middle.unsqueeze(2)
            to_mean = mean.unsqueeze(1) - middle.unsqueeze(2)  # [B, m, way, d]
            # Z times the query's centered descriptors and times the difference of the means, [B, way, p, m, r + 1].
            of_rows = (centered @ rows.flatten(1, 2).mT.unsqueeze(1)).view(*centered.shape[:3], *rows.shape[1:3])
            of_middle = of_mean.unsqueeze(-1) - centered @ middle.mT.unsqueeze(1)
            products = torch.cat([of_rows, of_middle.unsqueeze(-1)], -1)
            solved = torch.linalg.solve_triangular(factor, products.flatten(3), upper=False)
            explained = solved.square().sum(2).view(*products.shape[:2], *products.shape[3:]).transpose(1, 2)
            lengths = rows.square().sum(-1).unsqueeze(2)  # [B, m, 1, r]
            spread = (lengths - explained[..., :-1]).sum(-1) / (RIDGE * (locations - 1))
            distance = (to_mean.square().sum(-1) - explained[..., -1]) / RIDGE
            own = _logdet(rows).unsqueeze(-1)
            scores.append(-(trace.unsqueeze(1) + spread + distance + logdet.unsqueeze(1) - own - d) / 2)
        return torch.cat(scores, 1)


def _logdet(rows: Tensor) -> Tensor:
    """The log-determinant of the covariance of centered rows [B, m, r, d], over that of RIDGE I: [B, m]."""
    gram = rows @ rows.mT / (RIDGE * (rows.shape[2] - 1))
    eye = torch.eye(rows.shape[2], dtype=rows.dtype, device=rows.device)
    factor: Tensor = torch.linalg.cholesky(gram + eye)
    return 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
