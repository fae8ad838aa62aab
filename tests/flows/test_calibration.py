"""The instrument reads what was dialed: no gap without a lean on the context, and a larger gap for a larger lean.

A sampler that claims to expose shortcuts joins by one line in EXPOSING.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from benchmarks.calibration import Reading, calibrate

from shotproof.tasks.sampler import sample
from shotproof.worlds.shapes import ShapesWorld

pytestmark = pytest.mark.slow

# Sampler: what it needs beside the catalog.
EXPOSING: dict[str, Callable[[ShapesWorld], dict[str, Any]]] = {
    "fewstab": lambda world: {"attributes": world.attributes()},
}
METHODS = ["ncc", "cosine"]


@pytest.fixture(scope="module", params=[1, 5], ids=["1-shot", "5-shot"])
def shot(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module", params=EXPOSING)
def readings(request: pytest.FixtureRequest, shot: int) -> list[Reading]:
    world = ShapesWorld()
    catalog = world.catalog()
    random = sample(catalog, "random", shot=shot, tasks=300, seed=0)
    biased = sample(catalog, request.param, shot=shot, tasks=300, seed=0, **EXPOSING[request.param](world))
    return calibrate(catalog, random, biased, methods=METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_no_gap_without_a_lean_on_the_context(readings: list[Reading], method: str) -> None:
    unbiased = next(reading for reading in readings if reading.method == method and reading.share == 0)
    gap = unbiased.gap(level=0.99)
    # Zero is inside, and not because the interval is wide.
    assert gap.half_width < 1.5
    assert gap.low <= 0 <= gap.high


@pytest.mark.parametrize("method", METHODS)
def test_the_gap_rises_at_every_step(readings: list[Reading], method: str) -> None:
    by_share = [reading for reading in readings if reading.method == method]
    for lower, higher in pairwise(by_share):
        assert higher.rise(lower, level=0.9).low > 0, f"from share {lower.share} to {higher.share}"


@pytest.mark.parametrize("method", METHODS)
def test_random_tasks_stay_between_chance_and_certainty(readings: list[Reading], method: str) -> None:
    # Otherwise a gap would have no room to show.
    means = [reading.random.mean() for reading in readings if reading.method == method]
    assert 25 < min(means) < max(means) < 95


def test_random_tasks_expose_nothing() -> None:
    # The other way to be wrong: an instrument that reads a gap where tasks are not biased at all.
    catalog = ShapesWorld().catalog()
    first, second = (sample(catalog, "random", shot=5, tasks=300, seed=seed) for seed in (0, 1))
    (reading,) = calibrate(catalog, first, second, methods=["ncc"], shares=[0.6])
    gap = reading.gap(level=0.99)
    assert gap.low <= 0 <= gap.high
