from __future__ import annotations

import pytest
import torch

from shotproof.models.backbones.resnet12 import DropBlock, advance_drop_blocks


@pytest.mark.parametrize(("side", "share"), [(10, 0.0111), (5, 0.1)])
def test_squares_begin_at_the_rate_of_the_paper(side: int, share: float) -> None:
    """Where no two squares overlap, as at so low a rate, the dropped cells are the squares' cells."""
    torch.manual_seed(0)
    block = DropBlock(0.1, 5, warm_up=0).train()
    dropped = block(torch.ones(400, 64, side, side)) == 0
    corners = (side - 4) ** 2
    missed = dropped.flatten(2).any(2).float().mean().item()
    assert missed == pytest.approx(1 - (1 - share) ** corners, rel=0.03)


def test_what_is_dropped_are_whole_squares_and_the_mean_stays() -> None:
    torch.manual_seed(0)
    maps = DropBlock(0.1, 3, warm_up=0).train()(torch.ones(200, 32, 8, 8))
    assert maps.mean().item() == pytest.approx(1, abs=1e-4)
    holes = (maps == 0).float()
    # Every dropped cell lies in a 3 x 3 square of dropped cells.
    squares = torch.nn.functional.avg_pool2d(holes, 3, 1) == 1
    covered = torch.nn.functional.max_pool2d(torch.nn.functional.pad(squares.float(), (2, 2, 2, 2)), 3, 1)
    assert torch.equal(covered, holes)


def test_the_rate_rises_with_the_updates() -> None:
    block = DropBlock(0.2, 3, warm_up=100)
    for updates, rate in ((0, 0.0), (50, 0.1), (100, 0.2), (1000, 0.2)):
        advance_drop_blocks(torch.nn.Sequential(block), updates)
        assert block.rate_now.item() == pytest.approx(rate)
    assert not block.state_dict()  # the rate follows from the update, and is no weight


def test_evaluation_leaves_maps_as_they_are() -> None:
    maps = torch.randn(2, 3, 8, 8)
    assert torch.equal(DropBlock(0.5, 3, 0).eval()(maps), maps)
