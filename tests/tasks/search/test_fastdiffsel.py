"""FastDiffSel's gradient against autograd, and one step of it written out."""

from __future__ import annotations

import pytest
import torch

from shotproof.core.errors import InputError
from shotproof.tasks.search.fastdiffsel import FastDiffSel, weight_gradient
from tests.searched_tasks import accuracy, draw_candidates, loss_of, search, world


def test_the_gradient_agrees_with_autograd() -> None:
    candidates = draw_candidates()
    weights = torch.rand(candidates.allowed.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    moving = (weights * candidates.allowed).requires_grad_()
    sum(loss_of(candidates, moving, 0.7, task) for task in range(3)).backward()  # type: ignore[union-attr]
    ours = weight_gradient(candidates, moving.detach(), 0.7)
    assert moving.grad is not None
    assert torch.allclose(ours, moving.grad, rtol=0, atol=1e-9)


def test_a_huge_step_ranks_by_the_gradient_and_a_tiny_one_by_the_random_weights() -> None:
    candidates = draw_candidates(tasks=2, way=3)
    drawn = torch.rand(candidates.allowed.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    weights = drawn * candidates.allowed
    chosen = FastDiffSel(alpha=1e-12).choose(candidates, lambda purpose: drawn)
    assert (weights[chosen].view(6, 2).amin(1) >= weights.masked_fill(chosen, 0).amax(1)).all()
    chosen = FastDiffSel(alpha=1e12).choose(candidates, lambda purpose: drawn)
    gradient = weight_gradient(candidates, weights, 1.0).masked_fill(~candidates.allowed, -torch.inf)
    assert (gradient[chosen].view(6, 2).amin(1) >= gradient.masked_fill(chosen, -torch.inf).amax(1)).all()


def test_a_step_up_the_mean_is_as_long_as_one_up_the_sum_with_alpha_over_the_number_of_queries() -> None:
    given = world()
    mean, same, summed = (
        search("fastdiffsel", given, **options)
        for options in ({"loss": "mean", "alpha": 20.0}, {"alpha": 20 / 32}, {"alpha": 20.0})
    )
    assert mean.digest == same.digest
    assert accuracy(summed, given[1]) < accuracy(mean, given[1])
    assert summed.record.options["loss"] == "sum"
    with pytest.raises(InputError, match="loss: expected sum or mean, found 'means': did you mean 'mean'"):
        search("fastdiffsel", given, loss="means")


def test_more_steps_still_give_tasks_and_are_recorded() -> None:
    given = world()
    tasks = search("fastdiffsel", given, steps=3, alpha=50, scale=2)
    assert tasks.record.options == {
        "mode": "hard",
        "normalize": False,
        "skip_small_classes": False,
        "loss": "sum",
        "alpha": 50.0,
        "steps": 3,
        "scale": 2.0,
    }
    assert 0 < accuracy(tasks, given[1]) < 1
