"""Zero-shot classification: the nearest text."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.methods.shared.text_method import TextMethod, unit


@dataclass(frozen=True)
class ZeroShot(TextMethod):
    """Score: the cosine of the query with the text of the class. The support is not looked at."""

    about = "the class whose text is nearest, by cosine, without a look at the support"
    paper = "Radford et al., Learning Transferable Visual Models From Natural Language Supervision, ICML 2021"

    def scores_with_texts(self, support: Tensor, labels: Tensor, query: Tensor, texts: Tensor) -> Tensor:
        """[B, m, way]."""
        return unit(query) @ unit(texts).mT
