"""What fooled a classifier that sees nothing but the context, and that nothing is shown where nobody leans on it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Set
from pathlib import Path

import numpy as np
import pytest

from shotproof.analysis.compare import compare
from shotproof.analysis.fooled import EXAMPLES, Fooled, find_fooled
from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.records import AttributesRecord
from shotproof.evaluation.evaluate import evaluate, predict_queries
from shotproof.features.features import Features
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.scenes import ScenesWorld
from tests.context_data import sample_context
from tests.html_page import Page
from tests.report_files import write_report

SIZE = {"way": 4, "shot": 2, "query": 3, "tasks": 40}


def features_by(catalog: Catalog, *columns: str) -> Features:
    """A code of each column's value, with noise so that nothing ties."""
    codes = [catalog.table.column(name).dictionary_encode().combine_chunks().indices.to_numpy() for name in columns]
    values = np.concatenate([np.eye(code.max() + 1)[code] for code in codes], axis=1)
    return Features.from_array(catalog.items, values + 0.3 * np.random.default_rng(0).normal(size=values.shape))


def material_of(catalog: Catalog, sets: list[TaskSet], features: Features) -> Inputs:
    results = [evaluate(tasks, features, ["ncc"]) for tasks in sets]
    return Inputs(results, sets, [catalog], [features])


@pytest.fixture
def catalog() -> Catalog:
    return ScenesWorld(items=5).catalog().in_split("test")


def context_sets(catalog: Catalog) -> list[TaskSet]:
    options = {"name": "context", "context_column": "background"}
    return [*sample_context(catalog, options, **SIZE).values()]


def found_in(inputs: Inputs) -> Fooled | None:
    return find_fooled(compare(inputs, intervals="sampler"), inputs)


def guessed_by_cue(tasks: TaskSet, cues: Mapping[str, Set[str]], called: list[list[int]]) -> float:
    """How many wrong answers name a class with the query's cue, averaged over all ways to give other wrong answers."""
    rows = tasks.table.to_pylist()
    expected = 0.0
    for own, slots in zip(rows, called, strict=True):
        missed = [item for item, slot in zip(own["query"], slots, strict=True) if slot != own["slot"]]
        others = [row["attribute"] for row in rows if row["task"] == own["task"] and row["slot"] != own["slot"]]
        ways = list(itertools.product(others, repeat=len(missed)))
        named = [sum(cue in cues[item] for item, cue in zip(missed, way, strict=True)) for way in ways]
        expected += sum(named) / len(ways)
    return expected


def check_chance(found: Fooled, inputs: Inputs, cues: Mapping[str, Set[str]]) -> None:
    tasks = next(task for task in inputs.tasks if task.record.sampler_name == found.label)
    expected = guessed_by_cue(tasks, cues, predict_queries(tasks, inputs.features[0], "ncc"))
    assert found.by_chance == pytest.approx(expected)
    assert 0 < found.by_chance < found.by_cue


def test_queries_that_went_by_their_context(catalog: Catalog) -> None:
    inputs = material_of(catalog, context_sets(catalog), features_by(catalog, "background"))
    found = found_in(inputs)
    assert found is not None
    assert found.label in ("ood", "hard-ood")
    assert found.cue == "background"
    results = next(result for result in inputs.results if result.record.tasks.sampler_name == found.label)
    counts = results.counts("ncc")
    assert found.wrong == int((counts.n_query - counts.n_correct).sum())
    assert 0.9 * found.wrong < found.by_cue <= found.wrong
    assert len(found.examples) == EXAMPLES
    background = dict(zip(catalog.items, catalog.table.column("background").to_pylist(), strict=True))
    for one in found.examples:
        assert one.label != one.called
        assert background[one.item] == one.called_cue != one.own_cue
        assert {background[item] for item in one.own_support} == {one.own_cue}
        assert {background[item] for item in one.called_support} == {one.called_cue}
    assert (
        len({example.label for example in found.examples})
        == len({example.task for example in found.examples})
        == EXAMPLES
    )
    check_chance(found, inputs, {item: {place} for item, place in background.items()})


def test_nothing_is_shown_of_a_classifier_that_knows_the_animal(catalog: Catalog) -> None:
    assert found_in(material_of(catalog, context_sets(catalog), features_by(catalog, "label"))) is None


def test_queries_that_went_by_an_attribute(catalog: Catalog) -> None:
    backgrounds = zip(catalog.items, catalog.table.column("background").to_pylist(), strict=True)
    words = {item: [place, f"number {n % 3}"] for n, (item, place) in enumerate(backgrounds)}  # some share a word
    attributes = Attributes.from_words(words, AttributesRecord())
    sets = [sample(catalog, "random", **SIZE), sample(catalog, "fewstab", attributes=attributes, **SIZE)]
    given = material_of(catalog, sets, features_by(catalog, "label", "background"))
    found = found_in(Inputs(given.results, given.tasks, given.catalogs, given.features, [attributes]))
    assert found is not None
    assert (found.label, found.cue) == ("fewstab", "attribute")
    assert found.examples
    check_chance(found, given, {item: set(of) for item, of in words.items()})
    assert found_in(given) is None  # without the attributes there is no placebo


def test_the_page_begins_with_them(tmp_path: Path) -> None:
    catalog = ScenesWorld(items=5, size=16).write(tmp_path, "test")
    inputs = material_of(catalog, context_sets(catalog), features_by(catalog, "background"))
    made = {"tasks": inputs.tasks, "catalog": inputs.catalogs, "features": inputs.features}
    write_report(tmp_path / "page.html", inputs.results, **made, intervals="sampler", projection="none")
    page = Page(tmp_path / "page.html")
    assert page.text.index("Fooled by the background") < page.text.index("<nav")
    assert len(page.find("figure", **{"class": "panel fooled"})) == EXAMPLES
    found = found_in(inputs)
    assert found is not None
    assert f"{found.by_cue} of the {found.wrong} wrong answers in the first 40 tasks; by chance it would be about " in (
        page.text
    )
    assert f"by chance it would be about {found.by_chance:.0f}." in page.text
