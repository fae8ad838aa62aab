from __future__ import annotations

from dataclasses import replace

import numpy as np

from shotproof.analysis.compare import compare
from shotproof.catalog.catalog import Catalog
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.results.results import Results
from shotproof.tasks.context.context_sets import sample_context
from tests.context_data import catalog_of_counts


def results_of(contexts: int, way: int, shots: tuple[int, ...] = (1,)) -> list[Results]:
    catalog = catalog_of_counts(np.full((4, contexts), 12))
    random = np.random.default_rng(0)
    features = Features.from_array(catalog.items, random.normal(size=(len(catalog), 4)))
    return [
        evaluate(tasks, features, "ncc")
        for shot in shots
        for tasks in sample_context(catalog, way=way, shot=shot, query=3, tasks=8).values()
    ]


def test_of_two_contexts_ood_and_hard_ood_are_one() -> None:
    comparison = compare(results_of(contexts=2, way=2), intervals="sampler")
    assert [[group.label for group in block.groups] for block in comparison.blocks] == [["iid", "ood"]]
    assert [[loss.label for loss in block.losses] for block in comparison.blocks] == [["ood"]]
    assert comparison.notes == ["ood and hard-ood are the same tasks here"]


def test_without_more_queries_than_other_classes_they_are_one_too() -> None:
    comparison = compare(results_of(contexts=4, way=4), intervals="sampler")
    assert [loss.label for loss in comparison.blocks[0].losses] == ["ood"]
    assert comparison.notes == ["ood and hard-ood are the same tasks here"]


def test_a_classifier_that_was_evaluated_under_one_name_alone_is_not_lost() -> None:
    iid, ood, hard = results_of(contexts=2, way=2)
    renamed = replace(hard, record=replace(hard.record, features=replace(hard.record.features, name="other")))
    (block,) = compare([iid, ood, renamed]).blocks
    assert [len(group.rows) for group in block.groups] == [1, 2]


def test_each_design_is_told_apart() -> None:
    comparison = compare(results_of(contexts=2, way=2, shots=(1, 2)), intervals="sampler")
    assert comparison.notes == [
        "2-way 1-shot: ood and hard-ood are the same tasks here",
        "2-way 2-shot: ood and hard-ood are the same tasks here",
    ]


def test_of_three_contexts_they_are_two() -> None:
    comparison = compare(results_of(contexts=3, way=2), intervals="sampler")
    assert [loss.label for loss in comparison.blocks[0].losses] == ["ood", "hard-ood"]
    assert comparison.notes == []


def test_the_words_for_items_and_contexts_come_from_the_records() -> None:
    plain = results_of(contexts=3, way=2)
    assert (compare(plain).medium, compare(plain).context) == (None, "context")
    told = [_as(given, "sound", "speaker") for given in plain]
    comparison = compare(told)
    assert (comparison.medium, comparison.context) == ("sound", "speaker")
    assert "same recordings; it says nothing about new recordings" in comparison.to_json()["covers"]["sampler"]
    assert compare([*told[:-1], _as(plain[-1], "image", "speaker")]).medium is None


def _as(given: Results, medium: str, column: str) -> Results:
    tasks = given.record.tasks
    assert tasks.sampler is not None
    sampler = replace(tasks.sampler, options={**tasks.sampler.options, "context_column": column})
    return replace(given, record=replace(given.record, tasks=replace(tasks, medium=medium, sampler=sampler)))


def test_tasks_remember_what_their_items_are() -> None:
    catalog = catalog_of_counts(np.full((4, 3), 12))
    paths = catalog.table.column_names.index("path")
    sounds = Catalog(catalog.table.set_column(paths, "path", [[f"{item}.wav" for item in catalog.items]]))
    for tasks in sample_context(sounds, way=2, shot=1, query=3, tasks=2).values():
        assert tasks.record.medium == "sound"
