"""No change may alter which tasks a sampler draws, nor what a method counts on them."""

from __future__ import annotations

import pytest

from shotproof.learners.method import methods
from shotproof.tasks.sampler import samplers
from tests.pinned.counts import COUNTS, Count, count
from tests.pinned.draws import DRAWS, Draw, draw, pin_of
from tests.pinned.pins import pins


@pytest.mark.parametrize("call", DRAWS, ids=lambda call: call.id)
def test_tasks_are_those_that_were_pinned(call: Draw) -> None:
    assert pin_of(draw(call)) == pins()["tasks"][call.id]


@pytest.mark.filterwarnings("ignore:method '(laplacianshot|paddle).*at most half of the classes")
@pytest.mark.parametrize("call", COUNTS, ids=lambda call: call.id)
def test_counts_are_those_that_were_pinned(call: Count) -> None:
    assert count(call) == pins()["counts"][call.id]


def test_every_pin_has_its_call() -> None:
    assert list(pins()["tasks"]) == [call.id for call in DRAWS]
    assert list(pins()["counts"]) == [call.id for call in COUNTS]


def test_every_sampler_and_method_is_pinned() -> None:
    assert set(samplers.names()) <= {call.sampler.replace("_", "-") for call in DRAWS}
    on_features = {name for name in methods.names() if methods.get(name).needs != "items"}
    assert on_features <= {call.method for call in COUNTS}
