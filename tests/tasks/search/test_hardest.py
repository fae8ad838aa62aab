"""Hardest against greedy, on worlds of several kinds."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.tasks.search.candidates import Candidates
from shotproof.tasks.search.hardest import SHARPNESS, contributions, first_contributions, logit_scale
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld
from tests.searched_tasks import accuracy, draw_candidates, search, world, world_in_contexts


@pytest.mark.parametrize("separation", [0.4, 0.8])
@pytest.mark.parametrize("length", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("shot", [1, 3])
def test_harder_than_greedy_whatever_the_length_of_features(separation: float, length: float, shot: int) -> None:
    catalog, features = world(seed=3, separation=separation)
    scaled = Features.from_array(catalog.items, features.array * length)
    greedy, hardest = (accuracy(search(name, (catalog, scaled), shot=shot), scaled) for name in ("greedy", "hardest"))
    assert hardest <= greedy


@pytest.mark.parametrize("shot", [1, 5])
def test_harder_than_greedy_where_contexts_say_more_than_classes(shot: int) -> None:
    given = world_in_contexts()
    greedy, hardest = (accuracy(search(name, given, shot=shot, tasks=20), given[1]) for name in ("greedy", "hardest"))
    assert hardest <= greedy


def test_harder_than_greedy_in_the_world_of_shapes() -> None:
    """There two rounds of pruning are not enough."""
    catalog = ShapesWorld().catalog()
    given = catalog, encode(catalog, DialEncoder(0.0))
    greedy, hardest = (accuracy(search(name, given, shot=5, query=10), given[1]) for name in ("greedy", "hardest"))
    assert hardest < greedy


def test_more_effort_makes_tasks_harder() -> None:
    given = world()
    low, medium, high = (
        accuracy(search("hardest", given, effort=effort), given[1]) for effort in ("low", "medium", "high")
    )
    assert high < medium < low


def test_contributions_are_the_slopes_of_the_expected_error() -> None:
    """Against autograd, through the means of the candidates that are left; few of them or all."""
    candidates = draw_candidates(pool=12)
    for kept in (12, 3):
        left = torch.arange(candidates.allowed.shape[1]).expand_as(candidates.allowed) < kept
        left[0, 0] = False  # not the same number everywhere
        weights = left.double().requires_grad_()
        for task in range(3):
            logits = -distances_to_means(candidates, weights, task)
            with torch.no_grad():
                scale = logit_scale(logits.unsqueeze(0), candidates.labels[task : task + 1], SHARPNESS)
            right = (scale * logits).softmax(-1).gather(-1, candidates.labels[task].unsqueeze(-1))
            (1 - right).sum().backward()  # type: ignore[no-untyped-call]
        assert weights.grad is not None
        theirs = (weights.grad * left.sum(-1, keepdim=True)).masked_fill(~left, torch.nan)
        ours = contributions(candidates, left).masked_fill(~left, torch.nan)
        assert torch.allclose(centered(ours), centered(theirs), rtol=0, atol=1e-9, equal_nan=True)


def test_first_contributions_are_the_slopes_where_all_logits_are_level() -> None:
    candidates = draw_candidates()
    weights = candidates.allowed.double().requires_grad_()
    for task in range(3):
        logits = -1e-9 * distances_to_means(candidates, weights, task)
        right = logits.softmax(-1).gather(-1, candidates.labels[task].unsqueeze(-1))
        (1 - right).sum().backward()  # type: ignore[no-untyped-call]
    assert weights.grad is not None
    ours, theirs = (
        centered(values.masked_fill(~candidates.allowed, torch.nan))
        for values in (first_contributions(candidates), weights.grad)
    )
    ratio = (ours / theirs)[candidates.allowed]
    assert ratio.min() > 0
    assert torch.allclose(ratio, ratio[0], rtol=1e-5)


def distances_to_means(candidates: Candidates, weights: Tensor, task: int) -> Tensor:
    """Squared, of the queries of a task to the weighted means of its classes: [R, W]."""
    slots = range(task * candidates.way, (task + 1) * candidates.way)
    pools = [next(label.features for label in candidates.classes if slot in label.slots.tolist()) for slot in slots]
    means = [weights[slot] @ pool / weights[slot].sum() for slot, pool in zip(slots, pools, strict=True)]
    return (candidates.queries(task).unsqueeze(1) - torch.stack(means)).square().sum(-1)


def centered(values: Tensor) -> Tensor:
    """Contributions are known up to a constant per slot."""
    return values - values.nanmean(-1, keepdim=True)


def test_a_pool_as_large_as_the_support_is_taken_whole() -> None:
    catalog, features = world(items=11)
    tasks = search("hardest", (catalog, features))
    assert all(len(set(row["support"] + row["query"])) == 11 for row in tasks.table.to_pylist())


def test_efforts_have_names() -> None:
    with pytest.raises(InputError, match="effort: expected low or medium or high, found 'hihg': did you mean 'high'"):
        search("hardest", world(), effort="hihg")
    with pytest.raises(InputError, match="'rounds'"):
        search("hardest", world(), rounds=2)
