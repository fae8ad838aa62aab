"""The closed form behind the search for supports: losses of prototypes, their gradients, the projection, the ranking.

Pure functions on float64 tensors, batched over tasks: B tasks, R queries, W classes, d dimensions. Prototypes classify
by logits `-|x - c|^2`, times a scale; |x|^2 is left out everywhere, as it is the same for all classes of a query.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot, softplus


def logits_of(queries: Tensor, prototypes: Tensor) -> Tensor:
    """Logits [B, R, W] at scale 1 of queries [B, R, d] under prototypes [B, W, d]."""
    lengths = torch.linalg.vector_norm(prototypes, dim=-1).square()
    return torch.baddbmm(lengths.unsqueeze(-2), queries, prototypes.mT, beta=-1, alpha=2)


def cross_entropy_slopes(logits: Tensor, labels: Tensor) -> Tensor:
    """The derivative of the queries' summed cross-entropy by their logits: [B, R, W], for labels [B, R]."""
    return logits.softmax(-1) - one_hot(labels, logits.shape[-1])


def expected_error_slopes(logits: Tensor, labels: Tensor) -> Tensor:
    """The derivative of the summed probability of a wrong answer by the logits: [B, R, W].

    Where cross-entropy pulls hardest on the queries that are wrong already, this pulls on those that may still change.
    """
    own = labels.unsqueeze(-1)
    probability = logits.softmax(-1)
    right = probability.gather(-1, own)
    return probability.scatter_(-1, own, right - 1).mul_(right)


def prototype_gradient(queries: Tensor, prototypes: Tensor, slopes: Tensor) -> Tensor:
    """The derivative of a loss by the prototypes [B, W, d], from its derivative by the logits [B, R, W] at scale 1."""
    found = slopes.mT.contiguous() @ queries
    return found.addcmul_(slopes.sum(-2).unsqueeze(-1), prototypes, value=-1).mul_(2)


def margins(logits: Tensor, labels: Tensor) -> Tensor:
    """How far each query's own logit lies above the best of the others: [B, R]; negative where it is misclassified."""
    own = labels.unsqueeze(-1)
    others = logits.scatter(-1, own, -torch.inf)
    return logits.gather(-1, own).squeeze(-1) - others.amax(-1)


def project_on_l1_ball(weights: Tensor, radius: Tensor) -> Tensor:
    """The nearest point to each row of weights [S, P] whose absolute values sum to at most radius [S].

    The soft threshold is exact: with magnitudes in descending order it is (sum of the first m - radius) / m for the
    last m that keeps the m-th magnitude above it.
    """
    magnitude = weights.abs()
    descending = magnitude.sort(-1, descending=True).values
    excess = descending.cumsum(-1) - radius.unsqueeze(-1)
    count = torch.arange(1, weights.shape[-1] + 1, device=weights.device)
    kept = (descending * count > excess).sum(-1, keepdim=True).clamp(min=1)
    threshold = (excess.gather(-1, kept - 1) / kept).clamp(min=0)
    return weights.sign() * (magnitude - threshold).clamp(min=0)


def highest(scores: Tensor, allowed: Tensor, count: Tensor) -> Tensor:
    """Which count [S] of the allowed entries of each row of scores [S, P] are highest, as a mask; ties: the first.

    Compared in float32, so that the rounding of float64 sums, which depends on batch and device, decides nothing.
    """
    comparable = scores.float().masked_fill(~allowed, -torch.inf)
    order = comparable.argsort(dim=-1, descending=True, stable=True)
    taken = torch.arange(scores.shape[-1], device=scores.device) < count.unsqueeze(-1)
    return torch.zeros_like(allowed).scatter(-1, order, taken)


def cross_entropy_of_column(column: Tensor, rest: Tensor, own: Tensor, share: Tensor) -> Tensor:
    """Summed cross-entropy, up to a constant, for each of P versions of one class's logits [B, P, R]: [B, P].

    `rest` [B, R] is the logsumexp of the other classes' logits, `own` [B, R] tells the queries of the class itself,
    and `share` [B, R] is the probability of a query's own class among the other classes.
    """
    sign = torch.where(own, -1.0, 1.0).to(column)
    return softplus((column - rest.unsqueeze(1)).mul_(sign.unsqueeze(1))).sum(-1)


def expected_error_of_column(column: Tensor, rest: Tensor, own: Tensor, share: Tensor) -> Tensor:
    """As `cross_entropy_of_column`, of the summed probability of a wrong answer."""
    weight = torch.where(own, 1.0, -share)
    return ((rest.unsqueeze(1) - column).sigmoid_() @ weight.unsqueeze(-1)).squeeze(-1)
