"""`shotproof compare` from end to end."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import typer
from benchmarks.task_size import gaussian_world
from typer.testing import CliRunner

from shotproof.cli.compare import compare as verb
from shotproof.errors import InputError, ShotproofError
from shotproof.evaluation.evaluate import evaluate
from shotproof.evaluation.results import Results
from shotproof.stats.compare import compare
from shotproof.tasks.sampler import sample
from tests.report_files import make_catalog, make_results, make_tasks

app = typer.Typer()
app.command()(verb)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog, its features, random tasks and the results of two methods on them."""
    folder = tmp_path_factory.mktemp("compare")
    catalog, features = gaussian_world(classes=5, items=30)
    tasks = sample(catalog, "random", way=3, shot=2, query=5, tasks=60)
    catalog.write(folder / "catalog.parquet")
    features.write(folder / "features.parquet")
    tasks.write(folder / "tasks.parquet")
    evaluate(tasks, features, ["ncc", "knn"]).write(folder / "results.parquet")
    return folder


def run(folder: Path, *options: str) -> str:
    """What the command prints; what it refuses is raised."""
    given = [str(folder / option) if option.endswith(".parquet") else option for option in options]
    outcome = CliRunner().invoke(app, given, standalone_mode=False)
    if outcome.exception is not None:
        raise outcome.exception
    assert "nan" not in outcome.stdout.lower()
    return outcome.stdout


MATERIAL = ["--tasks", "tasks.parquet", "--catalog", "catalog.parquet", "--features", "features.parquet"]


def test_the_default_says_what_it_does_not_cover(folder: Path) -> None:
    shown = run(folder, "results.parquet")
    table = compare([Results.read(folder / "results.parquet")])
    (group,) = table.groups
    for row in group.methods:
        low, high = (100 * end for end in (row.intervals["acc"]["sampler"].low, row.intervals["acc"]["sampler"].high))
        cells = [row.method, str(row.rank), f"{100 * row.means['acc']:.1f}", f"[{low:.1f},", f"{high:.1f}]"]
        assert any(line.split() == cells for line in shown.splitlines())
    pair = group.pairs["acc", "sampler"][0]
    found = next(line for line in shown.splitlines() if line.startswith("ncc - knn"))
    assert found.split()[3:5] == [f"{100 * pair.interval.mean:+.2f}", pair.conclusion]
    assert "does not cover new images or new classes. For those: --interval images" in shown


def test_several_intervals_side_by_side_and_one_refused(folder: Path) -> None:
    intervals = [f"--interval={name}" for name in ("sampler", "depletion", "images", "classes")]
    shown = run(folder, "results.parquet", *intervals, *MATERIAL, "--splits", "5", "--metric", "wacc", "--workers", "1")
    heading = next(line for line in shown.splitlines() if line.startswith("method"))
    assert heading.split()[-4:] == ["sampler", "depletion", "images", "classes"]
    assert "classes: halves of the classes need 6 classes (3 ways in each half), the data has 5" in shown
    assert "pairs by wAcc" in shown
    counts = next(line for line in shown.splitlines() if line.startswith("conclusive")).split()
    assert counts[2::3] == ["of"] * 4
    assert counts[-3:] == ["0", "of", "1"]


def test_json_is_the_table(folder: Path) -> None:
    options = ["--level", "0.9", "--metric", "wacc", "--no-holm", "--json"]
    table = compare([Results.read(folder / "results.parquet")], level=0.9, metric="wacc", correct=False)
    assert json.loads(run(folder, "results.parquet", *options)) == json.loads(json.dumps(table.to_json()))


def test_csv_has_flat_tables(folder: Path) -> None:
    methods, pairs = (
        list(csv.DictReader(part.splitlines())) for part in run(folder, "results.parquet", "--csv").split("\n\n")
    )
    content = compare([Results.read(folder / "results.parquet")]).to_json()
    assert len(methods) == 2 * 2
    assert float(methods[1]["low"]) == content["methods"][0]["intervals"]["wacc"]["sampler"][0]
    assert [float(row["difference"]) for row in pairs] == [pair["difference"] for pair in content["pairs"]]


def test_gaps_are_printed(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    for sampler in ("random", "fewstab"):
        make_results(make_tasks(catalog, sampler), "pixels", {"ncc": 0.6, "ridge": 0.5}).write(
            tmp_path / f"{sampler}.parquet"
        )
    shown = run(tmp_path, "random.parquet", "fewstab.parquet")
    assert "Gap, random minus fewstab tasks: wAcc, points" in shown
    assert run(tmp_path, "random.parquet", "fewstab.parquet", "--csv").count("\n\n") == 3


@pytest.mark.parametrize("output", [[], ["--json"], ["--csv"]])
@pytest.mark.parametrize(
    ("tasks", "accuracy", "reason"), [(1, 0.5, "one task has no variance"), (9, 1.0, "all 9 tasks")]
)
def test_where_no_interval_can_be_given_the_means_are_shown_and_the_reason_ends_it(
    tmp_path: Path, tasks: int, accuracy: float, reason: str, output: list[str]
) -> None:
    results = make_results(make_tasks(make_catalog(tmp_path), "random", tasks=tasks), "pixels", {"ncc": accuracy})
    results.write(tmp_path / "results.parquet")
    outcome = CliRunner().invoke(app, [str(tmp_path / "results.parquet"), *output], standalone_mode=False)
    assert isinstance(outcome.exception, InputError)
    assert str(outcome.exception).startswith(f"no interval can be given: {reason}")
    assert "ncc" in outcome.stdout
    assert "nan" not in outcome.stdout.lower()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--level", "95"], "did you mean 0.95"),
        (["--level", "0"], "found 0"),
        (["--level", "-1"], "found -1"),
        (["--interval", "images", "--catalog", "catalog.parquet"], r"no tasks \(--tasks\), no features \(--features\)"),
        (["--interval", "imagse"], "did you mean 'images'"),
        (["--metric", "gap"], "unknown metric 'gap'"),
        (["--interval", "images", *MATERIAL, "--splits", "1"], "splits: expected at least 2, found 1"),
        (["tasks.parquet"], "is no results file"),
        (["--interval", "images", *MATERIAL[:4], "--features", "feature.parquet"], "did you mean 'features.parquet'"),
    ],
)
def test_bad_options(folder: Path, options: list[str], message: str) -> None:
    with pytest.raises(ShotproofError, match=message):
        run(folder, "results.parquet", *options)
