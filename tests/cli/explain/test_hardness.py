"""`shotproof explain hardness` and `explain transfer` from end to end."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shotproof.analysis.compare import compare
from shotproof.analysis.explanation.explain import explain
from shotproof.attributes.attributes import Attributes
from shotproof.cli.app import app
from shotproof.core.errors import InputError, ShotproofError
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet
from tests.hard_tasks import WORLD, leaning_features, pictured, random_tasks, with_other_supports


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world's attributes and features, random tasks and others with the same queries, and results on these."""
    folder = tmp_path_factory.mktemp("explain")
    random = random_tasks(20)
    other = with_other_supports(random, "moved")
    random.write(folder / "random.parquet")
    other.write(folder / "moved.parquet")
    WORLD.attributes().write(folder / "attributes.parquet")
    pictured(folder).write(folder / "catalog.parquet")
    for name, share in (("first", 0.5), ("second", 0.3)):
        features = leaning_features(share)
        replace(features, record=replace(features.record, name=name)).write(folder / f"{name}.parquet")
    evaluate(other, Features.read(folder / "first.parquet"), ["knn"]).write(folder / "results.parquet")
    return folder


def run(verb: str, folder: Path, *options: str) -> str:
    """What the command prints; what it refuses is raised."""
    given = [str(folder / option) if option.endswith((".parquet", ".html", "/")) else option for option in options]
    outcome = CliRunner().invoke(app, ["explain", verb, *given], standalone_mode=False)
    if outcome.exception is not None:
        raise outcome.exception
    assert "nan" not in outcome.stdout.lower()
    return outcome.stdout


EXPLAIN = ["moved.parquet", "attributes.parquet", "--against", "random.parquet"]
POOLED = [*EXPLAIN, "--mismatch", "pooled"]
TRANSFER = ["moved.parquet", "first.parquet", "second.parquet", "--against", "random.parquet"]


def test_the_mismatch_may_be_pooled_over_a_task(folder: Path) -> None:
    assert "all classes together" in run("hardness", folder, *POOLED)
    by_class, pooled = (json.loads(run("hardness", folder, *given, "--json")) for given in (EXPLAIN, POOLED))
    assert pooled["sets"][0]["mismatch"] < by_class["sets"][0]["mismatch"]
    with pytest.raises(InputError, match="mismatch: expected class or pooled, found 'task'"):
        run("hardness", folder, *EXPLAIN, "--mismatch", "task")


def test_attributes_are_printed_the_most_mismatched_first(folder: Path) -> None:
    shown = run("hardness", folder, *EXPLAIN, "first.parquet", "results.parquet")
    explanation = explain(
        TaskSet.read(folder / "moved.parquet"),
        Attributes.read(folder / "attributes.parquet"),
        against=[TaskSet.read(folder / "random.parquet")],
    )
    lines = shown.splitlines()
    heading = next(number for number, line in enumerate(lines) if line.startswith("attribute"))
    for line, attribute in zip(lines[heading + 2 : heading + 5], explanation.attributes[:3], strict=True):
        assert line.startswith(attribute.attribute)
        assert f"{attribute.sets[0].mismatch.mean:.1f}" in line.split()
        assert f"{attribute.differences[0].mean:+.1f}" in line.split()
    assert "sampler (covers new tasks" in shown
    correlation = next(line for line in lines if line.startswith("moved") and "knn" in line)
    assert -1 <= float(correlation.split()[-1]) <= 1


def test_json_and_csv_have_every_attribute(folder: Path) -> None:
    content = json.loads(run("hardness", folder, *EXPLAIN, "--json"))
    rows = list(csv.DictReader(run("hardness", folder, *EXPLAIN, "--csv").splitlines()))
    assert len(rows) == 2 * len(content["attributes"])
    first = content["attributes"][0]
    assert (rows[0]["attribute"], rows[0]["tasks"]) == (first["attribute"], "moved")
    assert float(rows[0]["mismatch_low"]) == first["sets"]["moved"]["mismatch_interval"][0]
    assert float(rows[1]["difference"]) == first["differences"]["random"]["difference"]


def test_the_page_shows_examples(folder: Path) -> None:
    options = ["catalog.parquet", "first.parquet", "-o", "page.html"]
    assert "page: " in run("hardness", folder, *EXPLAIN, *options)
    page = (folder / "page.html").read_text()
    assert page.count('class="class"') == 4
    assert page.count('role="img"') == 2
    assert "data:image/jpeg" in page
    run("hardness", folder, *EXPLAIN, "-o", "bare.html")
    assert 'class="class"' not in (folder / "bare.html").read_text()


def test_a_runs_folder_stands_for_the_files(folder: Path, tmp_path: Path) -> None:
    for name in ("random", "moved", "attributes", "first", "results"):
        shutil.copy(folder / f"{name}.parquet", tmp_path)
    by_files = run("hardness", folder, *EXPLAIN, "first.parquet", "results.parquet", "--json")
    assert run("hardness", folder, str(tmp_path), "--json") == by_files
    assert run("hardness", folder, str(tmp_path)).count("inverse query loss") == 1
    (tmp_path / "moved.parquet").unlink()
    with pytest.raises(InputError, match="only random tasks"):
        run("hardness", folder, str(tmp_path))
    (tmp_path / "attributes.parquet").unlink()
    with pytest.raises(InputError, match=r"add the attributes\.parquet"):
        run("hardness", folder, str(tmp_path))


def test_drops_are_printed_and_the_results_can_be_compared(folder: Path) -> None:
    shown = run("transfer", folder, *TRANSFER, "-m", "ncc", "-o", "results/")
    results = [Results.read(path) for path in sorted((folder / "results").iterdir())]
    assert len(results) == 4
    (gap,) = compare(results).gaps
    content = json.loads(run("transfer", folder, *TRANSFER, "-m", "ncc", "--json"))
    for row, told, encoder in zip(gap.rows, content[0]["rows"], ("first", "second"), strict=True):
        assert told["acc_drop"] == pytest.approx(row.means["acc"])
        line = next(line for line in shown.splitlines() if line.startswith(encoder))
        assert f"{told['acc_drop']:.1f}" in line.split()
    rows = list(csv.DictReader(run("transfer", folder, *TRANSFER, "-m", "ncc", "--csv").splitlines()))
    assert [float(row["acc_drop"]) for row in rows] == [row["acc_drop"] for row in content[0]["rows"]]


@pytest.mark.parametrize(
    ("verb", "options", "message"),
    [
        ("hardness", ["random.parquet", "first.parquet"], "add the attributes.parquet"),
        ("hardness", ["missing.parquet", "attributes.parquet"], "does not exist"),
        ("transfer", [*TRANSFER, "-m", "nc"], "did you mean 'ncc'"),
        ("transfer", [*TRANSFER, "first.parquet"], "encoder named 'first'"),
    ],
)
def test_bad_input_is_one_line(folder: Path, verb: str, options: list[str], message: str) -> None:
    with pytest.raises(ShotproofError, match=message) as caught:
        run(verb, folder, *options)
    assert isinstance(caught.value, InputError)
    assert "\n" not in str(caught.value)
