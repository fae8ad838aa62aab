from __future__ import annotations

from dataclasses import replace

from shotproof.analysis.explanation.hardest import explain_hardest
from shotproof.analysis.reevaluation.material import Material
from shotproof.attributes.attributes import Attributes
from shotproof.core.records import Source
from shotproof.evaluation.evaluate import evaluate
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from tests.hard_tasks import WORLD, leaning_features, random_tasks, with_other_supports


def test_the_hardest_of_matched_sets_is_held_against_the_others() -> None:
    random = random_tasks(20)
    sets = [random, *(with_other_supports(random, name, seed) for seed, name in enumerate(("one", "two"), start=1))]
    features = leaning_features(0.5)
    results = [evaluate(given, features, ["ncc"]) for given in sets]
    accuracy = {given.record.tasks.sampler_name: given.counts("ncc").accuracy_by_task() for given in results}
    words = WORLD.attributes()
    ((explanation, used),) = explain_hardest(Material(results, sets, features=[features], attributes=[words]))
    hardest = min(("one", "two"), key=lambda name: accuracy[name].mean())
    assert used is words
    assert [one.name for one in explanation.sets][:2] == [hardest, "random"]
    assert len(explanation.sets) == 3
    assert [one.method for one in explanation.sets[0].hardness] == ["ncc"]


def test_random_tasks_alone_and_no_attributes_give_none() -> None:
    random = random_tasks(5)
    assert explain_hardest(Material(tasks=[random], attributes=[WORLD.attributes()])) == []
    hard = with_other_supports(random, "one")
    assert explain_hardest(Material(tasks=[random, hard])) == []


def test_the_lowest_seed_stands_for_replicates() -> None:
    words, catalog = WORLD.attributes(), WORLD.catalog()
    sets = [sample(catalog, "fewstab", attributes=words, shot=1, query=5, tasks=10, seed=seed) for seed in (2, 1)]
    ((explanation, _),) = explain_hardest(Material(tasks=sets, attributes=[words]))
    assert explanation.sets[0].tasks is sets[1]


def test_each_set_is_explained_by_the_attributes_that_it_was_drawn_with() -> None:
    catalog, known = WORLD.catalog(), WORLD.attributes()
    some = Attributes.from_words({item: sorted(words or ())[::2] for item, words in known.to_words().items()})
    sets = [sample(catalog, "fewstab", attributes=words, shot=1, query=5, tasks=10) for words in (known, some)]
    explained = explain_hardest(Material(tasks=sets, attributes=[some, known]))
    assert [words is given for (_, words), given in zip(explained, (known, some), strict=True)] == [True, True]


def test_attributes_of_another_data_set_explain_nothing() -> None:
    hard = with_other_supports(random_tasks(5), "one")
    others = Attributes.from_words({"somebody else's": ["red"]})
    of_other_data = Attributes(others.table, replace(others.record, sources={"catalog": Source("another catalog")}))
    for words in (others, of_other_data):
        assert explain_hardest(Material(tasks=[hard], attributes=[words])) == []
    bare = TaskSet(hard.table, replace(hard.record, sources={}))
    assert len(explain_hardest(Material(tasks=[bare], attributes=[of_other_data, WORLD.attributes()]))) == 1


def test_the_same_tasks_of_two_catalogs_are_explained_by_their_own_features() -> None:
    hard = with_other_supports(random_tasks(10), "one")
    sets = [TaskSet(hard.table, replace(hard.record, sources={"catalog": Source(name)})) for name in ("quiet", "loud")]
    features = [leaning_features(share) for share in (0.1, 0.9)]
    results = [evaluate(tasks, used, "ncc") for tasks, used in zip(sets, features, strict=True)]
    explained = explain_hardest(Material(results, sets, features=features, attributes=[WORLD.attributes()]))
    for (explanation, _), given in zip(explained, results, strict=True):
        (own,) = explanation.sets[0].hardness
        assert own.accuracy.tolist() == given.counts("ncc").accuracy_by_task().tolist()
