"""A linear probe that starts from the texts of the classes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.adam import Adam, cosine_rate
from shotproof.methods.shared.gram import one_hot
from shotproof.methods.shared.text_method import TextMethod, unit


@dataclass(frozen=True)
class TextProbe(TextMethod):
    """Score: scale x W on rows x of length 1; W starts as the texts of the classes at length 1, without a bias.

    `epochs` steps of AdamW on the cross-entropy of the whole support, at a rate that falls along a cosine to 0. Without
    a step, it is `zero-shot`.
    """

    about = "a linear probe that starts from the texts of the classes"
    paper = "Wortsman et al., Robust fine-tuning of zero-shot models, CVPR 2022 (the linear classifier)"
    example = "text-probe(epochs=50)"

    epochs: int = option(20, "steps over the whole support", least=0)
    rate: float = option(1e-3, "learning rate of AdamW at the start", above=0)
    weight_decay: float = option(0.01, "weight decay of AdamW", least=0, most=1)
    scale: float = option(100.0, "factor of the products", above=0)

    def scores_with_texts(self, support: Tensor, labels: Tensor, query: Tensor, texts: Tensor) -> Tensor:
        """The gradient in closed form."""
        rows, weights = unit(support), unit(texts)
        target = one_hot(labels, texts.shape[1])
        optimizer = Adam(weights, self.rate, decay=self.weight_decay)
        for epoch in range(self.epochs):
            slope = ((self.scale * rows @ weights.mT).softmax(-1) - target) / rows.shape[1]
            optimizer.step(self.scale * slope.mT @ rows, cosine_rate(self.rate, epoch, self.epochs))
        return self.scale * unit(query) @ weights.mT
