"""A million items with twenty words each: time and memory of `shotproof sample`, loading included."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.fixture import caption_like


def run() -> None:
    """Draw 1,000 tasks from 1,000 classes x 1,000 items, 20 words each of 5,000, in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        catalog, attributes = caption_like(1000, 1000, 5000, 1500, (20, 20))
        catalog.write(root / "catalog.parquet")
        attributes.write(root / "attributes.parquet")
        del catalog, attributes
        for sampler in ("fewstab", "random"):
            command = [sys.executable, "-m", "shotproof", "sample", "catalog.parquet", "--sampler", sampler]
            command += ["--tasks", "1000", "-o", "tasks.parquet"]
            command += ["attributes.parquet"] if sampler == "fewstab" else []
            start = time.perf_counter()
            process = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0, f"shotproof sample failed with status {process.returncode}"
            print(
                f"{sampler}: 1,000 tasks from 1,000,000 items: {seconds:.1f} s, {usage.ru_maxrss / 1e6:.2f} GB at most"
            )
