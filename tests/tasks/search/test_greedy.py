"""Greedy search against all supports there are, on pools that are small enough."""

from __future__ import annotations

import itertools

import torch

from shotproof.tasks.sampler import SamplerInputs
from shotproof.tasks.search.greedy import Greedy
from shotproof.tasks.taskset import TaskShape
from tests.searched_tasks import accuracy, draw_candidates, loss_of, search, world


def test_with_one_shot_in_two_classes_it_finds_the_hardest_of_all_supports() -> None:
    catalog, features = world()
    candidates = draw_candidates(tasks=6, way=2, pool=4, query=3, shot=1)
    inputs = SamplerInputs(catalog, TaskShape(2, 1, 3), 0, features=features)
    chosen = Greedy(rounds=8).bound(inputs).choose(candidates, torch.arange(6).numpy())
    best = 0
    for task in range(6):
        losses = {}
        for first, second in itertools.product(range(4), repeat=2):
            weights = torch.zeros(candidates.allowed.shape, dtype=torch.float64)
            weights[2 * task, first] = weights[2 * task + 1, second] = 1
            losses[first, second] = float(loss_of(candidates, weights, 1.0, task))
        found = tuple(int(chosen[2 * task + slot].int().argmax()) for slot in range(2))
        # No single swap does better, and as a rule nothing does.
        assert all(losses[found] >= losses[i, found[1]] and losses[found] >= losses[found[0], i] for i in range(4))
        best += losses[found] == max(losses.values())
    assert best >= 4


def test_rounds_never_lower_the_loss_and_are_recorded() -> None:
    given = world()
    accuracies = [accuracy(search("greedy", given, rounds=rounds), given[1]) for rounds in (1, 2)]
    assert accuracies[1] <= accuracies[0] + 0.02
    assert search("greedy", given, rounds=3, tasks=1).record.options["rounds"] == 3
