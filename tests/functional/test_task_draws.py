from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from shotproof.core import draws
from shotproof.functional import task_draws

whole = st.integers(0, 2**62)


@settings(deadline=None)
@given(seed=whole, first=whole, second=whole)
def test_the_bits_are_those_of_draws(seed: int, first: int, second: int) -> None:
    random = task_draws.bits(*(torch.tensor([value]) for value in (seed, first, second)))
    assert random.numpy().view(np.uint64)[0] == draws.bits(seed, first, second)


def test_numbers_follow_their_distributions() -> None:
    seeds, counter = torch.tensor([[7]]), torch.arange(20_000)
    uniform = task_draws.uniform(task_draws.bits(seeds, counter))[0]
    assert kstest(uniform.numpy(), "uniform").pvalue > 0.01
    normal = task_draws.normal(seeds, counter)[0]
    assert kstest(normal.numpy(), "norm").pvalue > 0.01


def test_permutations_are_whole_and_a_task_has_its_own() -> None:
    both = task_draws.permutation(torch.tensor([3, 4]), 1, size=50)
    assert both.sort(-1).values.tolist() == [list(range(50))] * 2
    assert not torch.equal(both[0], both[1])
    assert torch.equal(both[1:], task_draws.permutation(torch.tensor([4]), 1, size=50))
    assert not torch.equal(both, task_draws.permutation(torch.tensor([3, 4]), 2, size=50))
