"""A cosine classifier trained by stochastic gradient descent on the support set: the head of Baseline++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from shotproof.errors import UnknownName
from shotproof.methods.method import require_positive
from shotproof.methods.sgd import SgdMethod, drawn_weights, of_rows, residual

INITS = ("uniform", "normal")
NORMS = ("learned", "unit")
EPSILON = 1e-5  # added to the length of a feature, as the published code does


@dataclass
class CosineHead(SgdMethod):
    """Score: scale g cos(v, x) after 100 epochs of SGD on v and g of each class, from a random start.

    Chen et al., A Closer Look at Few-shot Classification, 2019. As in the published code, weight normalisation leaves
    each class a length g that is learned (`norm='learned'`, first |v|); `norm='unit'` is the pure cosine, g = 1. Every
    gradient lies in the span of v and the support rows, so v is kept as `share` v0 + A S, and a step costs the same in
    any number of dimensions.
    """

    scale: float = 2.0
    norm: Literal["learned", "unit"] = "learned"
    init: Literal["uniform", "normal"] = "uniform"

    about = "Baseline++: a cosine classifier trained by SGD"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("scale", self.scale, float)
        for option, value, known in (("norm", self.norm, NORMS), ("init", self.init, INITS)):
            if value not in known:
                raise UnknownName(option, str(value), known)

    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Gradients by hand: those of v leave its direction's own component out, as the cosine does."""
        rows, asked = (_unit(values.double()) for values in (support, query))
        kernel = rows @ rows.mT
        start = drawn_weights(seeds, way, rows.shape[-1], self.init)
        at_start = start @ rows.mT  # [B, way, n]
        start_norm2 = start.square().sum(-1, keepdim=True)
        weights, share = torch.zeros_like(at_start), torch.ones_like(start_norm2)
        lengths = start_norm2.sqrt() if self.norm == "learned" else torch.ones_like(start_norm2)
        buffers: list[Tensor] = []

        def direction() -> tuple[Tensor, Tensor]:
            """Products of all v with all rows, [B, way, n], and 1 / |v|, [B, way, 1]."""
            within = weights @ kernel
            norm2 = share.square() * start_norm2 + (weights * (within + 2 * share * at_start)).sum(-1, keepdim=True)
            return within + share * at_start, norm2.rsqrt()

        for batch in self.batches(seeds, rows.shape[1]):
            products, inverse = direction()
            cosines = of_rows(products, batch) * inverse
            factor = self.scale * lengths
            change = residual(factor * cosines, labels, batch)
            along = (change * cosines).sum(-1, keepdim=True)
            radial = factor * along * inverse.square()
            of_weights = -radial * weights
            of_weights.scatter_add_(-1, batch.unsqueeze(1).expand_as(change), factor * inverse * change)
            gradients = [of_weights, -radial * share, self.scale * along]
            parameters = [weights, share, lengths]
            learned = 3 if self.norm == "learned" else 2
            self.descend(parameters[:learned], buffers, gradients[:learned])
        _, inverse = direction()
        return (self.scale * lengths * inverse * (weights @ (rows @ asked.mT) + share * (start @ asked.mT))).mT


def _unit(rows: Tensor) -> Tensor:
    return rows / (torch.linalg.vector_norm(rows, dim=-1, keepdim=True) + EPSILON)
