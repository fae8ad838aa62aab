"""Heads on models of two towers: they read the texts of the classes, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.options import option
from shotproof.functional.feature_rows import one_hot, unit
from shotproof.learners.bases import TextMethod
from shotproof.learners.heads.inductive.gradient_descent import Adam, cosine_rate

if TYPE_CHECKING:
    from torch import Tensor

EPSILON = 1e-4  # of AdamW, in the published code


@dataclass(frozen=True)
class ZeroShot(TextMethod):
    """Score: the cosine of the query with the text of the class. The support is not looked at."""

    about = "the class whose text is nearest, by cosine, without a look at the support"
    paper = "Radford et al., Learning Transferable Visual Models From Natural Language Supervision, ICML 2021"

    def scores_with_texts(self, support: Tensor, labels: Tensor, query: Tensor, texts: Tensor) -> Tensor:
        """[B, m, way]."""
        return unit(query.double()) @ unit(texts.double()).mT


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
        rows, weights = unit(support.double()), unit(texts.double())
        target = one_hot(labels, texts.shape[1])
        optimizer = Adam(weights, self.rate, decay=self.weight_decay)
        for epoch in range(self.epochs):
            slope = ((self.scale * rows @ weights.mT).softmax(-1) - target) / rows.shape[1]
            optimizer.step(self.scale * slope.mT @ rows, cosine_rate(self.rate, epoch, self.epochs))
        return self.scale * unit(query.double()) @ weights.mT


@dataclass(frozen=True)
class TipAdapter(TextMethod):
    """Score: alpha exp(-beta (1 - q K)) L + scale q W, all rows at length 1.

    q is the query, K the support, L its labels as one-hot rows, W the texts of the classes. Nothing is trained. The
    paper chooses alpha and beta on validation data; choose them on validation tasks.
    """

    about = "Tip-Adapter: the zero-shot classifier, and a cache of the support beside it"
    paper = "Zhang et al., Tip-Adapter: Training-free Adaption of CLIP for Few-shot Classification, ECCV 2022"
    example = "tip-adapter(alpha=3, beta=1)"

    alpha: float = option(1.0, "weight of the cache beside the texts", least=0)
    beta: float = option(5.5, "sharpness of the cache", above=0)
    scale: float = option(100.0, "factor of the cosines with the texts", above=0)

    def scores_with_texts(self, support: Tensor, labels: Tensor, query: Tensor, texts: Tensor) -> Tensor:
        """[B, m, way]."""
        rows, asked, words = unit(support.double()), unit(query.double()), unit(texts.double())
        values = one_hot(labels, texts.shape[1])
        return self._logits(asked, self._keys(rows, values, words), values, words)

    def _keys(self, rows: Tensor, values: Tensor, words: Tensor) -> Tensor:
        """The keys of the cache: the support rows [B, n, d]."""
        return rows

    def _logits(self, asked: Tensor, keys: Tensor, values: Tensor, words: Tensor) -> Tensor:
        return self.alpha * self._affinities(asked, keys) @ values + self.scale * asked @ words.mT

    def _affinities(self, asked: Tensor, keys: Tensor) -> Tensor:
        """[B, rows asked, keys]."""
        return (self.beta * (asked @ keys.mT - 1)).exp()


@dataclass(frozen=True)
class TipAdapterF(TipAdapter):
    """Score: as Tip-Adapter's, after the keys K were trained on the cross-entropy of the support.

    `epochs` steps of AdamW on the whole support, at a rate that falls along a cosine to 0, as in the published code,
    whose mini-batches of 256 hold a few-shot task's support. There, images are cropped at random in every epoch; here
    features stay as they are. The last keys are taken, not the best on the test set.
    """

    about = "Tip-Adapter-F: the cache's keys trained on the support by AdamW"
    example = "tip-adapter-f(epochs=50)"

    epochs: int = option(20, "steps over the whole support", least=0)
    rate: float = option(1e-3, "learning rate of AdamW at the start", above=0)
    weight_decay: float = option(0.01, "weight decay of AdamW", least=0, most=1)

    def _keys(self, rows: Tensor, values: Tensor, words: Tensor) -> Tensor:
        """The gradient in closed form."""
        keys = rows.clone()
        optimizer = Adam(keys, self.rate, decay=self.weight_decay, epsilon=EPSILON)
        for epoch in range(self.epochs):
            slope = (self._logits(rows, keys, values, words).softmax(-1) - values) / rows.shape[1]
            of_affinities = self.alpha * self.beta * self._affinities(rows, keys) * (slope @ values.mT)
            optimizer.step(of_affinities.mT @ rows, cosine_rate(self.rate, epoch, self.epochs))
        return keys
