"""Matching networks without full-context embeddings: attention over the support rows."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.gram import GramBlocks, GramMethod, unit_rows
from shotproof.models.scoring.attention import attention_scores


@dataclass(frozen=True)
class Matching(GramMethod):
    """Score: the logarithm of the attention that the class's support rows get.

    The attention is that of Chen et al. 2019, without the trained context embeddings of Vinyals et al.: the softmax
    over all support rows of `scale` times the cosine, cosines below 0 taken as 0.
    """

    about = "matching networks without context embeddings: attention over support rows"
    paper = (
        "Vinyals et al., Matching Networks for One Shot Learning, 2016; Chen et al., A Closer Look at Few-shot "
        "Classification, 2019"
    )
    example = "matching(scale=10)"

    scale: float = option(100.0, "factor of the cosines: how sharp the attention is", above=0)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """log(softmax(scale relu(cos)) Y)."""
        _, cosine = unit_rows(gram)
        return attention_scores(cosine, labels, way, self.scale)
