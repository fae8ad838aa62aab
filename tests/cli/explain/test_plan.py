"""`shotproof explain plan` from end to end."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.task_size import gaussian_world
from typer.testing import CliRunner

from shotproof.cli.app import app
from shotproof.core.errors import ShotproofError
from shotproof.core.records import ResultsRecord, TasksRecord
from shotproof.evaluation.evaluate import evaluate
from shotproof.planning.pilot import Pilot
from shotproof.planning.task_plan import plan
from shotproof.results.results import Results
from shotproof.tasks.sampler import sample
from tests.drawn_results import draw_results, draw_tasks


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog, and results of two methods on random tasks of it."""
    folder = tmp_path_factory.mktemp("plan")
    catalog, features = gaussian_world(classes=10, items=60)
    catalog.write(folder / "catalog.parquet")
    tasks = sample(catalog, "random", way=5, shot=3, query=8, tasks=100)
    evaluate(tasks, features, ["ncc", "cosine"]).write(folder / "pilot.parquet")
    return folder


def run(folder: Path, *options: str, pilot: str = "pilot.parquet") -> str:
    """What the command prints; what it refuses is raised."""
    given = [str(folder / option) if option.endswith(".parquet") else option for option in (pilot, *options)]
    outcome = CliRunner().invoke(app, ["explain", "plan", *given], standalone_mode=False)
    if outcome.exception is not None:
        assert outcome.stdout == ""
        raise outcome.exception
    return outcome.stdout


def written(folder: Path, correct: Any, query: int, shot: int | None = 5) -> str:
    """A results file with these counts, [tasks, way]."""
    correct = np.asarray(correct)
    task, slot = np.indices(correct.shape)
    columns = {"task": task.ravel(), "slot": slot.ravel(), "n_correct": correct.ravel()}
    size = correct.size
    table = pa.table({"method": ["m"] * size, "label": ["x"] * size, "n_query": [query] * size, **columns})
    Results(table, ResultsRecord(tasks=TasksRecord(shot=shot))).write(folder / "made.parquet")
    return "made.parquet"


def test_the_plan_as_json(folder: Path) -> None:
    shown = json.loads(run(folder, "catalog.parquet", "--method", "cosine", "--json"))
    pilot = Pilot.of(Results.read(folder / "pilot.parquet"))
    made = plan(pilot.moments("cosine"), shot=3, way=5, classes=10, items=60, queries=[1, 2, 5, 8, 10, 15, 30])
    assert shown["pilot"] == {
        "tasks": 100,
        "sampler": "random",
        "encoder": "features",
        "way": 5,
        "shot": 3,
        "query": 8,
    }
    assert {name: shown[name] for name in made.to_json()} == made.to_json()
    by_query = {point["query"]: point["tasks"] for point in shown["curve"]}
    pairs = [row["methods"] for row in shown["comparisons"]]
    assert set(pairs) == {"cosine - ncc", "cosine - any method on different tasks"}
    for row in shown["comparisons"]:
        assert row["available"] == by_query[row["query"]]
        assert (row["power"] >= 0.8) == (row["available"] >= row["needed"])


def test_the_plan_on_the_terminal(folder: Path) -> None:
    same = ["catalog.parquet", "--query", "4", "--query", "100", "--level", "0.9"]
    shown = run(folder, *same)
    assert "ncc on 100 tasks (random) of 5 ways, 3 shots, 8 queries" in shown
    assert "90% interval of the mean" in shown
    bars = {int(line.split()[0]): line.count("#") for line in shown.splitlines() if "#" in line}
    assert {4, 8} <= set(bars)
    assert min(bars.values()) < max(bars.values()) == 40
    assert "needs at least 2 tasks" in next(line for line in shown.splitlines() if line.startswith("    100"))
    assert run(folder, *same[1:], "--classes", "10", "--items", "60") == shown


def test_without_data_the_plan_says_what_is_known(folder: Path) -> None:
    shown = run(folder)
    assert "--classes and --items" in shown
    assert "sqrt(beta / alpha)" in shown
    assert "nan" not in shown
    assert json.loads(run(folder, "--json"))["curve"] == []


def test_the_plan_says_why_best_numbers_differ(folder: Path, tmp_path: Path) -> None:
    shown = json.loads(run(folder, "catalog.parquet", "--json"))
    moments = Pilot.of(Results.read(folder / "pilot.parquet")).moments("ncc")
    every = plan(moments, shot=3, way=5, classes=10, items=60, queries=range(1, 57)).curve
    widths = {point.query: point.half_width for point in every if point.half_width is not None}
    near = [query for query, width in widths.items() if width <= 1.05 * min(widths.values())]
    assert shown["near"] == [min(near), max(near)]
    told = run(folder, "catalog.parquet")
    assert f"With {min(near)} to {max(near)} queries, intervals are at most 5% wider" in told
    low, high = shown["best_query_interval"]
    assert f"= {shown['best_query']:.1f} [{low:.1f}, {high:.1f}] from this pilot" in told
    assert "Oops" not in told  # which has no number for 3 shots
    correct = np.random.default_rng(0).binomial(8, np.random.default_rng(1).beta(4, 2, size=(30, 5)))
    few = run(tmp_path, pilot=written(tmp_path, correct, 8))
    assert "about 5 queries for 5 shots" in few
    assert "by this pilot" not in few  # of 30 tasks


def test_methods_that_never_differ(folder: Path) -> None:
    table = Results.read(folder / "pilot.parquet").table
    ncc = table.slice(0, table.num_rows // 2)
    twin = ncc.set_column(0, "method", pa.array(["twin"] * len(ncc)))
    Results(pa.concat_tables([ncc, twin]), ResultsRecord(tasks=TasksRecord(shot=3))).write(folder / "twins.parquet")
    shown = run(folder, "--classes", "10", "--items", "60", pilot="twins.parquet")
    assert "nan" not in shown
    row = next(line for line in shown.splitlines() if line.startswith("ncc - twin"))
    assert row.split()[-3:-2] == ["-"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--level", "95"], "level: expected a share above 0 and below 1, e.g. 0.95, found 95"),
        (["--level", "-1"], "found -1"),
        (["--power", "1"], "power: expected a share above 0 and below 1"),
        (["--difference", "0"], "difference: expected more than 0 and at most 100 points, found 0"),
        (["--difference", "nan"], "found nan"),
        (["--method", "nccc"], "did you mean 'ncc'"),
        (["--classes", "10"], "either a catalog or both --classes and --items"),
        (["catalog.parquet", "--classes", "10", "--items", "9"], "either a catalog or both --classes"),
        (["--classes", "3", "--items", "900"], "not enough for two 5-way 3-shot tasks"),
        (["catalog.parquet", "--split", "tset"], "did you mean 'test'"),
        (["--shot", "9"], "no pilot has 9 shots: pilots have 3"),
    ],
)
def test_bad_options(folder: Path, options: list[str], message: str) -> None:
    with pytest.raises(ShotproofError, match=re.escape(message)):
        run(folder, *options)


@pytest.mark.parametrize(
    ("correct", "query", "message"),
    [
        ([[3, 2]], 4, "expected at least 2 tasks"),
        ([[1, 0], [0, 0]], 1, "expected at least 2 queries in every class"),
        ([[4, 4]] * 9, 4, "the accuracy is 100.0% in every task"),
    ],
)
def test_pilots_that_cannot_be_planned_from(tmp_path: Path, correct: Any, query: int, message: str) -> None:
    with pytest.raises(ShotproofError, match=message):
        run(tmp_path, pilot=written(tmp_path, correct, query))


def test_results_without_metadata_need_the_shots(tmp_path: Path) -> None:
    pilot = written(tmp_path, [[3, 2], [1, 4], [2, 2]], 4, shot=None)
    with pytest.raises(ShotproofError, match="number of shots: use --shot"):
        run(tmp_path, pilot=pilot)
    assert "2 ways, 5 shots, 4 queries" in run(tmp_path, "--shot", "5", pilot=pilot)


def test_a_runs_folder_gives_a_plan_per_design_and_encoder_from_its_random_tasks(tmp_path: Path) -> None:
    catalog, features = gaussian_world(classes=10, items=60)
    catalog.write(tmp_path / "catalog.parquet")
    for shot, sampler, methods in ((1, "random", ["ncc"]), (1, "random", ["cosine"]), (3, "random", ["ncc", "cosine"])):
        tasks = sample(catalog, sampler, way=5, shot=shot, query=8, tasks=60)
        evaluate(tasks, features, methods).write(tmp_path / f"{shot}-{'-'.join(methods)}.parquet")
    like = sample(catalog, "random", way=5, shot=1, query=8, tasks=60)
    hard = sample(catalog, "hardest", features=features, like=like, way=5, shot=1, query=8, tasks=60)
    evaluate(hard, features, "ncc").write(tmp_path / "hard.parquet")
    found = json.loads(run(tmp_path.parent, "--json", "--method", "ncc", pilot=str(tmp_path)))
    assert [one["pilot"]["shot"] for one in found] == [1, 3]
    for one in found:
        assert {row["methods"] for row in one["comparisons"]} == {"ncc - cosine", "ncc - any method on different tasks"}
        assert one["curve"]
    alone = json.loads(run(tmp_path.parent, "--json", "--method", "ncc", "--shot", "3", pilot=str(tmp_path)))
    assert alone == found[1]
    with pytest.raises(ShotproofError, match="no pilot has 2 shots: pilots have 1, 3"):
        run(tmp_path.parent, "--shot", "2", pilot=str(tmp_path))
    with pytest.raises(ShotproofError, match="unknown encoder of the pilot 'featurs': did you mean 'features'"):
        run(tmp_path.parent, "--encoder", "featurs", pilot=str(tmp_path))


def test_an_encoder_that_is_a_file_is_shown_and_chosen_by_its_short_name(tmp_path: Path) -> None:
    for encoder in ("model:nets/first.model", "model:nets/second.model"):
        results = draw_results(draw_tasks(tasks=60), {"ncc": 0.7}, encoder)
        results.write(tmp_path / f"{encoder[11:16]}.parquet")
    both = run(tmp_path.parent, pilot=str(tmp_path))
    assert "encoder first:" in both
    assert "encoder second:" in both
    for name in ("second", "model:nets/second.model"):
        alone = run(tmp_path.parent, "--encoder", name, pilot=str(tmp_path))
        assert "encoder second:" in alone
        assert "first" not in alone
