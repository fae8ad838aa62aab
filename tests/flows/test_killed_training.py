"""Training that is killed at any moment, again and again, ends with the same weights as one that is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import shotproof as sp
from tests.small_networks import SMALL, write_world

pytestmark = pytest.mark.slow

# Torch is imported once; every attempt is a fork of this process. It is killed soon after it has written some
# checkpoints, at a moment that nobody chose: in an update, a validation, a write.
SCRIPT = """
import json, os, random, signal, sys, time
import torch
torch.set_num_threads(1)
import shotproof as sp
from shotproof.training.train import train
settings = json.loads(sys.argv[1])
catalog = sp.read("catalog.parquet")
runtime = sp.runtime(cache="cache", workers=1, progress=False, device="cpu")
draw = random.Random()

def written():
    try:
        return os.stat("killed.model.checkpoint").st_mtime_ns
    except FileNotFoundError:
        return None

def attempt(output, checkpoints=None):
    before, child = written(), os.fork()
    if not child:
        try:
            train(catalog, "protonet", output=output, runtime=runtime, **settings)
        except BaseException as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    while checkpoints != 0:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert status == 0, status
            return "ended"
        if checkpoints and written() not in (None, before):
            before, checkpoints = written(), checkpoints - 1
        time.sleep(0.001)
    time.sleep(0.01 * draw.random())
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "killed"

assert attempt("whole.model") == "ended"
print(json.dumps([attempt("killed.model", draw.randint(1, 3)) for _ in range(2)] + [attempt("killed.model")]))
"""


def test_killed_at_any_moment_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    write_world(tmp_path / "world").write(tmp_path / "catalog.parquet")
    settings = {**SMALL, "epochs": 12, "optimizer": "adam", "schedule": "cosine"}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(sp.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(settings)],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout)[:2] == ["killed", "killed"]
    assert (tmp_path / "killed.model").read_bytes() == (tmp_path / "whole.model").read_bytes()
    assert (tmp_path / "killed.model.jsonl").read_bytes() == (tmp_path / "whole.model.jsonl").read_bytes()
    assert not list(tmp_path.glob("*.checkpoint"))
