"""Matching networks without full-context embeddings: attention over the support rows."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.methods.gram import GramMethod, one_hot, unit_rows
from shotproof.methods.method import require_positive

LEAST = 1e-6  # added to a probability before the logarithm, as the published code does


@dataclass
class Matching(GramMethod):
    """Score: the logarithm of the attention that the class's support rows get.

    Vinyals et al., Matching Networks for One Shot Learning, 2016, without the trained context embeddings, with the
    attention of Chen et al., A Closer Look at Few-shot Classification, 2019: the softmax over all support rows of
    `scale` times the cosine, cosines below 0 taken as 0.
    """

    scale: float = 100.0

    about = "matching networks without context embeddings: attention over support rows"

    def __post_init__(self) -> None:
        require_positive("scale", self.scale, float)

    def scores_from_gram(
        self, support_gram: Tensor, query_gram: Tensor, query_norm2: Tensor, labels: Tensor, way: int
    ) -> Tensor:
        """log(softmax(scale relu(cos)) Y)."""
        _, cosine = unit_rows(support_gram, query_gram, query_norm2)
        attention = (self.scale * cosine.clamp(min=0)).softmax(-1)
        return (attention @ one_hot(labels, way) + LEAST).log()
