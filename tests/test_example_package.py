"""The example of a package that adds a method: installed as a user would, found by its entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "shotproof-median"

# What the contract asks of every method, of the installed one.
CHECK = """
import json, torch
from shotproof.core.errors import InputError
from shotproof.methods.method import make_method, methods
from tests.drawn_tasks import draw
batch = draw(tasks=3)
method = make_method("median(norm=2)")
scores = method.scores(*batch)
alone = method.scores(batch.support[1:2], batch.labels[1:2], batch.query[1:2], batch.way)
members = batch.support[0][batch.labels[0] == 2]
median = members.sort(0).values[(len(members) - 1) // 2]
distance = (batch.query[0] - median).norm(dim=-1)
try:
    make_method("median(nrom=2)")
except InputError as error:
    told = str(error)
print(json.dumps({
    "told": told,
    "registered": "median" in methods.names(),
    "alone": bool(torch.allclose(alone[0], scores[1])),
    "right": bool(torch.allclose(-distance, scores[0, :, 2], atol=1e-5)),
}))
"""


def test_an_installed_package_adds_its_method(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "installed"
    source.mkdir()
    for path in EXAMPLE.rglob("*"):
        if path.is_file() and path.suffix in (".toml", ".py") and "build" not in path.parts:
            copy = source / path.relative_to(EXAMPLE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    subprocess.run(
        [*install, "--no-deps", "--no-build-isolation", "--target", str(target), str(source)], check=True, text=True
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), str(EXAMPLE.parents[1])])}
    done = subprocess.run([sys.executable, "-c", CHECK], check=True, text=True, capture_output=True, env=environment)
    told = "method 'median' has no option 'nrom': did you mean 'norm'? (known: norm)"
    assert json.loads(done.stdout) == {"told": told, "registered": True, "alone": True, "right": True}
