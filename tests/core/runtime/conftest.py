"""Fixtures that run scripts as a user runs them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

RunScript = Callable[..., str]


@pytest.fixture
def run_script(tmp_path: Path) -> RunScript:
    """Run a script with `python FILE`, `python -` or `python -c`, and return its output."""

    def run(code: str, how: str = "file") -> str:
        (tmp_path / "script.py").write_text(code)
        arguments = {"file": ["script.py"], "stdin": ["-"], "-c": ["-c", code]}[how]
        done = subprocess.run(
            [sys.executable, *arguments],
            input=code if how == "stdin" else "",
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    return run
