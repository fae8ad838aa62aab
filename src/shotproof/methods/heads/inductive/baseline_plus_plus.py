"""A cosine classifier trained by stochastic gradient descent on the support set: the head of Baseline++."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.sgd import Known, SgdMethod, drawn_weights, residual

EPSILON = 1e-5  # added to the length of a feature, as the published code does


@dataclass(frozen=True)
class CosineHead(SgdMethod):
    """Score: scale g cos(v, x) after 100 epochs of SGD on v and g of each class, from a random start.

    As in the published code, weight normalization leaves each class a length g that is learned (`norm='learned'`, first
    |v|); `norm='unit'` is the pure cosine, g = 1. Every gradient lies in the span of v and the support rows, so v is
    kept as `share` v0 + A S, and a step costs the same in any number of dimensions.
    """

    about = "Baseline++: a cosine classifier trained by SGD"
    paper = "Chen et al., A Closer Look at Few-shot Classification, 2019"
    example = "baseline++(batch=None, norm='unit')"

    scale: float = option(2.0, "factor of the cosines", above=0)
    norm: Literal["learned", "unit"] = option("learned", "the length of each class's weights: learned, or always 1")
    init: Literal["uniform", "normal"] = option("uniform", "how the starting weights are drawn")

    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """v0 is drawn, and its length is the first g."""
        rows, asked = (_unit(values.double()) for values in (support, query))
        start = drawn_weights(seeds, way, rows.shape[-1], self.init)
        known = Known.of(rows, labels, start)
        weights, share = torch.zeros_like(known.at_start), torch.ones_like(known.start_norm2)
        parameters = [weights, share]
        if self.norm == "learned":
            parameters.append(known.start_norm2.sqrt())
        self.train(parameters, known, seeds)
        _, inverse, factor = self._directions(parameters, known)
        return (factor * inverse * (weights @ (rows @ asked.mT) + share * (start @ asked.mT))).mT

    def gradients(self, parameters: Sequence[Tensor], known: Known, rows: slice) -> list[Tensor]:
        """Those of v leave the component along v out, as the cosine does not depend on it."""
        weights, share = parameters[:2]
        products, inverse, factor = self._directions(parameters, known)
        cosines = products[..., rows] * inverse
        change = residual(factor * cosines, known.target[..., rows])
        along = (change * cosines).sum(-1, keepdim=True)
        radial = factor * along * inverse.square()
        of_weights = -radial * weights
        of_weights[..., rows] += factor * inverse * change
        return [of_weights, -radial * share, self.scale * along][: len(parameters)]

    def _directions(self, parameters: Sequence[Tensor], known: Known) -> tuple[Tensor, Tensor, Tensor]:
        """Products of all v with all rows, [B, way, n], 1 / |v| and scale g, [B, way, 1]."""
        weights, share, *lengths = parameters
        within, at_start = weights @ known.kernel, share * known.at_start
        norm2 = share.square() * known.start_norm2 + (weights * (within + 2 * at_start)).sum(-1, keepdim=True)
        return within + at_start, norm2.rsqrt(), self.scale * (lengths[0] if lengths else torch.ones_like(share))


def _unit(rows: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    return rows / (lengths + EPSILON)
