"""`shotproof compare` from end to end."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from shotproof.analysis.compare import compare
from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.core.errors import InputError, ShotproofError
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.features.transforms import transform
from shotproof.results.results import Results
from shotproof.tasks.sampler import sample
from tests.drawn_results import draw_results, draw_tasks

MATERIAL = ["tasks.parquet", "catalog.parquet", "features.parquet"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog, its features, random tasks and the results of two methods on them."""
    folder = tmp_path_factory.mktemp("compare")
    random = np.random.default_rng(0)
    values = random.normal(scale=0.8, size=(5, 1, 8)) + random.normal(size=(5, 30, 8))
    names = [f"{c:03d}/{i:04d}" for c in range(5) for i in range(30)]
    columns = {"item": names, "path": names, "label": [name[:3] for name in names], "split": ["test"] * len(names)}
    catalog, features = Catalog(pa.table(columns)), Features.from_array(names, values.reshape(-1, 8))
    tasks = sample(catalog, "random", way=3, shot=2, query=5, tasks=60)
    catalog.write(folder / "catalog.parquet")
    features.write(folder / "features.parquet")
    tasks.write(folder / "tasks.parquet")
    evaluate(tasks, features, ["ncc", "knn"]).write(folder / "results.parquet")
    return folder


def run(folder: Path, *options: str) -> str:
    """What the command prints; what it refuses is raised."""
    given = [str(folder / option) if option.endswith((".parquet", "/")) else option for option in options]
    outcome = CliRunner().invoke(app, ["compare", *given], standalone_mode=False)
    if outcome.exception is not None:
        raise outcome.exception
    assert "nan" not in outcome.stdout.lower()
    return outcome.stdout


def test_the_default_says_what_it_does_not_cover(folder: Path) -> None:
    shown = run(folder, "results.parquet")
    (group,) = compare(Results.read(folder / "results.parquet")).groups
    for row in group.rows:
        interval = row.intervals["acc"]["sampler"]
        means = [f"{row.means['acc']:.1f}", f"[{interval.low:.1f},", f"{interval.high:.1f}]"]
        rank = row.rank("acc")
        assert rank is not None
        cells = ["random", row.classifier.method, rank.span, *means]
        assert any(line.split()[: len(cells)] == cells for line in shown.splitlines())
    pair = group.pairs["acc", "sampler"][0]
    found = next(line for line in shown.splitlines() if "ncc - knn" in line)
    assert found.split()[4:6] == [f"{pair.interval.mean:+.2f}", pair.conclusion]
    assert "does not cover new items or new classes" in shown
    assert "--interval images" in shown


def test_several_intervals_side_by_side_and_one_refused(folder: Path) -> None:
    intervals = [f"--interval={name}" for name in ("sampler", "depletion", "images", "classes")]
    shown = run(
        folder, "results.parquet", *intervals, *MATERIAL, "--halvings", "5", "--metric", "wacc", "--workers", "1"
    )
    heading = next(line for line in shown.splitlines() if line.startswith("tasks "))
    assert heading.split()[-4:] == ["sampler", "depletion", "images", "classes"]
    assert "need 6 classes (3 ways in each half), the data has 5" in shown
    assert "pairs by wAcc" in shown
    counts = next(line for line in shown.splitlines() if " conclusive " in line).split()
    assert counts[3::3] == ["of"] * 4
    assert counts[-3:] == ["0", "of", "1"]


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ([], ["images", "sampler"]),
        (["sampler", "images"], ["sampler", "images"]),
        (["depletion", "sampler"], ["depletion", "sampler"]),
    ],
)
def test_the_first_interval_is_the_one_that_was_asked_for_or_images(
    folder: Path, asked: list[str], shown: list[str]
) -> None:
    options = [option for name in asked for option in ("--interval", name)]
    printed = run(folder, "results.parquet", *options, *MATERIAL, "--halvings", "4", "--workers", "1")
    heading = next(line for line in printed.splitlines() if line.startswith("tasks ")).split()
    assert heading == ["tasks", "classifier", "rank", "by", "Acc", "Acc", *shown, "wAcc", *shown]
    as_json = json.loads(
        run(folder, "results.parquet", *options, *MATERIAL, "--halvings", "4", "--workers", "1", "--json")
    )
    assert list(as_json["covers"]) == shown


def test_what_was_found_is_told_in_sentences(tmp_path: Path) -> None:
    for seed, (sampler, share) in enumerate((("random", 0.9), ("fewstab", 0.4))):
        made = draw_results(draw_tasks(sampler, tasks=60), {"ncc": share}, seed=seed)
        made.write(tmp_path / f"{sampler}.parquet")
    files = ("random.parquet", "fewstab.parquet")
    comparison = compare([Results.read(tmp_path / name) for name in files])
    printed = run(tmp_path, *files).splitlines()
    assert "fewstab tasks" in comparison.verdict()[1]
    assert "ncc loses" in comparison.verdict()[1]
    assert set(comparison.verdict()) <= set(printed)


def test_a_folder_stands_for_all_files_in_it(folder: Path) -> None:
    options = ["--interval", "images", "--halvings", "5", "--workers", "1", "--json"]
    assert run(folder.parent, f"{folder.name}/", *options) == run(folder, "results.parquet", *MATERIAL, *options)


def test_results_on_transformed_features_find_theirs(folder: Path, tmp_path: Path) -> None:
    features = transform(Features.read(folder / "features.parquet"), ["l2"])
    tasks = sample(Catalog.read(folder / "catalog.parquet"), "random", way=3, shot=2, query=5, tasks=20)
    evaluate(tasks, features, ["ncc"]).write(tmp_path / "results.parquet")
    given = [str(tmp_path / "results.parquet"), "--interval", "depletion", *MATERIAL[1:]]
    found = run(folder, *given)  # the results tell which transforms came after the encoder
    assert "depletion" in found


def test_json_is_the_comparison(folder: Path) -> None:
    options = ["--level", "0.9", "--metric", "wacc", "--no-holm", "--json"]
    comparison = compare(Results.read(folder / "results.parquet"), level=0.9, metric="wacc", correct=False)
    assert json.loads(run(folder, "results.parquet", *options)) == json.loads(json.dumps(comparison.to_json()))


def test_csv_has_flat_tables(folder: Path) -> None:
    methods, pairs = (
        list(csv.DictReader(part.splitlines())) for part in run(folder, "results.parquet", "--csv").split("\n\n")
    )
    content = compare(Results.read(folder / "results.parquet")).to_json()
    assert len(methods) == 2 * 2
    assert [float(row["low"]) for row in methods] == [row["low"] for row in content["estimates"]]
    assert [float(row["mean"]) for row in pairs] == [pair["mean"] for pair in content["pairs"]]


def test_latex_is_printed_and_one_format_at_a_time(folder: Path) -> None:
    assert run(folder, "results.parquet", "--latex") == compare(Results.read(folder / "results.parquet")).to_latex()
    with pytest.raises(InputError, match="--json, --csv and --latex: expected at most one"):
        run(folder, "results.parquet", "--latex", "--json")


def test_gaps_are_printed(tmp_path: Path) -> None:
    for sampler in ("random", "fewstab"):
        draw_results(draw_tasks(sampler), {"ncc": 0.6, "ridge": 0.5}).write(tmp_path / f"{sampler}.parquet")
    shown = run(tmp_path, "random.parquet", "fewstab.parquet")
    assert "birds, 3-way 1-shot, 4 queries per class, split test: 20 random tasks, 20 fewstab tasks\n" in shown
    assert "\ngap, random - fewstab " in shown
    assert "\nskill lost, random - fewstab " in shown
    # estimates, pairs, agreements
    assert run(tmp_path, "random.parquet", "fewstab.parquet", "--csv").count("\n\n") == 2


def test_a_reason_is_printed_once_however_many_tables_it_is_for(tmp_path: Path) -> None:
    for sampler in ("random", "fewstab", "hardest"):
        draw_results(draw_tasks(sampler), {"ncc": 1 / 3, "ridge": 1 / 3}).write(tmp_path / f"{sampler}.parquet")
    reasons = [line for line in run(tmp_path, "./").splitlines() if line.startswith("n/a: ")]
    assert reasons == ["n/a: sampler: nothing to lose: at chance on random tasks"]


def test_of_two_classifiers_no_rank_correlation_is_printed(tmp_path: Path) -> None:
    for detector in ("captions", "photometric"):
        made = draw_results(draw_tasks("fewstab", detector=detector), {"ncc": 0.6, "ridge": 0.5})
        made.write(tmp_path / f"{detector}.parquet")
    assert "Spearman" not in run(tmp_path, "./")


def test_data_sets_seeds_and_detectors_have_their_sections(tmp_path: Path) -> None:
    for data_set in ("birds", "sounds"):
        for seed in (0, 1):
            made = draw_results(draw_tasks(data_set=data_set, seed=seed), {"ncc": 0.6, "ridge": 0.5}, seed=seed)
            made.write(tmp_path / f"{data_set}-{seed}.parquet")
    for detector in ("captions", "photometric"):
        methods = {"ncc": 0.8, "ridge": 0.6, "knn": 0.4, "svm": 0.2}
        made = draw_results(draw_tasks("fewstab", tasks=200, detector=detector), methods)
        made.write(tmp_path / f"{detector}.parquet")
    shown = run(tmp_path, "./")
    lines = shown.splitlines()
    assert shown.index("birds, 3-way 1-shot") < shown.index("sounds, 3-way 1-shot")
    assert any("40 random tasks of 2 seeds" in line for line in lines)
    row = compare([Results.read(path) for path in sorted(tmp_path.glob("sounds*"))]).groups[0].rows[0]
    heading = next(line for line in lines if "sd over seeds" in line)
    assert heading.split()[5:10] == ["Acc", "sd", "over", "seeds", "sampler"]
    assert any(line.split()[1:5:3] == ["ncc", f"{row.spread('acc'):.1f}"] for line in lines)
    agreement = "fewstab with captions and with photometric: Spearman's correlation 1.00"
    assert any(agreement in line for line in lines)


@pytest.mark.parametrize("output", [[], ["--json"], ["--csv"], ["--latex"]])
@pytest.mark.parametrize(
    ("tasks", "accuracy", "reason"), [(1, 0.5, "one task has no variance"), (9, 1.0, "all 9 tasks")]
)
def test_where_no_interval_can_be_given_the_means_are_shown_and_the_reason_ends_it(
    tmp_path: Path, tasks: int, accuracy: float, reason: str, output: list[str]
) -> None:
    draw_results(draw_tasks(tasks=tasks), {"ncc": accuracy}).write(tmp_path / "results.parquet")
    outcome = CliRunner().invoke(app, ["compare", str(tmp_path / "results.parquet"), *output], standalone_mode=False)
    assert isinstance(outcome.exception, InputError)
    assert str(outcome.exception).startswith(f"no interval can be computed: {reason}")
    assert "ncc" in outcome.stdout
    assert "nan" not in outcome.stdout.lower()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["results.parquet", "--level", "95"], "did you mean 0.95"),
        (["results.parquet", "--level", "0"], "found 0"),
        (["results.parquet", "--level", "-1"], "found -1"),
        (["results.parquet", "--interval", "images", "catalog.parquet"], "no tasks and no features"),
        (["results.parquet", "--interval", "imagse"], "did you mean 'images'"),
        (["results.parquet", "--metric", "gap"], "unknown metric 'gap'"),
        (["tasks.parquet"], "no results to compare"),
        (["result.parquet"], "did you mean 'results.parquet'"),
        (["results.parquet", *MATERIAL[:2], "feature.parquet"], "did you mean 'features.parquet'"),
    ],
)
def test_bad_options(folder: Path, options: list[str], message: str) -> None:
    with pytest.raises(ShotproofError, match=message):
        run(folder, *options)
