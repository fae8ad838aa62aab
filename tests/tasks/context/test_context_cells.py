from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shotproof.core.draws import bits
from shotproof.tasks.context.context_cells import allocate_evenly, draw_true_index


@given(st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4), min_size=1, max_size=5), st.integers(0, 2**32))
def test_gives_one_by_one_round_after_round(capacity: list[list[int]], seed: int) -> None:
    order = np.random.default_rng(seed).permuted(np.tile(np.arange(4), (len(capacity), 1)), axis=1)
    total = min(map(sum, capacity))
    allocated = allocate_evenly(np.array(capacity), order, total)
    for room, places, got in zip(capacity, order.tolist(), allocated.tolist(), strict=True):
        expected, left = [0] * 4, total
        while left:
            for place in places:
                if left and expected[place] < room[place]:
                    expected[place] += 1
                    left -= 1
        assert got == expected


def test_picks_a_true_value_uniformly() -> None:
    possible = np.tile(np.array([False, True, False, True, True]), (30_000, 1))
    counts = np.bincount(draw_true_index(possible, bits(0, np.arange(len(possible)))), minlength=5)
    assert counts[[0, 2]].tolist() == [0, 0]
    assert np.abs(counts[[1, 3, 4]] - 10_000).max() < 4 * np.sqrt(10_000 * 2 / 3)
    assert draw_true_index(np.zeros((1, 3), dtype=np.bool_), bits(0, np.arange(1))).tolist() == [0]
