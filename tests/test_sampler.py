"""The contract of every registered sampler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, Starved, UnknownName
from shotproof.features.features import Features
from shotproof.tasks.check import check_tasks
from shotproof.tasks.pool import Design, Pool
from shotproof.tasks.sampler import Sampler, sample, samplers
from shotproof.tasks.taskset import TaskSet
from tests.conftest import draw_data

Data = tuple[Catalog, Attributes]
DESIGN: dict[str, Any] = {"way": 4, "shot": 3, "query": 6, "tasks": 30}
OWN_SIZES = ["meta_dataset"]  # samplers with rules of their own for way, shot and query


@pytest.fixture
def data() -> Data:
    return draw_data(items=60)


def inputs(name: str, attributes: Attributes) -> dict[str, Any]:
    """What a sampler needs beside the catalog."""
    items = sorted(attributes.table.column("item").to_pylist())
    given = {
        "attributes": attributes,
        "features": Features.from_array(items, np.random.default_rng(3).normal(size=(len(items), 8))),
        "clean_value": "none",
        "candidates": 3,
        "support_where": "word00 or word01",
        "query_where": "not word00 and not word01",
    }
    return {option: value for option, value in given.items() if option in samplers.inputs(name)}


def draw(name: str, data: Data, **changes: Any) -> TaskSet:
    catalog, attributes = data
    options = inputs(name, attributes)
    return sample(catalog, name, **{**DESIGN, "split": "test", **options, **changes})


def available(name: str, data: Data) -> int | None:
    """How many tasks there are, of a sampler that uses the data up."""
    return samplers.make(name, data[0], Design(4, 3, 6), 0, **inputs(name, data[1])).available()


@pytest.fixture(params=samplers.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[name for name in samplers.names() if name not in OWN_SIZES])
def sized(request: pytest.FixtureRequest) -> str:
    """A sampler whose tasks have the way, shot and query of the design."""
    return str(request.param)


def test_tasks_pass_the_checker(name: str, data: Data) -> None:
    tasks = draw(name, data)
    assert len(tasks) == min(30, available(name, data) or 30)
    assert check_tasks(tasks, *data) == []


def test_tasks_have_the_design(sized: str, data: Data) -> None:
    tasks = draw(sized, data)
    assert np.diff(tasks.starts).tolist() == [4] * len(tasks)
    assert {len(items) for items in tasks.table.column("support").to_pylist()} == {3}
    assert {len(items) for items in tasks.table.column("query").to_pylist()} == {6}


def test_the_first_tasks_do_not_depend_on_how_many_are_drawn(name: str, data: Data) -> None:
    for tasks in (4, 30):
        assert draw(name, data, tasks=600).first(tasks).digest == draw(name, data, tasks=tasks).digest


def test_workers_change_nothing(name: str, data: Data, tmp_path: Path) -> None:
    for workers in (1, 2):
        draw(name, data, tasks=600, workers=workers).write(tmp_path / f"{workers}.parquet")
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


def test_the_order_of_the_catalogs_rows_changes_nothing(name: str, data: Data) -> None:
    catalog, attributes = data
    order = np.random.default_rng(5).permutation(len(catalog))
    shuffled = Catalog(catalog.table.take(pa.array(order)))
    words = Attributes(attributes.table.take(pa.array(order[::-1])))
    assert draw(name, (shuffled, words)).digest == draw(name, data).digest


def test_another_seed_gives_other_tasks(name: str, data: Data) -> None:
    assert draw(name, data, seed=1).digest != draw(name, data).digest


def test_the_file_comes_back_as_it_was(name: str, data: Data, tmp_path: Path) -> None:
    tasks = draw(name, data)
    tasks.write(tmp_path / "tasks.parquet")
    read = TaskSet.read(tmp_path / "tasks.parquet")
    assert read.digest == tasks.digest == read.meta["digest"]
    assert read.meta["made_by"]["sampler"] == name
    assert read.meta["from"]["catalog"] == data[0].digest


def test_no_source_is_on_both_sides(name: str, make_data: Any) -> None:
    data = make_data(items=60, source_of=3)
    tasks = draw(name, data)
    assert check_tasks(tasks, *data) == []
    # The property is not empty: items of one source do exist within a class.
    assert len(set(data[0].table.column("source").to_pylist())) < len(data[0])


def test_hash_seed_changes_nothing(name: str, data: Data, tmp_path: Path) -> None:
    catalog, attributes = data
    catalog.write(tmp_path / "catalog.parquet")
    command = [sys.executable, "-m", "shotproof", "sample", "catalog.parquet", "--sampler", name, "--split", "test"]
    command += ["--way", "4", "--shot", "3", "--query", "6", "--tasks", "30"]
    for option, value in inputs(name, attributes).items():
        if isinstance(value, Attributes | Features):
            value.write(tmp_path / f"{option}.parquet")
            command += [f"--{option}", f"{option}.parquet"]
        else:
            command += ["-O", f"{option}={value}"]
    for seed in ("0", "77"):
        subprocess.run([*command, "-o", f"{seed}.parquet"], cwd=tmp_path, env={"PYTHONHASHSEED": seed}, check=True)
    assert (tmp_path / "0.parquet").read_bytes() == (tmp_path / "77.parquet").read_bytes()
    assert TaskSet.read(tmp_path / "0.parquet").digest == draw(name, data).digest


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"way": 1}, InputError, "way must be at least 2"),
        ({"shot": 0}, InputError, "shot must be at least 1"),
        ({"tasks": 0}, InputError, "tasks must be at least 1"),
        ({"split": "tset"}, UnknownName, "did you mean 'test'"),
        ({"quary": 1}, InputError, "has no option 'quary'"),
    ],
)
def test_bad_input(name: str, data: Data, changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        draw(name, data, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"way": 9}, "9 ways need at least 9 classes, the data has 8"),
        ({"query": 60}, "class 'class00' has 60 items, a task needs 63"),
    ],
)
def test_too_little_data(sized: str, data: Data, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Starved, match=message):
        draw(sized, data, **changes)


def test_a_class_too_small_is_an_error_or_left_out_on_demand(sized: str, data: Data) -> None:
    catalog, attributes = data
    keep = [
        i for i, item in enumerate(catalog.items.to_pylist()) if not item.startswith("class03/") or "item00" in item
    ]
    smaller = (Catalog(catalog.table.take(pa.array(keep))), attributes)
    with pytest.raises(Starved, match=r"class 'class03' has 10 items.*needs 18"):
        draw(sized, smaller, query=15)
    tasks = draw(sized, smaller, query=15, skip_small_classes=True)
    assert "class03" not in tasks.table.column("label").to_pylist()
    assert tasks.meta["summary"]["classes_left_out"] == ["class03"]


def test_unknown_sampler(data: Data) -> None:
    with pytest.raises(UnknownName, match="unknown sampler 'fewstap': did you mean 'fewstab'"):
        sample(data[0], "fewstap")


class FirstItems(Sampler):
    """A sampler in one file, as CONTRIBUTING tells: the first classes, and of each the first items."""

    about = "the first items of the first classes"

    def __init__(self, catalog: Catalog, design: Design, seed: int) -> None:
        self.pool, self.design = Pool.of(catalog), design

    def draw(self, tasks: range) -> pa.Table:
        way, shot, query = self.design.way, self.design.shot, self.design.query
        classes = np.tile(np.arange(way), (len(tasks), 1))
        items = self.pool.offsets[classes][..., None] + np.arange(shot + query)
        return self.pool.task_rows(tasks, classes, items[..., :shot], items[..., shot:])


def test_a_sampler_of_ones_own(data: Data) -> None:
    samplers.register("first", FirstItems)
    try:
        tasks = draw("first", data)
        assert check_tasks(tasks, *data) == []
        assert tasks.table.column("label").to_pylist()[:4] == ["class00", "class01", "class02", "class03"]
        with pytest.raises(InputError, match="registered already"):
            samplers.register("first", FirstItems)
    finally:
        samplers.unregister("first")
