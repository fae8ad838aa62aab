"""The example of a package that adds components: installed as a user would, found by their entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[1] / "examples" / "shotproof-median"

# What the contract asks of every method, of the installed one.
CHECK = """
import json, torch
from shotproof.core.errors import InputError
from shotproof.learners.adaptation.adaptation import DecodedTasks
from shotproof.learners.method import make_method, methods
from shotproof.models.model import weights_digest
from tests.drawn_tasks import draw
batch = draw(tasks=3)
method = make_method("median(norm=2)")
scores = method.scores(*batch)
alone = method.scores(batch.support[1:2], batch.labels[1:2], batch.query[1:2], batch.way)
members = batch.support[0][batch.labels[0] == 2]
median = members.sort(0).values[(len(members) - 1) // 2]
distance = (batch.query[0] - median).norm(dim=-1)

import shotproof as sp
from pathlib import Path
from tests.small_networks import SMALL, write_world
world = write_world(Path("world"))
with sp.runtime(cache=None, workers=1, progress=False, device="cpu"):
    model = sp.train(world, "median(scale=0.2)", output="some.model", **{**SMALL, "backbone": "tiny(filters=8)"})
    tasks = sp.sample(world, "random", split="val", way=3, shot=2, query=3, tasks=4)
    features = sp.encode(world.in_split("val"), "model:some.model")
    results = sp.evaluate(tasks, features, ["model:some.model", "median"])
    adapted = sp.evaluate(
        tasks, catalog=world, model=model, methods=["median-steps(steps=0)", "median-steps(rate=0.02)"]
    )

def decoded(rows):
    support, query = (torch.rand(3, n, *model.preprocessing.shape, generator=draws(n)) for n in (6, 9))
    labels = torch.arange(3).repeat_interleave(2).expand(3, -1)
    return DecodedTasks(support[rows], labels[rows], query[rows], None, torch.arange(3)[rows], 3)

def draws(seed):
    return torch.Generator().manual_seed(seed)

steps, net = make_method("median-steps(steps=3)"), model.network()
with torch.no_grad():
    moved, still = (one.adapted_scores(model, net, decoded(slice(3))) for one in (steps, steps.with_rate(1e-9)))
    moved_alone = steps.adapted_scores(model, net, decoded(slice(1, 2)))
counts = [results.counts("median").accuracy_by_task(), adapted.counts("median-steps(steps=0)").accuracy_by_task()]
try:
    make_method("median(nrom=2)")
except InputError as error:
    told = str(error)
print(json.dumps({
    "told": told,
    "registered": "median" in methods.names(),
    "alone": bool(torch.allclose(alone[0], scores[1])),
    "right": bool(torch.allclose(-distance, scores[0, :, 2], atol=1e-5)),
    "adapts": not torch.allclose(moved, still) and bool(torch.allclose(moved_alone[0], moved[1], atol=1e-4)),
    "left_alone": weights_digest(net.state_dict()) == weights_digest(model.weights),
    "still_is_the_head": bool((counts[0] == counts[1]).all()),
    "trained": [str(model.record.objective), str(model.record.backbone), sorted(model.weights)[-1]],
    "evaluated": [*results.methods, *adapted.methods],
    "dimensions": features.array.shape[1],
}))
"""


def test_an_installed_package_adds_a_method_an_objective_a_backbone_and_an_adaptation(tmp_path: Path) -> None:
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
    here = [target, EXAMPLE.parents[1], EXAMPLE.parents[1] / "src"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, here))}
    done = subprocess.run(
        [sys.executable, "-c", CHECK], check=True, text=True, capture_output=True, env=environment, cwd=tmp_path
    )
    told = "method 'median' has no option 'nrom': did you mean 'norm'? (known: norm)"
    assert json.loads(done.stdout) == {
        "told": told,
        "registered": True,
        "alone": True,
        "right": True,
        "adapts": True,
        "left_alone": True,
        "still_is_the_head": True,
        "trained": ["median(scale=0.2)", "tiny(filters=8)", "head.scale"],
        "evaluated": ["model:some.model", "median", "median-steps(steps=0)", "median-steps(rate=0.02)"],
        "dimensions": 8,
    }
