"""Python programs with another order of sets than the one of the tests."""

from __future__ import annotations

import os
import subprocess
import sys


def run_with_another_hash_seed(program: str, *arguments: object, **environment: str) -> str:
    """Run it in a process of its own, whose hash seed differs from that of this one, and give what it prints."""
    seed = "77" if os.environ.get("PYTHONHASHSEED") != "77" else "78"  # where none is set, this process drew one
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={**os.environ, "PYTHONHASHSEED": seed, **environment},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout
