"""From a comparison to a card: contexts, ranks as far as pairs tell, and what costs most."""

from __future__ import annotations

import pytest

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.make_card import make_card
from shotproof.analysis.placebo_sets import with_placebos
from shotproof.comparison.card import Card, CardRemedy, MissingAxis
from shotproof.core.errors import InputError
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.features.map_transforms import Fitted
from shotproof.features.nuisance_transforms import Wccn
from shotproof.features.transforms import transform
from shotproof.results.evaluated import Classifier
from shotproof.tasks.sampler import sample
from shotproof.worlds.context_world import ContextWorld
from shotproof.worlds.shapes import ShapesWorld
from tests.context_data import sample_context
from tests.drawn_results import draw_results, draw_tasks

METHODS = ["cosine", "ncc", "knn"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """Small pictures of concepts in contexts, whose pixels tell the context rather than the concept."""
    world = ContextWorld(concepts=4, contexts=4, figures=12, size=16)
    catalog = world.write(tmp_path_factory.mktemp("contexts"))
    features = encode(catalog, "pixels(size=4)")
    sets = list(sample_context(catalog, way=3, shot=2, query=4, tasks=40).values())
    results = [evaluate(tasks, features, METHODS) for tasks in sets]
    return with_placebos(Inputs(results=results, tasks=sets, catalogs=[catalog], features=[features])).inputs


@pytest.fixture(scope="module")
def card(inputs: Inputs) -> Card:
    comparison = compare(inputs, intervals=["sampler"])
    own = next(classifier for classifier in comparison.blocks[0].classifiers if classifier.method == "cosine")
    return make_card(comparison, inputs, own, missing=[MissingAxis("semantic", "no hierarchy")])


def test_contexts_are_measured_against_iid_tasks_and_their_placebo(card: Card) -> None:
    axis = {axis.name: axis for axis in card.axes}["hard-ood"]
    assert axis.reference is not None
    assert axis.placebo is not None
    assert (axis.reference.sampler, axis.axis) == ("iid", "contexts")
    assert axis.conclusion == "+"
    assert axis.verdict.startswith("It relies on the context")
    lost = axis.estimates["reference_accuracy"]["acc"].mean - axis.estimates["accuracy"]["acc"].mean
    assert axis.estimates["gap"]["acc"].mean == pytest.approx(lost)
    assert axis.estimates["excess"]["acc"].mean == pytest.approx(lost - axis.estimates["placebo"]["acc"].mean)


def test_the_contexts_that_cost_most_come_with_an_example_of_missed_queries(card: Card, inputs: Inputs) -> None:
    axis = {axis.name: axis for axis in card.axes}["hard-ood"]
    contexts = set(inputs.catalogs[0].table.column("context").to_pylist())
    assert 1 <= len(axis.costs) <= 3
    for cost in axis.costs:
        assert cost.attribute in contexts
        assert cost.cost.low > 0  # conclusive, or it would not be here
        assert cost.examples[0].label == cost.worst_label
        assert cost.attribute in cost.advice
        assert all(item.split("/")[1] == cost.attribute for item in cost.examples[0].support)


def test_ranks_are_behind_what_is_conclusively_better_and_before_what_is_worse(card: Card, inputs: Inputs) -> None:
    comparison = compare(inputs, intervals=["sampler"])
    for axis in card.axes:
        group = next(group for group in comparison.groups if group.label == axis.name)
        own = next(row.classifier for row in group.rows if row.classifier.method == "cosine")
        signs = [
            one.conclusion for pair in group.pairs["acc", "sampler"] for one in (pair, pair.turned()) if one.a == own
        ]
        rank = axis.rank["accuracy"]
        assert (rank.best, rank.worst, rank.of) == (1 + signs.count("-"), 3 - signs.count("+"), 3)


def test_who_has_no_skill_to_lose_has_no_rank_by_it() -> None:
    results = [
        draw_results(draw_tasks(sampler, tasks=100), {"guessing": 1 / 3, "a": share, "b": share}, seed=seed)
        for seed, (sampler, share) in enumerate((("random", 0.8), ("fewstab", 0.6)))
    ]
    comparison = compare(results)
    for method, ranked in (("guessing", ["accuracy"]), ("a", ["accuracy", "skill_lost"])):
        made = make_card(comparison, Inputs(results), Classifier("pixels", method))
        (stressed,) = made.stresses
        assert list(stressed.rank) == ranked
        assert stressed.rank["accuracy"].of == 3
        assert all(rank.of == 2 for by, rank in stressed.rank.items() if by == "skill_lost")


def test_a_classifier_that_was_not_evaluated_is_refused(inputs: Inputs) -> None:
    with pytest.raises(InputError, match="no results of svm on lite0: expected one of cosine on "):
        make_card(compare(inputs, intervals=["sampler"]), inputs, Classifier("lite0", "svm"))


def test_a_card_states_the_fitted_transforms_of_its_features() -> None:
    world = ShapesWorld(classes=10, train_classes=5, items=24)
    catalog = world.catalog()
    unit = transform(encode(catalog, "dial(share=0.5)"), "l2")
    wccn = Wccn(base=unit, catalog=catalog, split="train", ridge=2.0)
    tasks = sample(catalog, "random", way=3, shot=2, query=3, tasks=10, split="test")
    remedies = {}
    for features in (unit, transform(unit, Fitted(file=wccn.map))):
        inputs = Inputs([evaluate(tasks, features, "ncc")], [tasks])
        made = make_card(compare(inputs, intervals=["sampler"]), inputs, Classifier(features.name, "ncc"))
        assert Card.from_json(made.to_json()) == made
        remedies[features.name] = [str(remedy) for remedy in made.remedies]
    assert remedies == {
        "dial > l2": [],
        f"dial > l2 > fitted(file='wccn@{wccn.map.digest[:8]}')": ["wccn(ridge=2), fitted on 5 classes"],
    }


def test_a_card_states_on_which_axes_supports_were_chosen() -> None:
    random = draw_tasks("random")
    chosen = draw_tasks("chosen(choose='spread')", like=random)
    sets = [random, chosen, draw_tasks("changed(change='blur')", like=chosen), draw_tasks("fewstab")]
    results = [draw_results(tasks, {"ncc": 0.7}) for tasks in sets]
    (remedy,) = make_card(compare(results), Inputs(results), Classifier("pixels", "ncc")).remedies
    assert remedy == CardRemedy("supports", "chosen(choose='spread')", axes=("blur",))
