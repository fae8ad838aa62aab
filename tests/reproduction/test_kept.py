"""Counts that are kept of a run, and the tables that follow from them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
from reproduction.kept import KEPT, Evaluated, Table, keep, read_kept
from reproduction.papers import read_figures
from reproduction.sections.fewstab import METHODS, line_through, main_table, rank_table
from reproduction.sections.sound_cells import BACKBONES
from scipy import stats

import shotproof as sp
from shotproof.pipeline.study import run
from shotproof.results.results import Results
from tests.experiment_files import write_experiment
from tests.pipeline.model_files import write_model
from tests.small_networks import write_world

EXPERIMENT = """
[catalog]
file = "catalog.parquet"
[features]
encoders = ["model:nets/first.model"]
[tasks]
split = "val"
way = 3
shots = [1]
query = 3
tasks = 6
samplers = ["random"]
[evaluate]
models = ["nets/anil-1.model", "nets/anil-5.model"]
methods = [{ name = "ncc", on = "model:nets/first.model" }, "model:nets/first.model", "anil"]
[runtime]
cache = "cache"
workers = 1
device = "cpu"
[output]
folder = "out"
intervals = ["sampler"]
"""


def test_counts_of_a_run_are_kept_by_model_and_method(tmp_path: Path) -> None:
    write_world(tmp_path / "world").write(tmp_path / "catalog.parquet")
    (tmp_path / "nets").mkdir()
    write_model(tmp_path / "nets/first.model", catalog=tmp_path / "catalog.parquet")
    for name in ("anil-1", "anil-5"):  # of the same weights: they are told apart by their files
        write_model(tmp_path / f"nets/{name}.model", "anil", catalog=tmp_path / "catalog.parquet")
    file = write_experiment(tmp_path, EXPERIMENT)
    done = run(file)
    written = keep(file, tmp_path / "kept")
    names = ["anil-1/anil", "anil-5/anil", "first/model", "first/ncc"]
    folder = tmp_path / "kept" / "experiment" / "random-3way-1shot"
    assert sorted(written) == [folder / f"{name}.parquet" for name in names]
    kept = read_kept("experiment", tmp_path / "kept")
    assert {one.shot for one in kept.evaluated} == {1}
    assert not any({"missed", "answered"} & {*one.results.table.column_names} for one in kept.evaluated)
    shown = done.compare().to_pandas()
    assert kept.find("random-3way-1shot", "first", "ncc").wacc.mean in shown["mean"].tolist()
    assert kept.find("random-3way-1shot", "second", "ncc") is None
    again = sp.compare([one.results for one in kept.evaluated], intervals="sampler")
    told = [sorted(one[["classifier", "metric", "mean"]].values.tolist()) for one in (again.to_pandas(), shown)]
    assert told[0] == told[1]


def digests_of_tasks(tables: Iterable[str]) -> dict[tuple[str, int], set[str]]:
    """Those of each task set, over all tables; sets with another number of tasks are not compared task by task."""
    found: dict[tuple[str, int], set[str]] = {}
    for one in itertools.chain.from_iterable(read_kept(name).evaluated for name in tables):
        found.setdefault((one.tasks, len(one.accuracy)), set()).add(one.results.record.sources["tasks"].digest)
    return found


def test_what_is_compared_task_by_task_is_of_the_same_tasks() -> None:
    sounds = [[f"sounds-{backbone}-{name}" for name in ("s0", "s1", "s2", "more")] for backbone in BACKBONES]
    alone = [[path.name] for path in KEPT.iterdir() if path.name.startswith(("hard-birds", "oops-"))]
    for tables in [*sounds, *alone]:
        digests = digests_of_tasks(tables)
        assert digests
        assert {tasks: found for tasks, found in digests.items() if len(found) > 1} == {}
    at_both = {"fewstab-cub": 5, "fewstab-cub-training-shots": 1}
    for method in METHODS:
        found = [
            read_kept(table).find("fewstab-5way-5shot", method.model_at(k), method.head) for table, k in at_both.items()
        ]
        assert len({one.results.record.sources["tasks"].digest for one in found if one}) <= 1, method.name


def evaluated(tasks: str, model: str, method: str, correct: list[list[int]]) -> Evaluated:
    """Results of so many right answers of 10, per task and class."""
    ways = len(correct[0])
    columns = {
        "method": [method] * len(correct) * ways,
        "task": np.repeat(np.arange(len(correct)), ways),
        "slot": np.tile(np.arange(ways), len(correct)),
        "label": [f"class {slot}" for slot in range(ways)] * len(correct),
        "n_query": [10] * len(correct) * ways,
        "n_correct": np.concatenate(correct),
    }
    return Evaluated(tasks, model, method, Results(pa.table(columns)))


def test_a_row_has_the_difference_to_the_paper_and_whether_the_aim_is_met() -> None:
    random = evaluated("random-5way-1shot", "rfs", "logistic", [[9, 7], [8, 6], [8, 8]])  # Acc 76.67, wAcc 70
    biased = evaluated("fewstab-5way-1shot", "rfs", "logistic", [[9, 5], [8, 5], [8, 6]])
    rows = main_table(Table((random, biased)), read_figures("fewstab-cub"), 1).splitlines()[2:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [method.name for method in METHODS]
    half = stats.t.ppf(0.975, 2) * np.std([80, 70, 80], ddof=1) / np.sqrt(3)
    cells = [cell.strip() for cell in rows[-1].strip("|").split("|")]
    assert cells[1:5] == ["76.99 ±0.35", f"76.67 ±{half:.2f}", "−0.32", "yes"]
    assert cells[5] == "44.49 ±0.82"
    assert cells[7:9] == ["+25.51", "no"]
    assert cells[12].split()[0] == "16.67"
    assert all("not run yet" in row for row in rows[:-1])


def test_an_artefact_is_not_judged() -> None:
    sides = [evaluated(f"{one}-5way-5shot", "boil-5", "boil", [[9, 7], [8, 6]]) for one in ("random", "fewstab")]
    boil = main_table(Table(tuple(sides)), read_figures("fewstab-cub"), 5).splitlines()[2 + 2]
    assert [cell.strip() for cell in boil.strip("|").split("|")][8] == "artefact"


def test_ranks_need_some_methods() -> None:
    few = [
        evaluated(f"{tasks}-5way-{shot}shot", f"{model}-{shot}", "model", [[right, 9], [right - 1, 9]])
        for tasks, lost in (("random", 0), ("fewstab", 2))
        for shot in (1, 5)
        for model, right in (("leo", 5 - lost), ("dn4", 7 - 2 * lost), ("can", 9 - lost), ("renet", 6 - lost))[
            : shot + 2
        ]
    ]
    one, five = rank_table(Table(tuple(few)), read_figures("fewstab-cub")).splitlines()[2:]
    assert "not run yet: 3 of 10 methods" in one
    assert five.split("|")[4].startswith(" 0.63 [")  # by SciPy, of 5, 7, 9, 6 and 3, 3, 7, 4
    assert five.split("|")[4].endswith("] over 4 methods ")
    assert five.startswith("| 5 | 0.94 | 14.71 |")


def test_a_line_has_the_intervals_of_least_squares() -> None:
    x, y = [50.0, 60.0, 70.0, 80.0, 90.0], [10.0, 25.0, 30.0, 52.0, 60.0]
    slope, intercept, r = line_through(x, y)
    design = np.column_stack([x, np.ones(5)])
    fitted, residual, _, _ = np.linalg.lstsq(design, np.array(y), rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * residual[0] / 3) * stats.t.ppf(0.975, 3)
    assert slope == f"{fitted[0]:.2f} [{fitted[0] - errors[0]:.2f}, {fitted[0] + errors[0]:.2f}]"
    assert intercept.replace("−", "-").startswith(f"{fitted[1]:.2f} [{fitted[1] - errors[1]:.2f}, ")
    interval = stats.pearsonr(x, y).confidence_interval(0.95)
    assert r == f"{stats.pearsonr(x, y).statistic:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def test_models_trained_at_1_and_at_5_shots_were_tested_on_the_same_tasks() -> None:
    fives, compared = read_kept("fewstab-cub"), 0
    for one in read_kept("fewstab-cub-training-shots").evaluated:
        five = fives.find(one.tasks, one.model.replace("-1", "-5"), one.method)
        if five is not None:
            assert five.results.record.sources["tasks"].digest == one.results.record.sources["tasks"].digest
            compared += 1
    assert compared >= 7
