"""Ctrl-C and want of memory end a command at once with one line, whatever threads and workers are doing."""

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
    command = "evaluate tasks.parquet features.parquet --method slow.py:Slow --workers 2 -o results.parquet"
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
    assert told.startswith("error: interrupted; ")
    assert told.count("\n") == 1
    assert "the same command again" in told
    assert "cache is kept" in told
    assert running.returncode == 130
    assert not (tmp_path / "results.parquet").exists()


WITHOUT_MEMORY = """
import shotproof as sp

class Loud:
    def __del__(self):
        raise MemoryError  # as much does at an ordinary exit without memory

class Full(sp.Method):
    loud = Loud()

    def scores(self, support, labels, query, way):
        list(sp.runtime(workers=2).map(abs, [1, 2], title=None))  # leaves worker processes
        raise MemoryError
"""


def test_want_of_memory_is_one_line(tmp_path: Path) -> None:
    tasks, features = draw_task_set()
    tasks.write(tmp_path / "tasks.parquet")
    features.write(tmp_path / "features.parquet")
    (tmp_path / "full.py").write_text(WITHOUT_MEMORY)
    command = "evaluate tasks.parquet features.parquet --method full.py:Full -o results.parquet"
    done = subprocess.run(
        [sys.executable, "-m", "shotproof", *command.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "memory" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
