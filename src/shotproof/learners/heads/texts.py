"""Heads on features of two-tower models, which also use the texts of the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.options import option
from shotproof.functional.feature_rows import one_hot, unit
from shotproof.learners.bases import TextMethod
from shotproof.learners.heads.inductive.gradient_descent import Adam, cosine_rate

if TYPE_CHECKING:
    from torch import Tensor

EPSILON = 1e-4  # of AdamW, as in the published code


@dataclass(frozen=True)
class ZeroShot(TextMethod):
    """Classify by the cosine of the query with the text of each class. The support is not used."""

    about = "class whose text is nearest by cosine, without using the support"
    paper = "Radford et al., Learning Transferable Visual Models From Natural Language Supervision, ICML 2021"

    def scores_with_texts(self, support: Tensor, labels: Tensor, query: Tensor, texts: Tensor) -> Tensor:
        """Compute the cosines [B, m, way]."""
        return unit(query.double()) @ unit(texts.double()).mT


@dataclass(frozen=True)
class TextProbe(TextMethod):
    """Classify by a linear probe without bias whose weights start from the texts of the classes.

    Score: scale x W on rows x of length 1; W starts as the texts at length 1. `epochs` steps of AdamW minimize the
    cross-entropy of the whole support, with a cosine learning rate schedule to 0. With `epochs=0` it is `zero-shot`.
    """

    about = "linear probe that starts from the texts of the classes"
    paper = "Wortsman et al., Robust fine-tuning of zero-shot models, CVPR 2022 (the linear classifier)"
    example = "text-probe(epochs=50)"

    epochs: int = option(20, "steps over the whole support", least=0)
    rate: float = option(1e-3, "learning rate of AdamW at the start", above=0)
    weight_decay: float = option(0.01, "weight decay of AdamW", least=0, most=1)
    scale: float = option(100.0, "factor of the products", above=0)

    def scores_with_texts(self, support: Tensor, labels: Tensor, query: Tensor, texts: Tensor) -> Tensor:
        """Train the weights with the closed-form gradient, then score."""
        rows, weights = unit(support.double()), unit(texts.double())
        target = one_hot(labels, texts.shape[1])
        optimizer = Adam(weights, self.rate, decay=self.weight_decay)
        for epoch in range(self.epochs):
            slope = ((self.scale * rows @ weights.mT).softmax(-1) - target) / rows.shape[1]
            optimizer.step(self.scale * slope.mT @ rows, cosine_rate(self.rate, epoch, self.epochs))
        return self.scale * unit(query.double()) @ weights.mT


@dataclass(frozen=True)
class TipAdapter(TextMethod):
    """Classify by the zero-shot classifier plus a cache of the support.

    Score: alpha exp(-beta (1 - q K)) L + scale q W, all rows at length 1. q is the query, K the support, L its one-hot
    labels, W the texts of the classes. Nothing is trained. The paper selects alpha and beta on validation data; select
    them on validation tasks.
    """

    about = "Tip-Adapter: zero-shot classifier plus a cache of the support"
    paper = "Zhang et al., Tip-Adapter: Training-free Adaption of CLIP for Few-shot Classification, ECCV 2022"
    example = "tip-adapter(alpha=3, beta=1)"

    alpha: float = option(1.0, "weight of the cache relative to the texts", least=0)
    beta: float = option(5.5, "sharpness of the cache", above=0)
    scale: float = option(100.0, "factor of the cosines with the texts", above=0)

    def scores_with_texts(self, support: Tensor, labels: Tensor, query: Tensor, texts: Tensor) -> Tensor:
        """Compute the scores [B, m, way]."""
        support_rows, query_rows, text_rows = unit(support.double()), unit(query.double()), unit(texts.double())
        values = one_hot(labels, texts.shape[1])
        return self._logits(query_rows, self._keys(support_rows, values, text_rows), values, text_rows)

    def _keys(self, support_rows: Tensor, values: Tensor, text_rows: Tensor) -> Tensor:
        """Return the keys of the cache: the support rows [B, n, d]."""
        return support_rows

    def _logits(self, rows: Tensor, keys: Tensor, values: Tensor, text_rows: Tensor) -> Tensor:
        return self.alpha * self._affinities(rows, keys) @ values + self.scale * rows @ text_rows.mT

    def _affinities(self, rows: Tensor, keys: Tensor) -> Tensor:
        """Compute the affinity of each row to each key, [B, rows, keys]."""
        return (self.beta * (rows @ keys.mT - 1)).exp()


@dataclass(frozen=True)
class TipAdapterF(TipAdapter):
    """Classify as Tip-Adapter does, with cache keys trained on the cross-entropy of the support.

    `epochs` steps of AdamW on the whole support, with a cosine learning rate schedule to 0, as in the published code,
    whose mini-batches of 256 hold the support of a few-shot task. The published code crops images at random in every
    epoch; here features stay fixed. The last keys are used, not the best on the test set.
    """

    about = "Tip-Adapter-F: cache keys trained on the support by AdamW"
    example = "tip-adapter-f(epochs=50)"

    epochs: int = option(20, "steps over the whole support", least=0)
    rate: float = option(1e-3, "learning rate of AdamW at the start", above=0)
    weight_decay: float = option(0.01, "weight decay of AdamW", least=0, most=1)

    def _keys(self, support_rows: Tensor, values: Tensor, text_rows: Tensor) -> Tensor:
        """Train the keys with the closed-form gradient."""
        keys = support_rows.clone()
        optimizer = Adam(keys, self.rate, decay=self.weight_decay, epsilon=EPSILON)
        for epoch in range(self.epochs):
            slope = (self._logits(support_rows, keys, values, text_rows).softmax(-1) - values) / support_rows.shape[1]
            affinity_gradient = self.alpha * self.beta * self._affinities(support_rows, keys) * (slope @ values.mT)
            optimizer.step(affinity_gradient.mT @ support_rows, cosine_rate(self.rate, epoch, self.epochs))
        return keys
