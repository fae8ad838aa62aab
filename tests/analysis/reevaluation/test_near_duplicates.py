from __future__ import annotations

import re

import numpy as np
import pytest
from benchmarks.unusual_worlds import UnusualWorld

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.reevaluation.near_duplicates import near_duplicates
from shotproof.comparison.comparison import Comparison
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.tasks.sampler import sample

LABELS = np.repeat(np.arange(10), 40)


def rows(dimensions: int, per_source: int, seed: int = 0) -> np.ndarray:
    """Ten classes of 40 items; those of one source lie next to each other and differ by little."""
    random = np.random.default_rng(seed)
    means = 3 * random.normal(size=(10, 1, dimensions))
    sources = random.normal(size=(10, 40 // per_source, dimensions)).repeat(per_source, axis=1)
    noise = 0.1 * random.normal(size=sources.shape) if per_source > 1 else 0.0
    return (means + sources + noise).reshape(-1, dimensions)


@pytest.mark.parametrize("dimensions", [1, 2, 8, 200])
def test_independent_items_are_no_near_duplicates(dimensions: int) -> None:
    assert near_duplicates(rows(dimensions, 1), LABELS) is None
    heavy = np.random.default_rng(1).standard_t(4, size=(400, dimensions))
    assert near_duplicates(heavy, LABELS) is None


@pytest.mark.parametrize("dimensions", [16, 200])
def test_twins_are_found_with_their_twins(dimensions: int) -> None:
    found = near_duplicates(rows(dimensions, 2), LABELS)
    assert found is not None
    twins = np.arange(400) // 2
    together = found[0::2] == found[1::2]
    assert together.mean() > 0.9
    # Nobody is with somebody else's twin.
    assert all(len(set(twins[found == group].tolist())) == 1 for group in set(found.tolist()))


def test_small_and_equal_items_do_no_harm() -> None:
    assert near_duplicates(np.zeros((400, 3)), LABELS) is None
    assert near_duplicates(np.random.default_rng(0).normal(size=(20, 3)), np.repeat([0, 1, 2, 3], 5)) is None


def test_near_duplicates_that_nobody_has_told_widen_the_interval_as_told_ones_do() -> None:
    def compared(told: bool) -> Comparison:
        world = UnusualWorld("twins", classes=8, sizes=(40, 40), per_source=2, known_sources=told)
        random = np.random.default_rng(0)
        catalog, features = world.draw(world.draw_means(random), random)
        tasks = sample(catalog, "random", way=3, shot=2, query=5, tasks=300)
        inputs = Inputs([evaluate(tasks, features, "ncc")], [tasks], [catalog], [features], halvings=40)
        return compare(inputs, intervals="images", runtime=Runtime(workers=1))

    told, untold = (compared(one) for one in (True, False))
    assert told.notes == []
    (note,) = untold.notes
    assert re.search(r"items are near-duplicates .* stay together", note)
    widths = [one.groups[0].rows[0].intervals["acc"]["images"].half_width for one in (told, untold)]
    assert widths[1] == pytest.approx(widths[0], rel=0.3)
