"""Base classes of heads, by what they see of their items: inner products, cosines, maps, texts."""

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
    """A method that sees its items through their inner products only."""

    @abstractmethod
    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """The scores [B, m, way] from inner products, and the support's labels [B, n]."""

    def scores_of(self, tasks: TasksView) -> Tensor:
        """Those of inner products."""
        return self.scores_from_gram(tasks.products(), tasks.support_labels, tasks.way)

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """Its blocks, and, as logistic regression holds them, `way` blocks of n x n."""
        return support * (4 * (support + query) + 6 * way * support)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The scores from features, through their inner products."""
        rows = torch.cat([support.double(), query.double()], 1)
        return self.scores_from_gram(gram_blocks(rows, support.shape[1]), labels, way)


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


class PairwiseMethod(Method):
    """A transductive method that sees support and queries through their cosines only."""

    family = "transductive"

    @abstractmethod
    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """The scores [B, m, way] from float64 cosines [B, n + m, n + m], support first, and labels [B, n].

        The cosines are inner products of rows as `scaling` makes them, so those of a zero row are zero. Methods share
        them, and leave them as they are. The seeds [B] are for methods that draw.
        """

    @property
    def scaling(self) -> UnitRows:
        """What is done to the rows before the products."""
        return UnitRows()

    def scores_of(self, tasks: TasksView) -> Tensor:
        """Those of cosines and seeds."""
        return self.scores_from_cosines(tasks.cosines(self.scaling), tasks.support_labels, tasks.way, tasks.seeds)

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The cosines and the copies of them that a step works on."""
        return 6 * (support + query + way) ** 2

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The scores from features, under seed 0."""
        rows = self.scaling(torch.cat([support, query], 1))
        return self.scores_from_cosines(rows @ rows.mT, labels, way, labels.new_zeros(len(labels)))


@dataclass(frozen=True, kw_only=True)
class PoweredMethod(PairwiseMethod):
    """One that transforms its features first and may assume that every class has equally many queries."""

    power: float = option(0.5, "power that the features are raised to; 1: none", above=0)
    negatives: Negatives = option("signed", "features below 0: mirrored, taken as 0 (relu), or an error (refuse)")
    balanced: bool = option(True, "every class has equally many queries")

    @property
    def scaling(self) -> UnitRows:
        """The power transform, then length 1."""
        return UnitRows(power_transform(self.power, self.negatives))


class MapMethod(Method):
    """A method on local maps: support [B, n, d, h, w], query [B, m, d, h, w]. Locations have no order.

    Everything is computed in float64, and queries in chunks, so that memory stays bounded whatever the maps' size.
    """

    needs = "maps"


class TextMethod(Method):
    """A method on features of a model of two towers, such as CLIP or CLAP, that carry the texts of their classes."""

    needs = "texts"

    @abstractmethod
    def scores_with_texts(self, support: Tensor, labels: Tensor, query: Tensor, texts: Tensor) -> Tensor:
        """As `scores`, with the text of each class.

        Args:
            support: [B, n, d]
            labels: [B, n], 0 to way - 1
            query: [B, m, d]
            texts: [B, way, d]

        Returns:
            The scores, [B, m, way].
        """

    def scores_of(self, tasks: TasksView) -> Tensor:
        """Those of rows and texts."""
        return self.scores_with_texts(*tasks.rows(self)[:3], tasks.texts())

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The rows and texts as they are and of length 1."""
        return 3 * (way + support + query) * dims

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """There are none without texts."""
        raise InputError(f"method '{self.spelling}' needs the texts of the classes beside the features")
