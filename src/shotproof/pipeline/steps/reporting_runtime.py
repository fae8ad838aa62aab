"""Runtime that logs how long its work takes and how far it is, for work of minutes that no progress bar shows."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, fields
from typing import Self

from shotproof.core.runtime.engine import Needs
from shotproof.core.runtime.progress import TRIAL_SECONDS, WORTH_REPORTING, duration
from shotproof.core.runtime.runtime import Input, Output, Runtime
from shotproof.core.runtime.worker import in_worker

logger = logging.getLogger("shotproof")

SECONDS_BETWEEN_REPORTS = 60.0


@dataclass(frozen=True)
class ReportingRuntime(Runtime):
    """The same settings as another runtime; after a few seconds of work, and every minute, it logs a line."""

    @classmethod
    def of(cls, runtime: Runtime) -> Self:
        """Return a runtime with these settings."""
        return cls(**{setting.name: getattr(runtime, setting.name) for setting in fields(runtime)})

    def _map(
        self,
        work: Callable[[Input], Output],
        inputs: Sequence[Input],
        title: str | None,
        steps: Callable[[Input], int],
        chunk: int,
        needs: Needs,
    ) -> Generator[Output, None, None]:
        outputs = super()._map(work, inputs, title, steps, chunk, needs)
        if title is None or in_worker():
            yield from outputs
            return
        sizes = [steps(value) for value in inputs]
        report = WorkReport(title, sum(sizes))
        with contextlib.closing(outputs):
            for size, output in zip(sizes, outputs, strict=True):
                report.advance(size)
                yield output


class WorkReport:
    """Reports on one piece of work: how long all of it takes, then how much of it is done, and how fast."""

    def __init__(self, title: str, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.title, self.total, self._clock = title, total, clock
        self._done = self._first = 0
        self._start: float | None = None  # when the first outputs were there: what comes before is starting processes
        self._next = 0.0

    def advance(self, steps: int) -> None:
        """Count steps that are done, and log a line if it is time for one."""
        self._done += steps
        now = self._clock()
        if self._start is None:
            self._start, self._first, self._next = now, self._done, now + TRIAL_SECONDS
            return
        if now < self._next:
            return
        rate = (self._done - self._first) / (now - self._start)
        left = (self.total - self._done) / rate
        is_first = self._next == self._start + TRIAL_SECONDS
        self._next = now + SECONDS_BETWEEN_REPORTS
        if is_first and left >= WORTH_REPORTING:
            logger.info(
                "%s: %s items, about %s (%.3g a second)",
                self.title,
                f"{self.total:,}",
                duration(self.total / rate),
                rate,
            )
        elif not is_first:
            logger.info(
                "%s: %s of %s items, %.3g a second, about %s left",
                self.title,
                f"{self._done:,}",
                f"{self.total:,}",
                rate,
                duration(left),
            )
