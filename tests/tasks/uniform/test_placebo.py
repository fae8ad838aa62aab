"""Placebos: the same tasks with the items of each class permuted, so that nothing but chance is planted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData, Mismatch
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.tasks.sampler import sample, samplers
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet, TaskShape
from tests.conftest import draw_data
from tests.context_data import mixtures, sample_context

DESIGN: dict[str, Any] = {"way": 4, "shot": 2, "query": 5, "tasks": 60}


def items_of(tasks: TaskSet, side: str) -> list[list[str]]:
    listed: list[list[str]] = tasks.table.column(side).to_pylist()
    return listed


def moved(like: TaskSet, placebo: TaskSet) -> set[tuple[str, str]]:
    """Every item of a task set with what stands in its place."""
    return {
        pair
        for side in ("support", "query")
        for before, after in zip(items_of(like, side), items_of(placebo, side), strict=True)
        for pair in zip(before, after, strict=True)
    }


@pytest.mark.parametrize("spelling", ["placebo", "placebo(per_task=False)"])
@pytest.mark.parametrize("source_of", [None, 3])
def test_items_keep_their_class_and_sides_stay_apart(spelling: str, source_of: int | None) -> None:
    catalog, attributes = draw_data(items=60, source_of=source_of)
    like = sample(catalog, "fewstab", attributes=attributes, **DESIGN)
    placebo = sample(catalog, spelling, like=like)
    assert (len(placebo), *placebo.common_sizes()) == (60, 4, 2, 5)
    assert placebo.table.column("label") == like.table.column("label")
    label = dict(zip(catalog.items, catalog.table.column("label").to_pylist(), strict=True))
    source = dict.fromkeys(catalog.items)
    if source_of is not None:
        source = dict(zip(catalog.items, catalog.table.column("source").to_pylist(), strict=True))
    for row in placebo.table.to_pylist():
        chosen = row["support"] + row["query"]
        assert {label[item] for item in chosen} == {row["label"]}
        assert len(set(chosen)) == len(chosen)
        if source_of is not None:
            assert not {source[item] for item in row["support"]} & {source[item] for item in row["query"]}
    assert check_tasks(placebo, catalog) == []
    assert sum(before == after for before, after in moved(like, placebo)) < 0.1 * len(moved(like, placebo))


def test_the_words_that_were_planted_are_not_claimed_of_other_items() -> None:
    catalog, attributes = draw_data()
    like = sample(catalog, "fewstab", attributes=attributes, **DESIGN)
    assert like.table.column("attribute").null_count == 0
    assert sample(catalog, "placebo", like=like).table.column("attribute").null_count == len(like) * 4


def test_one_permutation_gives_the_tasks_of_one_shuffled_data_set() -> None:
    catalog, attributes = draw_data()
    # Random tasks reach every item, so their placebo tells the whole permutation.
    everywhere = sample(catalog, "random", way=4, shot=5, query=15, tasks=80, seed=5)
    pairs = moved(everywhere, sample(catalog, "placebo(per_task=False)", like=everywhere))
    permuted = dict(pairs)
    assert len(pairs) == len(permuted) == len(set(permuted.values())) == len(catalog)
    assert {before.split("/")[0] == after.split("/")[0] for before, after in pairs} == {True}

    like = sample(catalog, "fewstab", attributes=attributes, **DESIGN)
    placebo = sample(catalog, "placebo(per_task=False)", like=like)
    assert moved(like, placebo) <= pairs
    words = {item: list(held or ()) for item, held in attributes.to_words().items()}
    shuffled = Attributes.from_words({permuted[item]: held for item, held in words.items()})
    claimed = like.table
    for side in ("support", "query"):
        at = claimed.schema.get_field_index(side)
        claimed = claimed.set_column(at, side, placebo.table.column(side))
    record = replace(like.record, sources={}, stated_digest=None)
    assert check_tasks(TaskSet(claimed, record), catalog, shuffled) == []
    assert check_tasks(TaskSet(claimed, record), catalog, attributes) != []


def test_each_task_has_permutations_of_its_own() -> None:
    catalog, attributes = draw_data()
    like = sample(catalog, "fewstab", attributes=attributes, **DESIGN)
    pairs = moved(like, sample(catalog, "placebo", like=like))
    assert len({before for before, _ in pairs}) < len(pairs)


@pytest.mark.parametrize("spelling", ["placebo", "placebo(per_task=False)"])
def test_every_item_is_as_likely(spelling: str) -> None:
    """Over many seeds, an item of a class becomes each item of it equally often."""
    catalog, attributes = draw_data(classes=4, items=12, words=5)
    like = sample(catalog, "fewstab(skip_small_classes=True)", attributes=attributes, way=2, shot=1, query=2, tasks=3)
    first = items_of(like, "support")[0][0]
    sampler, shape = samplers.make(spelling), TaskShape(2, 1, 2)
    drawn = [sampler.bind(catalog, shape, seed, like=like).draw(range(1)) for seed in range(600)]
    became = [rows.column("support")[0][0].as_py() for rows in drawn]
    names, counts = np.unique(became, return_counts=True)
    assert len(names) == 12
    assert {name.split("/")[0] for name in names} == {first.split("/")[0]}
    assert ((counts - 50) ** 2 / 50).sum() < 31.3  # the 99.9th percentile of chi-squared with 11 degrees of freedom


@pytest.mark.parametrize("with_sources", [False, True])
def test_placebos_of_matched_sets_are_matched(with_sources: bool) -> None:
    catalog = mixtures()
    if not with_sources:
        catalog = Catalog(catalog.table.drop_columns(["source"]))
    sets = sample_context(catalog, "context(clean_value='none')", **{**DESIGN, "way": 3})
    placebos = {name: sample(catalog, "placebo", like=tasks) for name, tasks in sets.items()}
    assert len({tasks.match for tasks in (*sets.values(), *placebos.values())}) == 1
    for name, tasks in placebos.items():
        assert items_of(tasks, "support") == items_of(placebos["iid"], "support")
        assert items_of(tasks, "query") != items_of(sets[name], "query")
        assert check_tasks(tasks, catalog) == []
    assert items_of(placebos["iid"], "query") != items_of(placebos["hard-ood"], "query")


def test_too_few_sources_are_named() -> None:
    catalog = mixtures(recordings=3, contexts=3)
    like = sample(catalog, "random", way=2, shot=1, query=8, tasks=30)
    sources = [source.replace("r02", "r01") for source in catalog.table.column("source").to_pylist()]
    crowded = catalog.table.set_column(catalog.table.column_names.index("source"), "source", [sources])
    with pytest.raises(InsufficientData, match=r"task \d+: class 'c\d' has too few sources"):
        sample(Catalog(crowded), "placebo", like=like)


def test_tasks_of_another_catalog_are_refused() -> None:
    catalog, attributes = draw_data()
    like = sample(catalog, "fewstab", attributes=attributes, **DESIGN)
    smaller = Catalog(catalog.table.slice(1))
    with pytest.raises(Mismatch, match=r"the item 'class00/item000', .*catalog and split"):
        sample(smaller, "placebo", like=like)
    with pytest.raises(InputError, match="sampler 'placebo' needs like"):
        sample(catalog, "placebo")


def test_the_number_of_workers_changes_no_byte(tmp_path: Path) -> None:
    catalog, attributes = draw_data(items=60, source_of=2)
    like = sample(catalog, "fewstab", attributes=attributes, **{**DESIGN, "tasks": 600})
    for workers in (1, 2):
        placebo = sample(catalog, "placebo", like=like, seed=3, runtime=Runtime(workers=workers))
        placebo.write(tmp_path / f"{workers}.parquet")
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


@pytest.mark.parametrize("spelling", ["placebo", "placebo(per_task=False)"])
def test_the_accuracy_on_a_placebo_is_that_on_random_tasks(spelling: str) -> None:
    """Where words mislead and every class can be drawn, FewSTAB loses many points and its placebo none."""
    catalog, attributes = draw_data(classes=6, items=60, words=6)
    rng = np.random.default_rng(0)
    words = attributes.to_words()
    place = {word: rng.normal(size=8) for word in sorted({word for held in words.values() for word in held or ()})}
    center = {f"class{c:02d}": rng.normal(size=8) for c in range(6)}
    values = [
        center[item.split("/")[0]] + 2 * sum((place[word] for word in words[item] or ()), np.zeros(8))
        for item in catalog.items
    ]
    features = Features.from_array(list(catalog.items), np.array(values) + 0.5 * rng.normal(size=(len(values), 8)))
    shape: dict[str, Any] = {"way": 3, "shot": 1, "query": 5, "tasks": 3000}
    biased = sample(catalog, "fewstab", attributes=attributes, **shape)
    assert set(biased.table.column("label").to_pylist()) == set(center)
    sets = {"random": sample(catalog, "random", **shape), "fewstab": biased}
    sets["placebo"] = sample(catalog, spelling, like=biased)
    found = {name: evaluate(tasks, features, "ncc").counts("ncc").accuracy_by_task() for name, tasks in sets.items()}

    def errors(name: str) -> float:
        """How many standard errors below random tasks."""
        error = np.sqrt(sum(found[one].var(ddof=1) / len(found[one]) for one in ("random", name)))
        return float((found["random"].mean() - found[name].mean()) / error)

    assert errors("fewstab") > 20
    assert abs(errors("placebo")) < 4
