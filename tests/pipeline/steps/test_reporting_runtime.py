"""What is logged about work that takes minutes."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from shotproof.core.runtime.runtime import Runtime, current_runtime
from shotproof.pipeline.steps.reporting_runtime import ReportingRuntime, WorkReport


def messages(caplog: pytest.LogCaptureFixture, steps: int, seconds: float, total: int) -> list[str]:
    """What is logged while `steps` outputs arrive, one every so many seconds."""
    times: Iterator[float] = (seconds * number for number in range(steps))
    report = WorkReport("encoding by lite0", total, lambda: next(times))
    with caplog.at_level(logging.INFO, logger="shotproof"):
        for _ in range(steps):
            report.advance(10)
    return caplog.messages


def test_after_a_few_seconds_the_whole_time_and_the_rate_are_said(caplog: pytest.LogCaptureFixture) -> None:
    said = messages(caplog, steps=20, seconds=1.0, total=18_000)
    assert said == ["encoding by lite0: 18,000 items, about 30 minutes (10 a second)"]


def test_every_minute_what_is_done_is_said(caplog: pytest.LogCaptureFixture) -> None:
    said = messages(caplog, steps=130, seconds=1.0, total=18_000)
    assert said[1:] == [
        "encoding by lite0: 660 of 18,000 items, 10 a second, about 29 minutes left",
        "encoding by lite0: 1,260 of 18,000 items, 10 a second, about 28 minutes left",
    ]


def test_short_work_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert messages(caplog, steps=20, seconds=1.0, total=200) == []


def test_starting_processes_is_not_part_of_the_rate(caplog: pytest.LogCaptureFixture) -> None:
    times = iter([100.0, 103.0, 106.0])  # the first outputs come after 100 seconds
    report = WorkReport("encoding", 1_000, lambda: next(times))
    with caplog.at_level(logging.INFO, logger="shotproof"):
        for _ in range(3):
            report.advance(10)
    assert caplog.messages == ["encoding: 1,000 items, about 5 minutes (3.33 a second)"]


def test_the_outputs_and_the_settings_are_those_of_the_runtime() -> None:
    runtime = Runtime(workers=2, cache=None)
    reporting = ReportingRuntime.of(runtime)
    assert list(reporting.map(abs, [-1, 2, -3], title="absolute values")) == [1, 2, 3]
    with reporting:
        assert (current_runtime().workers, current_runtime().cache) == (2, None)
