"""Time and memory of a command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SECONDS_BETWEEN_LOOKS = 0.02


@dataclass(frozen=True)
class Cost:
    """Cost of a command: clock time, processor time, and peak memory."""

    seconds: float
    processor: float
    gigabytes: float


def watch(command: str, folder: Path, memory: Callable[[int], float]) -> Cost:
    """Run a shotproof command in a folder and measure it.

    Memory is polled: the peak that the system reports for a child at its end includes its parent's.

    Args:
        command: the arguments of `shotproof`
        folder: where it runs; its output goes to a file there
        memory: returns the gigabytes that a process holds, by its id; 0 if it has just ended

    Returns:
        The cost of the command.
    """
    log = folder / "said"
    started = time.perf_counter()
    with log.open("w") as output:
        arguments = [sys.executable, "-m", "shotproof", *command.split()]
        process = subprocess.Popen(arguments, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        ended, peak = 0, 0.0
        while not ended:
            peak = max(peak, memory(process.pid))
            time.sleep(SECONDS_BETWEEN_LOOKS)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"shotproof {command[:200]} ended with status {process.returncode}: {log.read_text()[-2000:]}")
    return Cost(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, peak)
