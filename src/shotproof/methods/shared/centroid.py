"""Methods that compare each query with one weighted sum of support rows per class: the fewest inner products of all."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from shotproof.methods.shared.gram import GramBlocks, GramMethod, inverse_root, mean_weights


class CentroidMethod(GramMethod):
    """A method that sees its queries through their inner products with the classes' centroids only."""

    @abstractmethod
    def weights(self, support_norm2: Tensor, labels: Tensor, way: int) -> Tensor:
        """The weights [B, way, n] of the support rows in each centroid, from their |row|^2 and labels, both [B, n]."""

    @abstractmethod
    def scores_from_centroids(
        self, products: Tensor, centroid_norm2: Tensor, query_norm2: Tensor, support_norm2: Tensor
    ) -> Tensor:
        """The scores, classes first: [B, way, m], all in float64.

        Centroids times queries [B, way, m], |centroid|^2 [B, way, 1], |query|^2 [B, 1, m] and |support row|^2 [B, n].
        """

    @abstractmethod
    def rounding(self, lengths: Tensor, centroid_norm2: Tensor, query_norm2: Tensor) -> Tensor:
        """By how much scores [B, way, m] may be off, where x.p may be off by |x| `lengths`, and |p|^2 by `lengths`^2.

        `lengths` [B, way, 1] are the sums of the rows' lengths with the centroid's weights: at least |p|.
        """

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The products of the support with all rows, and what is made of those of the centroids."""
        return (support + query) * (2 * support + 4 * way)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The scores from features, without the products of the rows."""
        support, query = support.double(), query.double()
        support_norm2, query_norm2 = support.square().sum(2), query.square().sum(2).unsqueeze(1)
        centroids = self.weights(support_norm2, labels, way) @ support
        centroid_norm2 = centroids.square().sum(2, keepdim=True)
        return self.scores_from_centroids(centroids @ query.mT, centroid_norm2, query_norm2, support_norm2).mT

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """The scores from the products of the rows."""
        support_norm2 = gram.support.diagonal(dim1=-2, dim2=-1)
        weights = self.weights(support_norm2, labels, way)
        centroid_norm2 = (weights * (weights @ gram.support)).sum(2, keepdim=True)
        products = weights @ gram.query.mT
        return self.scores_from_centroids(products, centroid_norm2, gram.query_norm2.unsqueeze(1), support_norm2).mT


def mean_of_unit_rows(support_norm2: Tensor, labels: Tensor, way: int) -> Tensor:
    """Weights [B, way, n] whose sum is the class's mean of rows scaled to length 1; a zero row stays zero."""
    return mean_weights(labels, way) * inverse_root(support_norm2).unsqueeze(1)
