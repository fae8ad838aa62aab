"""Base classes of heads, by the view of the items they need: inner products, cosines, maps, texts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.errors import InputError
from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.feature_rows import Negatives, UnitRows, inverse_root, mean_weights, power_transform
from shotproof.functional.gram import GramBlocks, gram_blocks
from shotproof.learners.method import Method, TasksView

if TYPE_CHECKING:
    from torch import Tensor


class GramMethod(Method):
    """Method that uses only the inner products of its items."""

    @abstractmethod
    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """Compute the scores [B, m, way] from inner products and the support labels [B, n]."""

    def scores_of(self, tasks: TasksView) -> Tensor:
        """Score from inner products."""
        return self.scores_from_gram(tasks.products(), tasks.support_labels, tasks.way)

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """Count the Gram blocks and the `way` blocks of n x n that logistic regression holds."""
        return support * (4 * (support + query) + 6 * way * support)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Score from features, via their inner products."""
        rows = torch.cat([support.double(), query.double()], 1)
        return self.scores_from_gram(gram_blocks(rows, support.shape[1]), labels, way)


class CentroidMethod(GramMethod):
    """Method that uses only the inner products of its queries with the class centroids."""

    @abstractmethod
    def weights(self, support_norm2: Tensor, labels: Tensor, way: int) -> Tensor:
        """Return the weights [B, way, n] of support rows in each centroid, from |row|^2 and labels, both [B, n]."""

    @abstractmethod
    def scores_from_centroids(
        self, products: Tensor, centroid_norm2: Tensor, query_norm2: Tensor, support_norm2: Tensor
    ) -> Tensor:
        """Compute the scores with classes first, [B, way, m], in float64.

        Args:
            products: centroids times queries, [B, way, m]
            centroid_norm2: |centroid|^2, [B, way, 1]
            query_norm2: |query|^2, [B, 1, m]
            support_norm2: |support row|^2, [B, n]
        """

    @abstractmethod
    def rounding(self, lengths: Tensor, centroid_norm2: Tensor, query_norm2: Tensor) -> Tensor:
        """Bound the error of scores [B, way, m] if x.p has an error up to |x| `lengths` and |p|^2 up to `lengths`^2.

        `lengths` [B, way, 1] are the sums of the rows' lengths with the centroid's weights: at least |p|.
        """

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """Count the products of the support with all rows, and the arrays derived from the centroids."""
        return (support + query) * (2 * support + 4 * way)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Score from features, without computing the products between rows."""
        support, query = support.double(), query.double()
        support_norm2, query_norm2 = support.square().sum(2), query.square().sum(2).unsqueeze(1)
        centroids = self.weights(support_norm2, labels, way) @ support
        centroid_norm2 = centroids.square().sum(2, keepdim=True)
        return self.scores_from_centroids(centroids @ query.mT, centroid_norm2, query_norm2, support_norm2).mT

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """Score from the products between rows."""
        support_norm2 = gram.support.diagonal(dim1=-2, dim2=-1)
        weights = self.weights(support_norm2, labels, way)
        centroid_norm2 = (weights * (weights @ gram.support)).sum(2, keepdim=True)
        products = weights @ gram.query.mT
        return self.scores_from_centroids(products, centroid_norm2, gram.query_norm2.unsqueeze(1), support_norm2).mT


def mean_of_unit_rows(support_norm2: Tensor, labels: Tensor, way: int) -> Tensor:
    """Return weights [B, way, n] that sum to the class mean of rows scaled to length 1; a zero row stays zero."""
    return mean_weights(labels, way) * inverse_root(support_norm2).unsqueeze(1)


class PairwiseMethod(Method):
    """Transductive method that uses only the cosines between support and queries."""

    family = "transductive"

    @abstractmethod
    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Compute the scores [B, m, way] from float64 cosines [B, n + m, n + m], support first, and labels [B, n].

        The cosines are inner products of rows scaled by `scaling`, so those of a zero row are zero. Methods share them
        and must not change them in place. The seeds [B] are for methods that draw random numbers.
        """

    @property
    def scaling(self) -> UnitRows:
        """Return the scaling applied to the rows before the products."""
        return UnitRows()

    def scores_of(self, tasks: TasksView) -> Tensor:
        """Score from cosines and seeds."""
        return self.scores_from_cosines(tasks.cosines(self.scaling), tasks.support_labels, tasks.way, tasks.seeds)

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """Count the cosines and the copies that a step works on."""
        return 6 * (support + query + way) ** 2

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Score from features, with seed 0."""
        rows = self.scaling(torch.cat([support, query], 1))
        return self.scores_from_cosines(rows @ rows.mT, labels, way, labels.new_zeros(len(labels)))


@dataclass(frozen=True, kw_only=True)
class PoweredMethod(PairwiseMethod):
    """Pairwise method that applies a power transform first and may assume equally many queries per class."""

    power: float = option(0.5, "exponent of the power transform of the features; 1: none", above=0)
    negatives: Negatives = option(
        "signed", "features below 0: mirrored (signed), set to 0 (relu), or an error (refuse)"
    )
    balanced: bool = option(True, "assume that every class has equally many queries")

    @property
    def scaling(self) -> UnitRows:
        """Return the power transform, followed by scaling to length 1."""
        return UnitRows(power_transform(self.power, self.negatives))


class MapMethod(Method):
    """Method on local maps: support [B, n, d, h, w], query [B, m, d, h, w]. The order of locations does not matter.

    Everything is computed in float64, and queries in chunks, so that memory stays bounded for maps of any size.
    """

    needs = "maps"


class TextMethod(Method):
    """Method on features of a two-tower model, such as CLIP or CLAP, with text embeddings of the classes."""

    needs = "texts"

    @abstractmethod
    def scores_with_texts(self, support: Tensor, labels: Tensor, query: Tensor, texts: Tensor) -> Tensor:
        """Score as `scores` does, with the text embedding of each class.

        Args:
            support: [B, n, d]
            labels: [B, n], 0 to way - 1
            query: [B, m, d]
            texts: [B, way, d]

        Returns:
            The scores, [B, m, way].
        """

    def scores_of(self, tasks: TasksView) -> Tensor:
        """Score from rows and texts."""
        return self.scores_with_texts(*tasks.rows(self)[:3], tasks.texts())

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """Count the rows and texts, raw and scaled to length 1."""
        return 3 * (way + support + query) * dims

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Raise InputError: texts are required."""
        raise InputError(f"method '{self.spelling}' needs the texts of the classes in addition to the features")
