"""Exact swaps: each support item in turn is replaced by the candidate that raises the queries' loss most.

A swap moves one prototype, and so changes one column of the logits. Inner products of candidates and queries are
computed once; the losses of all candidates then need only elementwise operations.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from shotproof.tasks.search.candidates import Candidates

ColumnLoss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def swap_rounds(
    candidates: Candidates, chosen: Tensor, scale: Tensor, loss: ColumnLoss, sign: float, rounds: int
) -> Tensor:
    """Improve chosen candidates by rounds of swaps over all classes and their support items.

    Args:
        candidates: a batch of tasks
        chosen: mask of the chosen candidates, [S, P]
        scale: scale of the logits in each task, [B]
        loss: loss for versions of one class's logits
        sign: 1 to raise the loss, -1 to lower it
        rounds: number of rounds

    Returns:
        A mask of the improved choice, [S, P].
    """
    slots = [_Slot(candidates.only_slot(j), chosen[j :: candidates.way], scale) for j in range(candidates.way)]
    logits = torch.stack([slot.logits() for slot in slots], -1)
    for _ in range(rounds):
        for j, slot in enumerate(slots):
            others = logits.clone()
            others[..., j] = -torch.inf
            rest, in_class = others.logsumexp(-1), candidates.labels == j
            share = (others.gather(-1, candidates.labels.unsqueeze(-1)).squeeze(-1) - rest).exp()
            for member in range(slot.members.shape[1]):
                slot.swap(member, sign * loss(slot.columns_without(member), rest, in_class, share))
            logits[..., j] = slot.logits()
    return torch.stack([slot.chosen for slot in slots], 1).flatten(0, 1)


class _Slot:
    """One class of each of the B tasks: inner products of its candidates, and its current support.

    Support items beyond a task's number of shots are not `active`, and count as zero vectors.
    """

    def __init__(self, candidates: Candidates, chosen: Tensor, scale: Tensor) -> None:
        self.candidates = candidates
        self.chosen = chosen.clone()
        self.scale = scale.unsqueeze(-1)  # [B, 1]
        self.shots = candidates.shots.unsqueeze(-1).double()  # [B, 1]
        most = int(candidates.shots.max())
        self.members = chosen.int().argsort(dim=-1, descending=True, stable=True)[:, :most]
        self.active = torch.arange(most, device=chosen.device) < self.shots
        self.tasks = torch.arange(len(chosen), device=chosen.device)
        # Contribution of a candidate to the logits as a member: its share of the products, and of the squared norm.
        self.pull = candidates.query_products().mul_((2 * self.scale / self.shots).unsqueeze(-1))  # [B, P, R]
        self.norms2 = candidates.squared_norms() / self.shots.square()
        self.products = torch.stack([self._member_products(member) for member in range(most)], 1)  # [B, most, P]

    def logits(self) -> Tensor:
        """Compute the class's logits [B, R] with its current support."""
        pull, _, norm2 = self._sum_members(self.active)
        return pull - self.scale * norm2

    def columns_without(self, member: int) -> Tensor:
        """Compute the class's logits with each candidate in place of one member: [B, P, R]."""
        active = self.active.clone()
        active[:, member] = False
        pull, products, norm2 = self._sum_members(active)
        lengths = self.scale * (norm2 + 2 * products / self.shots + self.norms2)
        return (self.pull + pull.unsqueeze(1)).sub_(lengths.unsqueeze(-1))

    def swap(self, member: int, losses: Tensor) -> None:
        """Replace one member by the candidate with the highest loss [B, P], which may be the member itself."""
        old = self.members[:, member]
        available = self.candidates.allowed & ~self.chosen
        available[self.tasks, old] = True
        # float32, so that the rounding of float64 sums, which depends on batch and device, has no effect.
        gains = (losses - losses[self.tasks, old].unsqueeze(-1)).float().masked_fill(~available, -torch.inf)
        new = torch.where(self.active[:, member], gains.argmax(-1), old)
        if bool((new == old).all()):
            return
        self.chosen[self.tasks, old] ^= self.active[:, member]
        self.chosen[self.tasks, new] |= self.active[:, member]
        self.members[:, member] = new
        self.products[:, member] = self._member_products(member)

    def _member_products(self, member: int) -> Tensor:
        """Compute inner products of all candidates with one member: [B, P]."""
        return self.candidates.products(self.candidates.features_at(self.members[:, member]))

    def _sum_members(self, active: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute terms of z, the sum of active members over the shots: in logits [B, R], z.f [B, P], z.z [B, 1]."""
        pull = (self.pull[self.tasks.unsqueeze(-1), self.members] * active.unsqueeze(-1)).sum(1)
        share = active / self.shots
        products = (share.unsqueeze(1) @ self.products).squeeze(1)
        return pull, products, (share * products.gather(1, self.members)).sum(-1, keepdim=True)
