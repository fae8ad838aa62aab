from __future__ import annotations

import random

import numpy as np
import torch

from shotproof.learners.custom.generators import shared_generators


def draws() -> list[float]:
    return [random.random(), float(np.random.random()), float(torch.rand(()))]


def test_the_same_seed_gives_the_same_draws_of_all_three() -> None:
    with shared_generators() as generators:
        generators.seed(3)
        first = draws()
        generators.seed(3)
        assert draws() == first
        generators.seed(4)
        assert all(draw != other for draw, other in zip(draws(), first, strict=True))


def test_they_are_left_as_they_were() -> None:
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    expected = draws()
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    with shared_generators() as generators:
        generators.seed(9)
        draws()
    assert draws() == expected


def test_each_kind_of_draw_is_noticed() -> None:
    with shared_generators() as generators:
        for draw in (random.random, np.random.random, lambda: torch.rand(2)):
            generators.seed(5)
            assert not generators.drawn_from()
            draw()
            assert generators.drawn_from()
