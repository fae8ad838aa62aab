"""Experiments that choose the learning rate of adaptations on validation tasks."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shotproof as sp
from shotproof.catalog.catalog import Catalog
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.experiment_file import TuneOn
from shotproof.pipeline.steps.steps import file_name
from shotproof.pipeline.study import Study, run
from tests.experiment_files import assert_refused, up_to_results, write_experiment
from tests.pipeline.model_files import FIRST

EXPERIMENT = """
[catalog]
file = "catalog.parquet"
[tasks]
split = "test"
way = 2
shots = [1, 2]
query = 2
tasks = 4
samplers = ["random", { name = "random(query_dirichlet=2)", shots = [1] }]
[evaluate]
methods = ["finetune(steps=2)", "tsa(steps=1)"]
model = "first.model"
tune_on = { split = "val", tasks = 3, rates = [0.3, 0.003] }
seed = 5
[runtime]
cache = "cache"
workers = 1
device = "cpu"
[output]
folder = "out"
intervals = ["sampler"]
"""
TUNED_ON = ["tune-on-val-2way-1shot-2query.parquet", "tune-on-val-2way-2shot-2query.parquet"]


@pytest.fixture(scope="module")
def drawn(drawn_networks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The networks and their pictures, with half of the classes of validation for test."""
    folder = tmp_path_factory.mktemp("tuning") / "here"
    shutil.copytree(drawn_networks, folder)
    catalog = Catalog.read(folder / "catalog.parquet")
    label, split = (catalog.table.column(name).to_pylist() for name in ("label", "split"))
    held_out = sorted({name for name, of in zip(label, split, strict=True) if of == "val"})
    test = held_out[: len(held_out) // 2]
    splits = ["test" if name in test else of for name, of in zip(label, split, strict=True)]
    place = catalog.table.column_names.index("split")
    Catalog(catalog.table.set_column(place, "split", pa.array(splits)), catalog.root, catalog.record).write(
        folder / "catalog.parquet"
    )
    return folder


@pytest.fixture
def folder(drawn: Path, tmp_path: Path) -> Path:
    shutil.copytree(drawn, tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture(scope="module")
def done(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Study]:
    """A folder in which the experiment was run, and what that gave."""
    folder = tmp_path_factory.mktemp("done") / "here"
    shutil.copytree(drawn, folder)
    return folder, run(experiment(folder))


def experiment(folder: Path, *changes: tuple[str, str]) -> Path:
    return write_experiment(folder, EXPERIMENT, *changes)


def test_the_rate_is_the_best_on_validation_tasks_of_the_same_shape(done: tuple[Path, Study]) -> None:
    folder, outcome = done
    assert [name for name in up_to_results(outcome.made) if name.startswith("tune-on")] == TUNED_ON
    catalog = sp.read(folder / "out" / "catalog.parquet")
    quiet = sp.runtime(cache=None, workers=1, progress=False, device="cpu")
    for shot in (1, 2):
        tasks = sp.read(folder / "out" / f"tasks-random-2way-{shot}shot.parquet")
        validation = sp.sample(catalog, "random", split="val", way=2, shot=shot, query=2, tasks=3, seed=5)
        assert sp.read(folder / "out" / TUNED_ON[shot - 1]).digest == validation.digest
        for method in ("finetune(steps=2)", "tsa(steps=1)"):
            given = {"catalog": catalog, "model": folder / "first.model", "methods": method, "seed": 5}
            with quiet:
                direct = sp.evaluate(tasks, tune_on=validation, rates=(0.003, 0.3), **given)
            file = f"results/random-2way-{shot}shot/{file_name(FIRST)}/{file_name(method)}.parquet"
            written = sp.read(folder / "out" / file)
            assert written.table.equals(direct.table)
            assert written.record.to_meta() == direct.record.to_meta()
            assert written.record.source("tune_on") == validation.digest


def test_all_task_sets_of_one_shape_have_one_rate_and_validation_tasks_are_not_compared(
    done: tuple[Path, Study],
) -> None:
    folder, outcome = done
    rows = outcome.compare().to_pandas()
    assert set(rows["tasks"]) == {"random", "random(query_dirichlet=2)"}
    assert set(rows["split"]) == {"test"}
    for shot in (1, 2):
        assert rows[rows["shot"] == shot]["classifier"].nunique() == 2
    again = sp.compare(sp.read(folder / "out"), intervals="sampler")
    assert again.to_pandas().equals(rows)
    assert np.isfinite(rows[rows["quantity"] == "accuracy"]["mean"]).all()


def test_only_what_changed_is_made_again(done: tuple[Path, Study]) -> None:
    folder, _ = done
    assert run(experiment(folder)).made == []
    other_rates = run(experiment(folder, ("0.3, 0.003", "0.3, 0.001")), dry_run=True).made
    assert other_rates
    assert all(name.startswith("results/") for name in other_rates)
    more = run(experiment(folder, ("tasks = 3", "tasks = 4")), dry_run=True).made
    assert set(TUNED_ON) < set(more)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('{ split = "val" }', TuneOn("val", 20)),
        ('{ split = "val", tasks = 7, rates = [1, 0.5] }', TuneOn("val", 7, (1.0, 0.5))),
    ],
)
def test_it_is_read_with_defaults(folder: Path, table: str, expected: TuneOn) -> None:
    file = experiment(folder, ('{ split = "val", tasks = 3, rates = [0.3, 0.003] }', table))
    assert Experiment.read(file).tune_on == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('split = "val"', 'splits = "val"'), "[evaluate.tune_on]: unknown key 'splits': did you mean 'split'"),
        (('split = "val", ', ""), "[evaluate.tune_on]: the key 'split' is missing"),
        (('split = "val"', 'split = "vla"'), "[evaluate.tune_on]: unknown split 'vla': did you mean 'val'"),
        (('split = "val"', 'split = "test"'), "[evaluate.tune_on]: split 'test' is also evaluated"),
        (('split = "val"', 'split = "train"'), f"[evaluate.tune_on]: model '{FIRST}' was trained on "),
        (
            ("tasks = 3", "tasks = 0"),
            "[evaluate.tune_on], tasks: expected a whole number from 1 to 10,000,000, found 0",
        ),
        (
            ("[0.3, 0.003]", '["0.3"]'),
            "[evaluate.tune_on], rates: expected a list of numbers, at least one, found",
        ),
        (("[0.3, 0.003]", "[0.3, 0.3]"), "[evaluate.tune_on], rates: expected each once, found 0.3 twice"),
        (("[0.3, 0.003]", "[0.3, -1]"), "[evaluate.tune_on], rates: method 'finetune'"),
        (
            ('{ split = "val", tasks = 3, rates = [0.3, 0.003] }', '"val"'),
            "[evaluate.tune_on]: expected a table, found",
        ),
        (
            ('"tsa(steps=1)"', '"finetune(steps=2, rate=0.5)"'),
            "[evaluate], methods: 'finetune(steps=2)' and '",
        ),
        (("way = 2", "way = 3"), "[tasks], sampler 'random': "),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_made(folder: Path, change: tuple[str, str], expected: str) -> None:
    assert_refused(experiment(folder, change), expected)


def test_a_validation_split_that_is_too_small_is_told_before_anything_is_made(folder: Path) -> None:
    catalog = sp.read(folder / "catalog.parquet")
    split, label = (catalog.table.column(name).to_pylist() for name in ("split", "label"))
    first = next(name for name, of in zip(label, split, strict=True) if of == "val")
    kept = [of != "val" or name == first for name, of in zip(label, split, strict=True)]
    Catalog(catalog.table.filter(pa.array(kept)), catalog.root, catalog.record).write(folder / "catalog.parquet")
    assert_refused(experiment(folder), "[evaluate.tune_on]: 2 ways need at least 2 classes, the data has 1")


def test_heads_alone_have_no_rate_to_choose(folder: Path) -> None:
    file = experiment(folder, ('"finetune(steps=2)", "tsa(steps=1)"', '"ncc"'), ('model = "first.model"\n', ""))
    assert_refused(file, "[evaluate], tune_on: no method adapts a network")
