"""The contract of every registered sampler."""

from __future__ import annotations

import dataclasses
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData, UnknownName
from shotproof.core.options import Option
from shotproof.core.records import CatalogRecord
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.features import Features
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import BoundSampler, Sampler, SamplerInputs, sample, samplers
from shotproof.tasks.search.hardest import Hardest
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet, TaskShape
from tests.conftest import draw_data
from tests.hash_seeds import run_with_another_hash_seed

Data = tuple[Catalog, Attributes]
DESIGN: dict[str, Any] = {"way": 4, "shot": 3, "query": 6, "tasks": 30}
# Samplers that do not go by the way, shot and query asked for.
OWN_SIZES = ["changed", "chosen", "copied", "meta-dataset", "placebo"]
# Options that a sampler cannot do without on this data, or that keep a test quick.
OPTIONS: dict[str, dict[str, Any]] = {
    "clean": {"clean_value": "none"},
    "copied": {"changes": ("noise", "blur")},
    "filter": {"candidates": 3},
    "hard-ood": {"clean_value": "none"},
    "iid": {"clean_value": "none"},
    "ood": {"clean_value": "none"},
    "shift": {"support_where": "word00 or word01", "query_where": "not word00 and not word01"},
}
SINGLE = [name for name in samplers.names() if name != "context"]  # samplers that draw one set


@pytest.fixture
def data() -> Data:
    return draw_data(items=60)


def make(name: str, **options: Any) -> Sampler:
    return samplers.make(name, **{**OPTIONS.get(name, {}), **options})


def inputs(sampler: Sampler, catalog: Catalog, attributes: Attributes) -> dict[str, Any]:
    """What a sampler takes beside the catalog; a task set to be like only where it cannot do without."""
    items = sorted(attributes.table.column("item").to_pylist())
    features = Features.from_array(items, np.random.default_rng(3).normal(size=(len(items), 8)))
    given: dict[str, Any] = {"attributes": attributes, "features": features}
    given = {role: value for role, value in given.items() if role in sampler.takes}
    if "like" in sampler.needs:
        given["like"] = sample(catalog, "fewstab", attributes=attributes, split="test", **DESIGN)
    return given


def draw(name: str, data: Data, options: dict[str, Any] | None = None, **changes: Any) -> TaskSet:
    catalog, attributes = data
    sampler = make(name, **(options or {}))
    return sample(catalog, sampler, **{**DESIGN, "split": "test", **inputs(sampler, catalog, attributes), **changes})


def bind(name: str, data: Data) -> BoundSampler[Sampler]:
    sampler = make(name)
    return sampler.bind(data[0], TaskShape(4, 3, 6), 0, **inputs(sampler, *data))


@pytest.fixture(params=SINGLE)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[name for name in SINGLE if name not in OWN_SIZES])
def sized(request: pytest.FixtureRequest) -> str:
    """A sampler whose tasks have the way, shot and query that were asked for."""
    return str(request.param)


def other_value(option: Option) -> Any:
    """A legal value that is not the default."""
    if option.choices:
        return next(value for value in option.choices if value != option.default)
    if isinstance(option.default, bool):
        return not option.default
    if isinstance(option.default, int | float):
        return option.default + 1
    if option.name == "change":
        return "noise"
    if option.name == "changes":
        return ("crop",)
    return "elsewhere" if option.least is None else 3 if "whole number" in option.values else 2.5


def changed(name: str) -> Sampler:
    """With every option that can be changed at a value of its own."""
    options = {option.name: other_value(option) for option in samplers.get(name).options()}
    if name == "hard-ood":
        options["hard_ood"] = True  # the only value that it can have
    if name == "chosen":
        options["choose"] = "spread"  # the only one that goes by cues
    return samplers.make(name, **options)


@pytest.mark.parametrize("name", samplers.names())
class TestRecord:
    def test_the_spelling_gives_the_same_sampler_again(self, name: str) -> None:
        for sampler in (make(name), changed(name)):
            assert samplers.make(sampler.spelling) == sampler
            assert samplers.make({"name": sampler.name, **sampler.parameters()}) == sampler
            assert hash(samplers.make(sampler.spelling)) == hash(sampler)
        assert changed(name) != make(name)
        assert changed(name).name == name

    def test_it_is_frozen(self, name: str) -> None:
        sampler = make(name)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(sampler, sampler.options()[0].name, None)

    def test_it_pickles(self, name: str) -> None:
        assert pickle.loads(pickle.dumps(changed(name))) == changed(name)

    def test_it_says_what_it_is_and_what_its_options_do(self, name: str) -> None:
        cls = samplers.get(name)
        assert cls.about
        assert all(option.help for option in cls.options())
        assert set(cls.needs) <= set(cls.takes) <= {"attributes", "features", "like", "plates"}
        assert not cls.example or samplers.make(cls.example).name == name

    def test_a_value_out_of_bounds_is_refused_by_name(self, name: str) -> None:
        for option in samplers.get(name).options():
            beyond = [
                *([] if option.least is None else [option.least - 1]),
                *([] if option.above is None else [option.above]),
                *(["no such choice"] if option.choices else []),
                object(),
            ]
            for value in beyond:
                with pytest.raises(InputError, match=f"^sampler '{name}': {option.name}: expected .*, found "):
                    make(name, **{option.name: value})

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ("shots", "'shot' is an argument of sample, "),
            ("ways", "'way' is an argument of sample, "),
            ("queries", "'query' is an argument of sample, "),
            ("zzz", r"has no option 'zzz'"),
        ],
    )
    def test_an_option_that_it_has_not(self, name: str, option: str, message: str) -> None:
        with pytest.raises(InputError, match=f"sampler '{name}' has no option '{option}'"):
            make(name, **{option: 5})
        with pytest.raises(InputError, match=message):
            make(name, **{option: 5})


def test_tasks_pass_the_checker(name: str, data: Data) -> None:
    tasks = draw(name, data)
    assert len(tasks) == min(30, bind(name, data).available() or 30)
    assert check_tasks(tasks, *data) == []


def test_tasks_have_the_design(sized: str, data: Data) -> None:
    tasks = draw(sized, data)
    assert (tasks.record.way, tasks.record.shot, tasks.record.query) == (4, 3, 6)
    assert np.diff(tasks.starts).tolist() == [4] * len(tasks)
    assert {len(items) for items in tasks.table.column("support").to_pylist()} == {3}
    assert {len(items) for items in tasks.table.column("query").to_pylist()} == {6}


def test_the_first_tasks_do_not_depend_on_how_many_are_drawn(name: str, data: Data) -> None:
    for tasks in (4, 30):
        assert draw(name, data, tasks=600).first(tasks).digest == draw(name, data, tasks=tasks).digest


def test_workers_change_nothing(name: str, data: Data, tmp_path: Path) -> None:
    for workers in (1, 2):
        draw(name, data, tasks=600, runtime=Runtime(workers=workers)).write(tmp_path / f"{workers}.parquet")
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


def test_bound_samplers_pickle(name: str, data: Data) -> None:
    bound = bind(name, data)
    assert pickle.loads(pickle.dumps(bound)).draw(range(3, 9)).equals(bound.draw(range(3, 9)))


def test_the_order_of_the_catalogs_rows_changes_nothing(name: str, data: Data) -> None:
    catalog, attributes = data
    order = np.random.default_rng(5).permutation(len(catalog))
    shuffled = Catalog(catalog.table.take(pa.array(order)))
    words = Attributes(attributes.table.take(pa.array(order[::-1])))
    assert draw(name, (shuffled, words)).digest == draw(name, data).digest


def test_another_seed_gives_other_tasks(name: str, data: Data) -> None:
    # A change that shows no other item's background draws nothing: its tasks are those of `like`.
    assert (draw(name, data, seed=1).digest == draw(name, data).digest) == (name in ("changed", "copied"))


def test_the_file_comes_back_as_it_was(name: str, data: Data, tmp_path: Path) -> None:
    tasks = draw(name, data)
    tasks.write(tmp_path / "tasks.parquet")
    read = TaskSet.read(tmp_path / "tasks.parquet")
    assert read.digest == tasks.digest == read.record.stated_digest
    assert dataclasses.replace(read.record, stated_digest=None) == tasks.record


def test_the_record_says_how_to_draw_the_tasks_again(name: str, data: Data) -> None:
    record, sampler = draw(name, data, seed=4).record, make(name)
    assert record.sampler is not None
    assert (record.name, record.sampler.spelling, record.seed) == (sampler.spelling, sampler.spelling, 4)
    given = inputs(sampler, *data)
    digests = {role: value.digest for role, value in {"catalog": data[0], **given}.items()}
    assert {role: source.digest for role, source in record.sources.items()} == digests
    again = samplers.make({"name": record.sampler.name, **record.sampler.options})
    assert again == sampler
    assert sample(data[0], again, **DESIGN, **given, split="test", seed=4).record == record


def test_no_source_is_on_both_sides(name: str, make_data: Any) -> None:
    data = make_data(items=60, source_of=3)
    tasks = draw(name, data)
    assert check_tasks(tasks, *data) == []
    # The property is not empty: items of one source do exist within a class.
    assert len(set(data[0].table.column("source").to_pylist())) < len(data[0])


DRAW_ALL = """
import sys
from shotproof.tasks.sampler import sample
from tests.tasks.test_sampler import DESIGN, SINGLE, draw_data, inputs, make
catalog, attributes = draw_data(items=60)
for name in SINGLE:
    sampler = make(name)
    tasks = sample(catalog, sampler, **DESIGN, split="test", **inputs(sampler, catalog, attributes))
    tasks.write(f"{sys.argv[1]}/{name}.parquet")
"""


def test_hash_seed_changes_nothing(tmp_path: Path) -> None:
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    run_with_another_hash_seed(DRAW_ALL, tmp_path, PYTHONPATH=paths)
    for name in SINGLE:
        draw(name, draw_data(items=60)).write(tmp_path / "here.parquet")
        assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / f"{name}.parquet").read_bytes()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"way": 1}, InputError, "way: expected a whole number from 2 to 10,000, found 1"),
        ({"shot": 0}, InputError, "shot: expected a whole number from 1 to 1,000,000, found 0"),
        ({"query": 1.5}, InputError, "query: expected a whole number from 1 to 1,000,000, found 1.5"),
        ({"tasks": 0}, InputError, "tasks: expected a whole number from 1 to 10,000,000, found 0"),
        ({"split": "tset"}, UnknownName, "did you mean 'test'"),
    ],
)
def test_bad_input(name: str, data: Data, changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        draw(name, data, **changes)


def test_what_it_needs_is_asked_for_and_what_it_does_not_take_is_told(name: str, data: Data) -> None:
    sampler = make(name)
    for role in sampler.needs:
        with pytest.raises(InputError, match=f"sampler '{name}' needs {role}"):
            draw(name, data, **{role: None})
    if "attributes" not in sampler.takes:
        with pytest.warns(UserWarning, match=f"sampler '{name}' does not use attributes"):
            tasks = draw(name, data, attributes=data[1])
        assert tasks.record == draw(name, data).record


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"way": 9}, "9 ways need at least 9 classes, the data has 8"),
        ({"query": 60}, "class 'class00' has 60 items, a task needs 63"),
    ],
)
def test_too_little_data(sized: str, data: Data, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InsufficientData, match=message):
        draw(sized, data, **changes)


def test_a_class_too_small_is_an_error_or_left_out_on_demand(sized: str, data: Data) -> None:
    catalog, attributes = data
    keep = [i for i, item in enumerate(catalog.items) if not item.startswith("class03/") or "item00" in item]
    smaller = (Catalog(catalog.table.take(pa.array(keep))), attributes)
    with pytest.raises(InsufficientData, match=r"class 'class03' has 10 items.*needs 18"):
        draw(sized, smaller, query=15)
    tasks = draw(sized, smaller, {"skip_small_classes": True}, query=15)
    assert "class03" not in tasks.table.column("label").to_pylist()
    assert tasks.record.summary["classes_left_out"] == ["class03"]


def test_a_sampler_is_given_as_spelling_table_object_or_class(data: Data) -> None:
    features = inputs(Hardest(), *data)
    spelled, table, made = (
        sample(data[0], given, **DESIGN, **features)
        for given in ("hardest(effort='high')", {"name": "hardest", "effort": "high"}, Hardest(effort="high"))
    )
    assert spelled.record == table.record == made.record
    assert spelled.record.name == "hardest(effort='high')"
    assert sample(data[0], Hardest, **DESIGN, **features, name="mine").record.name == "mine"


def test_the_data_set_and_the_mix_are_recorded(data: Data) -> None:
    named = Catalog(data[0].table, record=CatalogRecord(name="birds", mix={"dial": 0.5}))
    record = sample(named, "random", **DESIGN).record
    assert record.sources["catalog"].name == "birds"
    assert record.mix == {"dial": 0.5}


def test_unknown_sampler(data: Data) -> None:
    with pytest.raises(UnknownName, match="unknown sampler 'fewstap': did you mean 'fewstab'"):
        sample(data[0], "fewstap")


@dataclass(frozen=True)
class FirstItems(Sampler):
    """A sampler in one file, as CONTRIBUTING tells: the first classes, and of each the first items."""

    about = "the first items of the first classes"

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Sampler]:
        return BoundFirstItems(self, inputs)


class BoundFirstItems(BoundSampler[Sampler]):
    def __init__(self, sampler: Sampler, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        self.pool = ItemPool.of(inputs.catalog)

    def draw(self, tasks: range) -> pa.Table:
        way, shot, query = self.shape.way, self.shape.shot, self.shape.query
        classes = np.tile(np.arange(way), (len(tasks), 1))
        items = self.pool.offsets[classes][..., None] + np.arange(shot + query)
        return self.pool.task_rows(tasks, classes, items[..., :shot], items[..., shot:])


def test_a_sampler_of_ones_own(data: Data) -> None:
    samplers.register("first", FirstItems)
    try:
        tasks = draw("first", data)
        assert check_tasks(tasks, *data) == []
        assert tasks.table.column("label").to_pylist()[:4] == ["class00", "class01", "class02", "class03"]
        assert tasks.record.sampler_name == "first"
        with pytest.raises(InputError, match="'first' is already registered"):
            samplers.register("first", FirstItems)
    finally:
        samplers.unregister("first")
