from __future__ import annotations

import torch

from shotproof.learners.adaptation.descent import augment_support

SEEDS = torch.arange(40)


def drawn(channels: int = 3) -> torch.Tensor:
    return torch.randn(40, 4, channels, 16, 24, generator=torch.Generator().manual_seed(0))


def test_changes_are_those_of_the_seed_and_the_step_alone() -> None:
    items = drawn()
    whole = augment_support(items, SEEDS, 3, 0.9)
    assert torch.equal(augment_support(items[7:9], SEEDS[7:9], 3, 0.9), whole[7:9])
    assert not torch.equal(augment_support(items, SEEDS, 4, 0.9), whole)
    assert not torch.equal(augment_support(items, SEEDS + 100, 3, 0.9), whole)


def test_one_coin_decides_for_each_task() -> None:
    items = drawn()
    assert torch.equal(augment_support(items, SEEDS, 0, 0.0), items)
    same = (augment_support(items, SEEDS, 0, 0.5) == items).flatten(2).all(2)
    assert (same.all(1) | (~same).all(1)).all()
    assert 10 <= int(same.all(1).sum()) <= 30


def test_a_spectrogram_is_flipped_and_moved_by_an_eighth_at_most() -> None:
    items = drawn(1)
    shapes = set()
    for task, values in enumerate(augment_support(items, SEEDS, 0, 1.0)):
        flips = set()
        for number, value in enumerate(values):
            found = [
                (flip, down, right)
                for flip in (False, True)
                for down in range(-2, 3)
                for right in range(-3, 4)
                if torch.equal(moved(items[task, number], flip, down, right), value)
            ]
            assert len(found) == 1
            flips.add(found[0][0])
            shapes.add(found[0][1:])
        assert len(flips) == 1
    assert {down for down, _ in shapes} == {-2, -1, 0, 1, 2}
    assert {right for _, right in shapes} == {-3, -2, -1, 0, 1, 2, 3}


def moved(item: torch.Tensor, flip: bool, down: int, right: int) -> torch.Tensor:
    padded = torch.nn.functional.pad(item.flip(-1) if flip else item, (3, 3, 3, 3))
    return padded[:, 3 - down : 19 - down, 3 - right : 27 - right]
