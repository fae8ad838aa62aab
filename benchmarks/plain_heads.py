"""Transductive heads in their simplest form: one task at a time, in plain torch, from the papers' formulas.

Each takes support [n, d], labels [n], query [m, d] and the number of classes, and gives scores [m, way]. The benchmark
of heads times them, and the tests compare the package's batched heads with them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own habit
from torch import Tensor

Head = Callable[[Tensor, Tensor, Tensor, int], Tensor]


def unit(rows: Tensor) -> Tensor:
    """Scale rows to length 1."""
    return F.normalize(rows, dim=-1, eps=1e-12)


def means(rows: Tensor, labels: Tensor, way: int) -> Tensor:
    """Compute the mean row of each class."""
    return torch.stack([rows[labels == c].mean(0) for c in range(way)])


def distances(rows: Tensor, centroids: Tensor) -> Tensor:
    """Compute squared Euclidean distances."""
    return torch.cdist(rows, centroids).square()


def ncc(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Score by the nearest centroid."""
    return -distances(query, means(support, labels, way))


def bd_cspn(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Score by BD-CSPN in the form `easyfsl`: hard labels, weights exp(cos)."""
    support, query = unit(support), unit(query)
    prototypes = unit(means(support, labels, way))
    shifted = query + support.mean(0) - query.mean(0)
    similar = unit(shifted) @ prototypes.T
    support_weights = F.one_hot(labels, way) * (support @ prototypes.T).exp()
    query_weights = F.one_hot(similar.argmax(1), way) * similar.exp()
    weights = torch.cat([support_weights, query_weights])
    rectified = (weights / weights.sum(0)).T @ torch.cat([support, shifted])
    return query @ unit(rectified).T


def bd_cspn_voted(support: Tensor, labels: Tensor, query: Tensor, way: int) -> tuple[Tensor, Tensor]:
    """Compute BD-CSPN's rectified prototypes and shifted queries, of rows of length 1 (form `laplacianshot`)."""
    prototypes = means(support, labels, way)
    shifted = query + support.mean(0) - query.mean(0)
    rows = torch.cat([support, shifted])
    similar = unit(rows) @ unit(prototypes).T
    weight, voted = (10 * similar).softmax(1).gather(1, similar.argmax(1, keepdim=True)), similar.argmax(1)
    rectified = [(weight * rows)[voted == c].mean(0) if bool((voted == c).any()) else prototypes[c] for c in range(way)]
    return torch.stack(rectified), shifted


def laplacianshot(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Score by LaplacianShot: rectified prototypes, two neighbors, 20 steps."""
    prototypes, shifted = bd_cspn_voted(unit(support), labels, unit(query), way)
    unary = distances(shifted, prototypes)
    between = distances(shifted, shifted).fill_diagonal_(torch.inf)
    graph = torch.zeros_like(between).scatter_(1, between.topk(min(2, len(query) - 1), largest=False).indices, 1)
    answer = (-unary).softmax(1)
    for _ in range(20):
        answer = (-unary + graph @ answer).softmax(1)
    return answer


def entropy(p: Tensor) -> Tensor:
    """Compute Shannon's entropy over the last axis."""
    return -(p * (p + 1e-12).log()).sum(-1)


def tsallis(p: Tensor, alpha: float) -> Tensor:
    """Compute Tsallis' entropy over the last axis."""
    return (1 - p.pow(alpha).sum(-1)) / (alpha - 1)


def tim_loss(of_support: Tensor, labels: Tensor, of_query: Tensor) -> Tensor:
    """Compute TIM's loss of logits."""
    p = of_query.softmax(1)
    return 0.1 * F.cross_entropy(of_support, labels) - entropy(p.mean(0)) + 0.1 * entropy(p).mean()


def alpha_tim_loss(of_support: Tensor, labels: Tensor, of_query: Tensor) -> Tensor:
    """Compute alpha-TIM's loss of logits."""
    p = of_query.softmax(1)
    return F.cross_entropy(of_support, labels) - tsallis(p.mean(0), 7) + tsallis(p, 5).mean()


def tim(
    support: Tensor,
    labels: Tensor,
    query: Tensor,
    way: int,
    steps: int = 1000,
    loss: Callable[[Tensor, Tensor, Tensor], Tensor] = tim_loss,
) -> Tensor:
    """Score by TIM, with autograd and torch's Adam."""
    support, query = unit(support), unit(query)
    centroids = means(support, labels, way).requires_grad_()
    optimizer = torch.optim.Adam([centroids], lr=1e-4)

    def logits(rows: Tensor) -> Tensor:
        squares = rows.square().sum(1, keepdim=True) + centroids.square().sum(1)
        return 15 * (rows @ centroids.T - squares / 2)

    for _ in range(steps):
        optimizer.zero_grad()
        loss(logits(support), labels, logits(query)).backward()
        optimizer.step()
    return logits(query).log_softmax(1).detach()


def alpha_tim(support: Tensor, labels: Tensor, query: Tensor, way: int, steps: int = 1000) -> Tensor:
    """Score like TIM, with alpha-TIM's loss."""
    return tim(support, labels, query, way, steps, alpha_tim_loss)


def transductive_finetune(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Score by transductive fine-tuning, with autograd and torch's Adam, two updates an epoch."""
    support, query = support.relu(), query.relu()
    head = torch.nn.Linear(support.shape[1], way, device=support.device, dtype=support.dtype)
    with torch.no_grad():
        head.weight.copy_(unit(means(support, labels, way)))
        head.bias.zero_()
    support, query = unit(support), unit(query)
    optimizer = torch.optim.Adam(head.parameters(), lr=5e-5)
    for _ in range(25):
        for loss in (lambda: F.cross_entropy(head(support), labels), lambda: entropy(head(query).softmax(1)).mean()):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    return head(query).detach()


def power(rows: Tensor) -> Tensor:
    """Compute the square root, mirrored below zero."""
    return torch.where(rows < 0, -1.0, 1.0).to(rows) * (rows.abs() + 1e-6).sqrt()


def scaled(plan: Tensor, columns: Tensor | float, tolerance: float, fixed: Tensor | None = None) -> Tensor:
    """Run Sinkhorn's iteration on a plan [rows, way], with the first rows set to `fixed` after each pass."""
    before = torch.full_like(plan[:, 0], torch.inf)
    for _ in range(1000):
        rows = plan.sum(1)
        if (rows - before).abs().max() <= tolerance:
            break
        before = rows
        plan = plan / rows.unsqueeze(1)
        plan = plan * (columns / plan.sum(0))
        if fixed is not None:
            plan = torch.cat([fixed, plan[len(fixed) :]])
    return plan


def pt_map(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Score by PT-MAP: power transform, Sinkhorn, 20 steps."""
    support, query = unit(power(support)), unit(power(query))
    support, query = unit(support - support.mean(0)), unit(query - query.mean(0))
    centroids, rows = means(support, labels, way), torch.cat([support, query])
    for step in range(21):
        shares = scaled((-10 * distances(query, centroids)).exp(), len(query) / way, 1e-6)
        if step < 20:
            mask = torch.cat([F.one_hot(labels, way).to(shares), shares])
            centroids = centroids + 0.2 * (mask.T @ rows / mask.sum(0).unsqueeze(1) - centroids)
    return shares


def main_directions(support: Tensor, query: Tensor) -> Tensor:
    """Compute the rows of Proto-LP and ECPE."""
    rows = unit(power(torch.cat([support, query])))
    rows = rows @ torch.linalg.svd(rows, full_matrices=False).Vh[:40].T
    return unit(rows - rows.mean(0))


def proto_lp(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Score by Proto-LP: 100 steps of transport and propagation."""
    rows, support_shares = main_directions(support, query), F.one_hot(labels, way).to(support)
    query, share, identity = rows[len(support) :], len(query) / way, torch.eye(way).to(support)
    centroids = unit(means(rows[: len(support)], labels, way))
    for step in range(101):
        shares = scaled((-10 * distances(query, centroids)).exp(), share, 1e-3)
        if step < 100:
            z = torch.cat([support_shares, shares])
            graph = identity - z.T @ (z / z.sum(0))
            propagated = z @ torch.linalg.solve(
                support_shares.T @ support_shares + graph, support_shares.T @ support_shares
            )
            propagated = scaled(propagated, support_shares.sum(0) + share, 0.01, support_shares)
            mask = (0.6 * propagated + 0.4 * z).clamp(0, 1)
            centroids = centroids + 0.2 * (mask.T @ rows / mask.sum(0).unsqueeze(1) - centroids)
    return shares


def ecpe(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Score by ECPE: 10 steps of transport and propagation over all items."""

    def certainty(label: Tensor) -> Tensor:
        return 1 - entropy(label / label.sum(1, keepdim=True)) / torch.log(torch.tensor(float(way))).item()

    def floor(rows: Tensor) -> float:
        return len(rows) // way or len(rows) / way

    rows, support_shares = main_directions(support, query), F.one_hot(labels, way).to(support)
    query, centroids = rows[len(support) :], means(rows[: len(support)], labels, way)
    for _ in range(10):
        label = torch.cat([support_shares, scaled((-2 * distances(query, centroids)).exp(), floor(query), 1e-3)])
        certain = certainty(label)
        label = label * certain.unsqueeze(1)
        centroids = 0.4 * centroids + 0.6 * (label.T @ rows) / label.sum(0).unsqueeze(1)
        affinity = (-2 * distances(centroids, centroids)).exp()
        is_certain = (certainty(affinity) > certain.mean()).to(rows).unsqueeze(1)
        nodes, label = torch.cat([rows, centroids * is_certain]), torch.cat([label, affinity * is_certain])
        graph = (-2 * distances(nodes, nodes)).exp().fill_diagonal_(0)
        root = graph.sum(1).rsqrt()
        system = torch.eye(len(graph)).to(graph) - 0.7 * root.unsqueeze(1) * graph * root
        label = scaled(torch.linalg.solve(system, label), floor(nodes), 1e-3, support_shares)
    return label[len(support) : len(rows)]


def paddle(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Score by PADDLE: features scaled by the queries' range, penalty 75, 100 steps."""
    least = query.min(0).values
    width = query.max(0).values - least
    support, query = (support - least) / width, (query - least) / width
    support_shares, centroids = F.one_hot(labels, way).to(support), means(support, labels, way)
    bonus = torch.zeros_like(centroids[:, 0])
    for _ in range(100):
        used = (-distances(query, centroids) / 2 + 75 / len(query) * bonus).softmax(1)
        bonus = (used.mean(0) + 1e-6).log() + 1
        centroids = (used.T @ query + support_shares.T @ support) / (used.sum(0) + support_shares.sum(0)).unsqueeze(1)
    return used


def bpa(support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
    """Score by BPA: balanced affinities in log space, then nearest centroids."""
    rows = unit(torch.cat([support, query]))
    plan = -(1 - rows @ rows.T).fill_diagonal_(1e5) / 0.1
    for _ in range(10):
        plan = plan - plan.logsumexp(1, keepdim=True)
        plan = plan - plan.logsumexp(0, keepdim=True)
    plan = plan.exp()
    plan = plan / plan.max()
    plan[: len(support), : len(support)] = (labels.unsqueeze(1) == labels).to(plan)
    plan.fill_diagonal_(1)
    return ncc(plan[: len(support)], labels, plan[len(support) :], way)


PLAIN: dict[str, Head] = {
    "bd-cspn": bd_cspn,
    "laplacianshot": laplacianshot,
    "tim": tim,
    "alpha-tim": alpha_tim,
    "pt-map": pt_map,
    "proto-lp": proto_lp,
    "paddle": paddle,
    "bpa": bpa,
    "ecpe": ecpe,
    "transductive-finetune": transductive_finetune,
}
