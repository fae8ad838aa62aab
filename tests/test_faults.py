"""Killed, starved or refused, a command tells it in one line, leaves nothing half-written, and goes on to the same."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


def test_twenty_kills_and_one_of_each_other_fault_lose_nothing() -> None:
    command = [sys.executable, "-m", "benchmarks.faults", "--kills", "20", "--share", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", done.stdout, re.MULTILINE))
    assert "killed 20" in outcomes["kill -9"]
    assert "then the same bytes" in outcomes["a worker killed"]
    refused = ("disk full", "disk read-only", "a write cut off", "folder read-only", "memory runs out")
    assert all("one line" in outcomes[fault] for fault in refused)
    assert "went on" not in outcomes["disk full"]
