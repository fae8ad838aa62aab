"""No script of a user needs a guard: every public function that computes, with workers, from wherever Python runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

# Appends to a file what it has done: a worker that ran the script again would append it again.
SCRIPT = """
import pathlib
import numpy as np
import shotproof as sp

def note(what):
    with open("noted.txt", "a") as file:
        file.write(what + "\\n")

note("start")

class Nearest(sp.Method):
    about = "made here"
    def scores(self, support, labels, query, way):
        import torch
        centers = torch.stack([
            torch.stack([rows[label == c].mean(0) for c in range(way)])
            for rows, label in zip(support, labels)
        ])
        return -torch.cdist(query, centers)

with sp.runtime(workers=2, cache=pathlib.Path("cache"), progress=False):
    catalog = sp.worlds.ShapesWorld(classes=10, items=44, size=24).write("shapes")
    sp.methods.register("nearest", Nearest)
    note(f"check {len(sp.analysis.check_catalog(catalog))}")
    attributes = sp.detect(catalog, "photometric")
    note("detect")
    features = sp.encode(catalog, "pixels(size=8)")
    note("encode")
    shape = dict(way=3, shot=2, query=5, tasks=600)
    random = sp.sample(catalog, "random", **shape)
    biased = sp.sample(catalog, "fewstab", attributes=attributes, **shape)
    note(f"sample {random.digest}")
    results = [sp.evaluate(tasks, features, ["ncc", "nearest"]) for tasks in (random, biased)]
    note("evaluate")
    study = sp.Study.of([*results, random, biased, catalog, features, attributes], halvings=4)
    comparison = study.compare(intervals=["sampler", "images"])
    note(f"compare {len(comparison.gaps)}")
    study.report("report.html", comparison=study.compare(intervals="sampler"))
    note("report")
    pathlib.Path("experiment.toml").write_text('''
[catalog]
root = "shapes"
[attributes]
detectors = ["photometric"]
[features]
encoders = ["pixels(size=8)"]
[tasks]
way = 3
shots = [2]
query = 5
tasks = 300
[evaluate]
methods = ["ncc", "nearest"]
[output]
intervals = ["sampler"]
''')
    sp.run("experiment.toml")
    note("run")
note("end")
"""
STEPS = ["start", "check", "detect", "encode", "sample", "evaluate", "compare", "report", "run", "end"]


# In a notebook Python finds its main module in another way; so does a script from standard input, of which
# tests/core/runtime/test_scripts.py is.
SHORTER = SCRIPT.split("    study =")[0] + 'note("end")\n'


def _noted(folder: Path) -> list[str]:
    return [line.split()[0] for line in (folder / "noted.txt").read_text().splitlines()]


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONWARNINGS": "default"}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert _noted(tmp_path) == STEPS
    assert (tmp_path / "report.html").is_file()


def test_a_notebook_cell_runs_once_too(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SHORTER)])
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert _noted(tmp_path) == [*STEPS[: STEPS.index("compare")], "end"]
