from __future__ import annotations

import pytest

from shotproof.core.runtime.time_costs import TRIAL_SECONDS, cost_note, duration, timed


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (3, "10 seconds"),
        (34, "30 seconds"),
        (89, "90 seconds"),
        (2_380, "40 minutes"),
        (5_000, "83 minutes"),
        (7_300, "2 hours"),
        (200_000, "56 hours"),
        (900_000, "10 days"),
    ],
)
def test_a_duration_is_in_the_unit_that_people_would_use(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_the_note_names_the_time_the_device_and_the_amount() -> None:
    assert cost_note("method 'lora'", 310, "cpu", "6 tasks") == (
        "method 'lora': about 5 minutes on this CPU for 6 tasks"
    )
    assert "on this GPU" in cost_note("training protonet", 310, "cuda", "2 epochs")


@pytest.mark.parametrize(("seconds_per_step", "told"), [(1.0, [200.0]), (0.1, []), (20.0, [4000.0])])
def test_long_work_is_told_once_after_a_trial(seconds_per_step: float, told: list[float]) -> None:
    now, seen, bar = [0.0], [], []
    step = timed(bar.append, 200, seen.append, clock=lambda: now[0])
    for _ in range(20):
        now[0] += seconds_per_step
        step(1)
        assert not seen or now[0] >= TRIAL_SECONDS
    assert seen == told
    assert sum(bar) == 20
