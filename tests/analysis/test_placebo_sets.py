"""Placebos that a comparison draws and evaluates where the results lack them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.placebo_sets import with_placebos
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.sentences import headline
from shotproof.core.records import ResultsRecord
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.results.results import Results
from shotproof.tasks.sampler import sample
from tests.conftest import draw_data
from tests.context_data import catalog_of_counts, mixtures, sample_context

SHAPE: dict[str, Any] = {"way": 3, "shot": 1, "query": 4, "tasks": 60}


def features_of(catalog: Catalog, seed: int = 0) -> Features:
    """Class means and noise."""
    random = np.random.default_rng(seed)
    labels = catalog.table.column("label").to_pylist()
    means = {label: random.normal(size=6) for label in sorted(set(labels))}
    values = np.stack([means[label] + random.normal(size=6) for label in labels])
    return Features.from_array(list(catalog.items), values, name="drawn")


@pytest.fixture
def given(data: tuple[Catalog, Attributes]) -> Inputs:
    catalog, attributes = data
    features = features_of(catalog)
    sets = [sample(catalog, "random", **SHAPE), sample(catalog, "fewstab", attributes=attributes, **SHAPE)]
    results = [evaluate(tasks, features, ["ncc", "knn"]) for tasks in sets]
    return Inputs(results, sets, [catalog], [features], [attributes])


def test_the_placebo_is_drawn_with_the_set_s_seed_and_evaluated_by_all_methods(given: Inputs) -> None:
    prepared = with_placebos(given)
    assert prepared.notes == []
    (placebo,) = prepared.inputs.tasks[2:]
    expected = sample(given.catalogs[0], "placebo", like=given.tasks[1])
    assert placebo.digest == expected.digest
    (results,) = prepared.inputs.results[2:]
    assert results.table.equals(evaluate(expected, given.features[0], ["ncc", "knn"]).table)
    assert with_placebos(prepared.inputs).inputs == prepared.inputs  # nothing is lacking any more


def test_a_comparison_has_it_unless_it_is_not_wanted(given: Inputs) -> None:
    beyond = compare(given, intervals="sampler").blocks[0]
    without = compare(given, intervals="sampler", placebo=False).blocks[0]
    assert (beyond.placebos, without.placebos) == ({"fewstab": "placebo of fewstab"}, {})
    (loss,), (plain,) = beyond.losses, without.losses
    assert loss.excess is not None
    assert plain.excess is None
    assert loss.gap == plain.gap
    assert [group.label for group in beyond.measured] == [group.label for group in without.groups]


def test_seeds_have_a_placebo_each(given: Inputs, data: tuple[Catalog, Attributes]) -> None:
    catalog, attributes = data
    again = sample(catalog, "fewstab", attributes=attributes, **SHAPE, seed=4)
    results = [*given.results, evaluate(again, given.features[0], ["ncc", "knn"])]
    comparison = compare(
        Inputs(results, [*given.tasks, again], [catalog], given.features, [attributes]), intervals="sampler"
    )
    assert comparison.blocks[0].group("placebo of fewstab").seeds == [0, 4]
    (loss,) = comparison.blocks[0].losses
    assert loss.excess is not None
    assert loss.excess.tasks == given.results[0].record.tasks.tasks


@pytest.mark.parametrize("lacking", ["tasks", "catalogs", "features"])
def test_what_is_not_there_leaves_it_out(given: Inputs, lacking: str) -> None:
    parts: dict[str, Any] = {name: getattr(given, name) for name in ("results", "tasks", "catalogs", "features")}
    comparison = compare(Inputs(**{**parts, lacking: []}), intervals="sampler")
    assert comparison.blocks[0].placebos == {}
    assert comparison.interval_names == ("sampler",)


class First:
    """An estimator of one's own, without a spelling to make it from: always the first label."""

    def fit(self, rows: Any, labels: Any) -> None:
        self.first = min(labels)

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), self.first)


def test_a_method_that_cannot_be_made_anew_leaves_it_out(given: Inputs) -> None:
    results = [evaluate(tasks, given.features[0], [First()]) for tasks in given.tasks]
    comparison = compare(Inputs(results, given.tasks, given.catalogs, given.features, given.attributes))
    assert comparison.blocks[0].placebos == {}
    assert comparison.interval_names == ("sampler",)
    known = Inputs(results, given.tasks, given.catalogs, given.features, given.attributes, methods=[First()])
    assert compare(known, intervals="sampler").blocks[0].placebos == {"fewstab": "placebo of fewstab"}


def test_results_that_do_not_say_their_features_leave_it_out(given: Inputs) -> None:
    bare = [
        Results(
            result.table, ResultsRecord(sources={"tasks": result.record.sources["tasks"]}, tasks=result.record.tasks)
        )
        for result in given.results
    ]
    comparison = compare(Inputs(bare, given.tasks, given.catalogs), intervals="sampler")
    assert comparison.blocks[0].placebos == {}


def test_data_too_small_for_a_placebo_is_a_note() -> None:
    """One item of a class is of one source and all others of another: a permutation puts support and query in one."""
    everything = mixtures(classes=4, recordings=2, contexts=4)
    kept = ["/r01/" in item or item.endswith("none") for item in everything.items]
    catalog = Catalog(everything.table.filter(kept))
    features = features_of(catalog)
    own = ("red", "blue", "tall", "wide")
    words = {item: [own[int(item[1])]] if "/r00/" in item else ["flat"] for item in catalog.items}
    attributes = Attributes.from_words(words)
    shape: dict[str, Any] = {"way": 2, "shot": 1, "query": 4, "tasks": 10}
    sets = [sample(catalog, "random", **shape), sample(catalog, "fewstab", attributes=attributes, **shape)]
    results = [evaluate(tasks, features, ["ncc"]) for tasks in sets]
    comparison = compare(Inputs(results, sets, [catalog], [features], [attributes]), intervals="sampler")
    assert comparison.blocks[0].placebos == {}
    (note,) = comparison.notes
    assert "fewstab tasks have no placebo" in note
    assert "has too few sources" in note


def test_two_contexts_make_ood_and_hard_ood_one() -> None:
    catalog = catalog_of_counts(np.full((4, 2), 30))
    features = features_of(catalog)
    sets = sample_context(catalog, way=2, shot=2, query=4, tasks=40)
    assert sets["ood"].digest == sets["hard-ood"].digest
    results = [evaluate(tasks, features, ["ncc"]) for tasks in sets.values()]
    comparison = compare(Inputs(results, list(sets.values()), [catalog], [features]), intervals="sampler")
    assert all(loss.excess for loss in comparison.blocks[0].losses)
    assert comparison.notes == ["ood and hard-ood are the same tasks here"]
    assert len(headline(comparison)) == 2


def test_context_placebos_are_matched_with_their_sets() -> None:
    catalog = mixtures()
    sets = sample_context(catalog, "context(clean_value='none')", **{**SHAPE, "tasks": 30})
    results = [evaluate(tasks, features_of(catalog), ["ncc"]) for tasks in sets.values()]
    comparison = compare(Inputs(results, list(sets.values()), [catalog], [features_of(catalog)]), intervals="sampler")
    (block,) = comparison.blocks
    assert block.placebos == {name: f"placebo of {name}" for name in sets}
    for loss in block.losses:
        assert loss.reference == "iid"
        assert loss.excess is not None
        assert loss.excess.paired


def test_random_tasks_alone_have_none() -> None:
    catalog, _ = draw_data()
    features = features_of(catalog)
    tasks = sample(catalog, "random", **SHAPE)
    inputs = Inputs([evaluate(tasks, features, ["ncc"])], [tasks], [catalog], [features])
    assert with_placebos(inputs).inputs == inputs
