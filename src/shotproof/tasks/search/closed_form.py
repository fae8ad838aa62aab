"""Closed forms for the search for supports: losses of prototypes and their gradients, a projection, and a ranking.

Pure functions on float64 tensors, batched over tasks: B tasks, R queries, W classes, d dimensions. Prototypes classify
by logits `-|x - c|^2`, times a scale; |x|^2 is left out, as it is the same for all classes of a query.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot, softplus


def prototype_logits(queries: Tensor, prototypes: Tensor) -> Tensor:
    """Compute the logits [B, R, W], at scale 1, of queries [B, R, d] given prototypes [B, W, d]."""
    lengths = torch.linalg.vector_norm(prototypes, dim=-1).square()
    return torch.baddbmm(lengths.unsqueeze(-2), queries, prototypes.mT, beta=-1, alpha=2)


def cross_entropy_gradient(logits: Tensor, labels: Tensor) -> Tensor:
    """Compute the gradient of the queries' summed cross-entropy in their logits: [B, R, W], for labels [B, R]."""
    return logits.softmax(-1) - one_hot(labels, logits.shape[-1])


def expected_error_gradient(logits: Tensor, labels: Tensor) -> Tensor:
    """Compute the gradient of the summed probability of a wrong answer in the logits: [B, R, W].

    Cross-entropy has its largest gradients at queries that are already misclassified, this at undecided queries.
    """
    index = labels.unsqueeze(-1)
    probability = logits.softmax(-1)
    correct = probability.gather(-1, index)
    return probability.scatter_(-1, index, correct - 1).mul_(correct)


def prototype_gradient(queries: Tensor, prototypes: Tensor, logit_gradient: Tensor) -> Tensor:
    """Compute the gradient of a loss in the prototypes [B, W, d], from that in the logits [B, R, W] at scale 1."""
    gradient = logit_gradient.mT.contiguous() @ queries
    return gradient.addcmul_(logit_gradient.sum(-2).unsqueeze(-1), prototypes, value=-1).mul_(2)


def margins(logits: Tensor, labels: Tensor) -> Tensor:
    """Compute the margin of each query, the logit of its class minus the highest other: [B, R]; negative if wrong."""
    index = labels.unsqueeze(-1)
    others = logits.scatter(-1, index, -torch.inf)
    return logits.gather(-1, index).squeeze(-1) - others.amax(-1)


def project_on_l1_ball(weights: Tensor, radius: Tensor) -> Tensor:
    """Project each row of weights [S, P] on the points whose absolute values sum to at most radius [S].

    The soft threshold is exact: with magnitudes in descending order, it is (sum of the first m - radius) / m for the
    largest m whose m-th magnitude exceeds it.
    """
    magnitude = weights.abs()
    descending = magnitude.sort(-1, descending=True).values
    excess = descending.cumsum(-1) - radius.unsqueeze(-1)
    count = torch.arange(1, weights.shape[-1] + 1, device=weights.device)
    nonzero = (descending * count > excess).sum(-1, keepdim=True).clamp(min=1)
    threshold = (excess.gather(-1, nonzero - 1) / nonzero).clamp(min=0)
    return weights.sign() * (magnitude - threshold).clamp(min=0)


def highest(scores: Tensor, allowed: Tensor, count: Tensor) -> Tensor:
    """Select the highest allowed entries of each row of scores [S, P], count [S] of them, as a mask; ties: the first.

    Scores are compared in float32, so that the rounding of float64 sums, which depends on batch and device, has no
    effect.
    """
    comparable = scores.float().masked_fill(~allowed, -torch.inf)
    order = comparable.argsort(dim=-1, descending=True, stable=True)
    is_selected = torch.arange(scores.shape[-1], device=scores.device) < count.unsqueeze(-1)
    return torch.zeros_like(allowed).scatter(-1, order, is_selected)


def cross_entropy_of_column(column: Tensor, rest: Tensor, in_class: Tensor, share: Tensor) -> Tensor:
    """Compute the summed cross-entropy, up to a constant, for P versions of one class's logits [B, P, R]: [B, P].

    Args:
        column: P versions of the class's logits
        rest: logsumexp of the other classes' logits, [B, R]
        in_class: which queries are of the class, [B, R]
        share: probability of a query's true class among the other classes, [B, R]
    """
    sign = torch.where(in_class, -1.0, 1.0).to(column)
    return softplus((column - rest.unsqueeze(1)).mul_(sign.unsqueeze(1))).sum(-1)


def expected_error_of_column(column: Tensor, rest: Tensor, in_class: Tensor, share: Tensor) -> Tensor:
    """Compute the summed probability of a wrong answer, like `cross_entropy_of_column`."""
    weight = torch.where(in_class, 1.0, -share)
    return ((rest.unsqueeze(1) - column).sigmoid_() @ weight.unsqueeze(-1)).squeeze(-1)
