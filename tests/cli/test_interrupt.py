"""Ctrl-C ends a command at once, whatever its threads are doing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.drawn_tasks import draw_task_set

pytestmark = pytest.mark.slow

# Ends by itself long after anybody would have waited for it.
SLOW = """
import pathlib, time
import shotproof as sp

class Slow(sp.Method):
    def scores(self, support, labels, query, way):
        pathlib.Path("begun").touch()
        time.sleep(60)
        return query.new_zeros(*query.shape[:2], way)
"""


def test_ctrl_c_ends_an_evaluation_at_once(tmp_path: Path) -> None:
    tasks, features = draw_task_set()
    tasks.write(tmp_path / "tasks.parquet")
    features.write(tmp_path / "features.parquet")
    (tmp_path / "slow.py").write_text(SLOW)
    command = "evaluate tasks.parquet --features features.parquet --method slow.py:Slow --workers 2 -o results.parquet"
    running = subprocess.Popen(
        [sys.executable, "-m", "shotproof", *command.split()],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # ignored where tests run unseen
    )
    for _ in range(600):
        if (tmp_path / "begun").exists() or running.poll() is not None:
            break
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=20)
    assert told == "error: interrupted; what the cache has is kept, the same command continues from there\n"
    assert running.returncode == 130
    assert not (tmp_path / "results.parquet").exists()
