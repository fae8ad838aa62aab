"""Exact swaps against losses that are computed anew for every candidate."""

from __future__ import annotations

import itertools

import pytest
import torch

from shotproof.tasks.search.closed_form import cross_entropy_of_column
from shotproof.tasks.search.swaps import swap_rounds
from tests.searched_tasks import draw_candidates, loss_of

SCALE = 0.7


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("shot", [1, 3])
def test_swaps_are_those_of_a_search_through_all_candidates(sign: float, shot: int) -> None:
    candidates = draw_candidates(shot=shot)
    slots, size = candidates.allowed.shape
    start = torch.zeros(slots, size, dtype=torch.bool)
    start[:, :shot] = True
    ours = swap_rounds(candidates, start, torch.full((3,), SCALE).double(), cross_entropy_of_column, sign, rounds=2)
    weights = start.double()
    for task in range(3):
        members = {slot: list(range(shot)) for slot in range(task * 3, task * 3 + 3)}
        for _, (slot, own), turn in itertools.product(range(2), members.items(), range(shot)):
            losses = {}
            for item in [p for p in range(7) if p == own[turn] or p not in own]:
                tried = weights.clone()
                tried[slot, own[turn]] = 0
                tried[slot, item] = 1
                losses[item] = sign * float(loss_of(candidates, tried, SCALE, task))
            weights[slot, own[turn]] = 0
            own[turn] = max(losses, key=losses.__getitem__)
            weights[slot, own[turn]] = 1
    assert torch.equal(ours, weights.bool())


def test_slots_with_other_shots_do_not_mix() -> None:
    candidates = draw_candidates()
    shots = torch.tensor([1, 2, 3, 3, 2, 1, 2, 2, 2])
    object.__setattr__(candidates, "shots", shots)
    start = torch.arange(candidates.allowed.shape[1]) < shots.unsqueeze(-1)
    scale = torch.ones(3, dtype=torch.float64)
    chosen = swap_rounds(candidates, start, scale, cross_entropy_of_column, 1.0, rounds=3)
    assert torch.equal(chosen.sum(-1), shots)
    assert not (chosen & ~candidates.allowed).any()
    for task in range(3):
        before, after = (loss_of(candidates, support.double(), 1.0, task) for support in (start, chosen))
        assert after > before
