"""Changed copies of supports: which there are, what features they need, and comparisons of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.catalog.catalog import Catalog
from shotproof.changes.change import BackgroundChange, changes
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.pipeline.encode_tasks import encode, with_changed_items
from shotproof.pipeline.verify import verify
from shotproof.results.origin import Origin
from shotproof.tasks.changed import Changed, Variants
from shotproof.tasks.copied import Copied, without_copies
from shotproof.tasks.sampler import sample
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet, TaskShape
from tests.drawn_layers import draw_masked
from tests.tasks.test_changed import DESIGN, background_of, catalog_of

NO_CACHE = Runtime(cache=None, workers=1)
CHANGES = ("mixed-random", "mixed-same", "mixed-rival", "only-foreground", "noise")


def copied(catalog: Catalog, like: TaskSet, *spellings: str, copies: int = 3, **options: Any) -> TaskSet:
    """The tasks with copies by these changes."""
    return sample(catalog, Copied(changes=spellings, copies=copies), like=like, **options)


def entries(tasks: TaskSet, row: int) -> list[tuple[str, str]]:
    """Support items of a row with their changes."""
    columns = (tasks.table.column(name)[row].as_py() for name in ("support", "support_change"))
    return list(zip(*columns, strict=True))


def pairs_of(items: pa.Array, spellings: pa.Array) -> set[tuple[str, str]]:
    return set(zip(items.to_pylist(), spellings.to_pylist(), strict=True))


@given(
    seed=st.integers(0, 10**6),
    spellings=st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3, unique=True),
    copies=st.integers(1, 5),
    per_source=st.sampled_from([1, 2]),
)
def test_each_item_has_its_copies_and_all_else_stays(
    seed: int, spellings: list[str], copies: int, per_source: int
) -> None:
    catalog = catalog_of(items=14, per_source=per_source)
    like = sample(catalog, "random", **DESIGN, tasks=6, seed=seed)
    tasks = copied(catalog, like, *spellings, copies=copies, seed=seed)
    assert check_tasks(tasks, catalog) == []
    shared = ["task", "slot", "label", "support", "query"]
    assert without_copies(tasks).select(shared).equals(like.table.select(shared))
    assert tasks.changes("query") is None
    background = background_of(catalog)
    needed = {name: copies if name.startswith("mixed") else 1 for name in spellings}
    for row in range(len(like.table)):
        support = entries(tasks, row)
        originals = like.table.column("support")[row].as_py()
        assert support[: len(originals)] == [(item, "") for item in originals]
        assert len(set(support)) == len(support) == len(originals) * (1 + sum(needed.values()))
        for item in originals:
            of_item = [changes.make(change) for name, change in support if name == item and change]
            assert Counter(change.name for change in of_item) == needed
            for name in needed:
                plates = [
                    change.plate for change in of_item if isinstance(change, BackgroundChange) and change.name == name
                ]
                assert len(set(plates)) == len(plates)
                assert not any(background[plate] == background[item] for plate in plates if plate is not None)
    assert tasks.record.summary["copies_per_item"] == sum(needed.values())
    assert tasks.common_sizes()[1] == DESIGN["shot"] * (1 + sum(needed.values()))
    assert (tasks.record.way, tasks.record.shot, tasks.record.query) == (3, 2, 3)
    assert tasks.record.match == like.digest
    assert Origin.of(evaluate(tasks, _any_features(tasks), "ncc")).axis is None


def _any_features(tasks: TaskSet) -> Features:
    """Random features of all items of a task set."""
    names = pc.unique(pa.chunked_array([*tasks.item_names("support").chunks, *tasks.item_names("query").chunks]))
    return Features.from_array(names.to_pylist(), np.random.default_rng(0).normal(size=(len(names), 3)))


def test_copies_show_no_background_of_a_query() -> None:
    catalog = catalog_of(items=24)
    like = sample(catalog, "random", **DESIGN, tasks=40)
    for spellings in (("mixed-random",), ("mixed-same", "mixed-random")):
        tasks = copied(catalog, like, *spellings)
        count = total = 0
        for start, stop in zip(tasks.starts[:-1], tasks.starts[1:], strict=True):
            queries = {item for items in tasks.table.column("query")[start:stop].to_pylist() for item in items}
            for row in range(start, stop):
                made_changes = [changes.make(change) for _, change in entries(tasks, row) if change]
                total += len(made_changes)
                count += sum(
                    isinstance(change, BackgroundChange) and change.plate in queries for change in made_changes
                )
        assert tasks.record.summary["backgrounds_shown_twice"] == count
        assert count < 0.03 * total


def test_plates_are_from_the_context_that_a_task_plants() -> None:
    catalog = catalog_of(classes=4, items=36, contexts=3)
    like = sample(catalog, "iid(hard_ood=False)", **DESIGN, tasks=10)
    tasks = copied(catalog, like, "mixed-same", copies=2)
    assert check_tasks(tasks, catalog) == []
    contexts = dict(zip(catalog.items, catalog.table.column("context").to_pylist(), strict=True))
    for row in range(len(tasks.table)):
        planted = tasks.table.column("attribute")[row].as_py()
        made_changes = [changes.make(change) for _, change in entries(tasks, row) if change]
        assert {contexts[str(change.plate)] for change in made_changes if isinstance(change, BackgroundChange)} == {
            planted
        }


@pytest.mark.parametrize("spellings", [("mixed-random",), ("mixed-rival", "noise"), ("mixed-same", "only-background")])
def test_complete_variants_are_all_that_tasks_ask_for(spellings: tuple[str, ...]) -> None:
    catalog = catalog_of(items=10)
    variants = Variants.of(copied(catalog, sample(catalog, "random", **DESIGN, tasks=5), *spellings), catalog)
    assert variants.is_complete
    known = pairs_of(variants.items, variants.changes)
    for seed in range(4):
        like = sample(catalog, "random", **DESIGN, tasks=25, seed=seed)
        tasks = copied(catalog, like, *spellings, seed=seed)
        asked = pairs_of(pc.list_flatten(tasks.table.column("support")), tasks.changes("support"))
        assert {pair for pair in asked if pair[1]} <= known


def test_copies_need_the_same_changed_items_as_changed_queries() -> None:
    catalog = catalog_of(items=10)
    like = sample(catalog, "random", **DESIGN, tasks=5)
    queries = sample(catalog, Changed(change="mixed-random"), like=like)
    for tasks in (copied(catalog, like, "mixed-random"), copied(catalog, queries, "mixed-random")):
        known, needed = (Variants.of(each, catalog) for each in (queries, tasks))
        assert pairs_of(known.items, known.changes) == pairs_of(needed.items, needed.changes)


def test_too_many_variants_are_those_of_the_tasks() -> None:
    catalog = catalog_of(items=10)
    like = sample(catalog, "random", **DESIGN, tasks=2)
    tasks = sample(catalog, Copied(most_items=100), like=like)
    variants = Variants.of(tasks, catalog)
    assert not variants.is_complete
    asked = pairs_of(pc.list_flatten(tasks.table.column("support")), tasks.changes("support"))
    assert pairs_of(variants.items, variants.changes) == {pair for pair in asked if pair[1]}


def test_changed_queries_stay_changed() -> None:
    catalog = catalog_of(items=12)
    like = sample(catalog, "changed(change='blur')", like=sample(catalog, "random", **DESIGN, tasks=4))
    tasks = copied(catalog, like, "mixed-random")
    assert tasks.table.column("query_change").equals(like.table.column("query_change"))
    assert check_tasks(tasks, catalog) == []
    variants = Variants.of(tasks, catalog)
    queries = pairs_of(pc.list_flatten(tasks.table.column("query")), tasks.changes("query"))
    assert queries <= pairs_of(variants.items, variants.changes)


def test_tasks_depend_on_their_number_alone(tmp_path: Path) -> None:
    catalog = catalog_of(items=12)
    like = sample(catalog, "random", **DESIGN, tasks=300)
    tasks = copied(catalog, like, "mixed-rival", "noise", runtime=Runtime(workers=1))
    assert copied(catalog, like, "mixed-rival", "noise", runtime=Runtime(workers=2)).digest == tasks.digest
    assert copied(catalog, like, "mixed-rival", "noise", tasks=7).digest == tasks.first(7).digest
    bound = Copied(changes=("mixed-rival", "noise")).bind(catalog, TaskShape(**DESIGN), 0, like=like)
    parts = [bound.draw(range(start, start + 100)) for start in (0, 100, 200)]
    assert TaskSet(pa.concat_tables(parts)).digest == tasks.digest
    tasks.write(tmp_path / "tasks.parquet")
    again = TaskSet.read(tmp_path / "tasks.parquet")
    assert again.digest == tasks.digest
    assert again.record.summary == tasks.record.summary


def test_broken_copies_are_found() -> None:
    catalog = catalog_of(items=12)
    like = sample(catalog, "random", **DESIGN, tasks=1)
    tasks = copied(catalog, like, "mixed-random", "noise", copies=2)

    def problems(support: list[str], spellings: list[str]) -> str:
        table = tasks.table
        for name, first in (("support", support), ("support_change", spellings)):
            lists = [first, *table.column(name).to_pylist()[1:]]
            column = pa.array(lists, pa.list_(pa.string()))
            table = table.set_column(table.column_names.index(name), name, column)
        return "; ".join(map(str, check_tasks(TaskSet(table, tasks.record), catalog)))

    items, spellings = (list(part) for part in zip(*entries(tasks, 0), strict=True))
    assert problems(items, spellings) == ""
    assert "1 copies by 'mixed-random' instead of 2" in problems(items[:2] + items[3:], spellings[:2] + spellings[3:])
    twice = problems([*items, items[-1]], [*spellings, spellings[-1]])
    assert f"support item '{items[-1]}' occurs 2 times with the change 'noise'" in twice
    assert "1 support items, but the design has 2" in problems(items[1:], spellings[1:])
    assert "has copies but is not in the support itself" in problems(items[1:], spellings[1:])
    other = next(item for item in catalog.items if item.startswith(items[0].split("/")[0]) and item not in items)
    assert "is not in the support itself" in problems([*items, other], [*spellings, "noise"])
    assert "which is none of the changes" in problems([*items, items[0]], [*spellings, "blur"])
    own = f"mixed-random(plate='{items[0]}')"
    assert "shows its own background" in problems([*items, items[0]], [*spellings, own])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"changes": ()}, "changes: expected a list of text, at least one"),
        ({"changes": ("blur", "blur(severity=3)")}, "name each change once"),
        ({"changes": ("mixed-same(plate='a')",)}, "the sampler chooses the plate of each item: leave plate out"),
        ({"changes": ("blurr",)}, "unknown change 'blurr': did you mean 'blur'"),
        ({"copies": 0}, "copies: expected a whole number from 1 to 100, found 0"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace(")", r"\)")):
        Copied(**options)


def test_a_single_change_stands_for_a_list() -> None:
    assert Copied(changes="blur") == Copied(changes=("blur",))  # type: ignore[arg-type]
    assert Copied(changes=("blur",)).spelling == "copied(changes=('blur',))"


def test_what_cannot_be_copied_is_refused() -> None:
    catalog = catalog_of(items=5)
    like = sample(catalog, "random", way=3, shot=1, query=2, tasks=2)
    blurred = sample(catalog, "changed(change='blur', side='support')", like=like)
    twice = copied(catalog, like, "mixed-random")
    for changed in (blurred, twice):
        with pytest.raises(InputError, match=r"sampler 'copied': the support items of '.*' are changed already: name"):
            copied(catalog, changed, "noise")
        with pytest.raises(InputError, match=r"sampler 'chosen': the support items of '.*' are changed: name"):
            sample(catalog, "chosen", like=changed)
    for side in ("support", "query", "both"):
        with pytest.raises(InputError, match="items cannot be added: name the unchanged set in like"):
            sample(catalog, Changed(change="mixed-rival", side=side), like=twice)
    with pytest.raises(InsufficientData, match="5 backgrounds in 5 items: each item needs 5 others"):
        copied(catalog, like, "mixed-same", copies=5)
    with pytest.raises(InputError, match="change 'gain' does not apply to images"):
        copied(catalog, like, "gain")


def test_copies_are_evaluated_compared_on_halves_and_verified(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, classes=4, items=14)
    like = sample(catalog, "random", way=3, shot=1, query=3, tasks=20)
    queries = sample(catalog, "changed(change='mixed-random')", like=like)
    sets = [like, queries, copied(catalog, like, "mixed-random"), copied(catalog, queries, "mixed-random", copies=2)]
    sets.append(sample(catalog, "chosen", like=queries))
    seen = encode(catalog, "pixels(size=6)", tasks=sets, runtime=NO_CACHE)
    noise = np.random.default_rng(0).normal(scale=0.8, size=seen.array.shape)
    features = Features.from_array(seen.table.column("item").to_pylist(), seen.array + noise, name="noisy")
    assert len(features) == len(with_changed_items(catalog, sets)) == len(catalog) * (1 + 4)
    results = [evaluate(tasks, features, ["ncc", "ridge"], runtime=NO_CACHE) for tasks in sets]
    inputs = Inputs(results, sets, [catalog], [features], halvings=4, tasks_per_half=8)
    comparison = compare(inputs, intervals=["images", "sampler"], placebo=False)
    assert comparison.refused == {}
    (block,) = comparison.blocks  # copies do not make another design
    labels = [group.label for group in comparison.groups]
    assert len(set(labels)) == 5
    for group in comparison.groups:
        for row in group.rows:
            assert row.intervals["acc"]["images"].refused is None
    accuracy = [each.counts("ncc").accuracy_by_task().mean() for each in results]
    assert accuracy[3] > accuracy[1]  # supports on several backgrounds, queries on other ones
    files = [tmp_path / f"{number}.parquet" for number in range(7)]
    for file, part in zip(files, [catalog, features, *sets], strict=True):
        part.write(file)
    assert verify(files).problems == ()
    assert block.design.shot == 1
