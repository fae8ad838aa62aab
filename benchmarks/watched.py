"""A command in a process of its own, and what it took."""

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
    """What a command took: by the clock, of the processors, and memory at most."""

    seconds: float
    processor: float
    gigabytes: float


def watch(command: str, folder: Path, memory: Callable[[int], float]) -> Cost:
    """Run a command of ours in a folder.

    Its memory is looked at again and again: what the system counts of a child at its end begins with its parent's.

    Args:
        command: what stands behind `shotproof`
        folder: where it runs; what it says goes into a file there
        memory: from the number of a process to the gigabytes it holds; 0 if it has just ended

    Returns:
        What it took.
    """
    log = folder / "said"
    started = time.perf_counter()
    with log.open("w") as said:
        words = [sys.executable, "-m", "shotproof", *command.split()]
        process = subprocess.Popen(words, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
        ended, most = 0, 0.0
        while not ended:
            most = max(most, memory(process.pid))
            time.sleep(SECONDS_BETWEEN_LOOKS)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"shotproof {command[:200]} ended with status {process.returncode}: {log.read_text()[-2000:]}")
    return Cost(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, most)
