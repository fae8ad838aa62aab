"""Explanations of hard tasks: planted attributes come out on top, and the numbers are SciPy's."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from shotproof.analysis.explanation.explain import explain, explain_hardest, mismatch_examples, set_names
from shotproof.analysis.explanation.mismatch import blocks, sides_of
from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.records import Source
from shotproof.evaluation.evaluate import evaluate
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.painter import BACKGROUNDS
from tests.hard_tasks import WORLD, leaning_features, random_tasks, with_other_supports

ATTRIBUTES = WORLD.attributes()


def mismatch_by_task(tasks: TaskSet) -> tuple[list[str], np.ndarray]:
    (sides,), held = sides_of([tasks], ATTRIBUTES)
    (block,) = blocks(sides, held)
    return held.words, block.mismatch.toarray()


def test_planted_attributes_come_out_on_top() -> None:
    random = random_tasks(60)
    leaning = leaning_features(0.5, ["background"])
    hard, easy = (
        sample(WORLD.catalog(), f"hardest(mode='{mode}')", features=leaning, like=random) for mode in ("hard", "easy")
    )
    explanation = explain(hard, ATTRIBUTES, against=[easy, random], features=leaning)
    planted = {f"{color} background" for color in BACKGROUNDS}
    assert {attribute.attribute for attribute in explanation.attributes[: len(planted)]} == planted
    for one in explanation.attributes[: len(planted)]:
        assert explanation.excess(one).low > 0
        assert one.sets[0].beyond_chance.low > 0
    own, *others = explanation.sets
    assert [task_set.name for task_set in explanation.sets] == [
        "hardest(mode='hard')",
        "hardest(mode='easy')",
        "random",
    ]
    assert explanation.reference_name == "random"
    assert all(one.paired and one.difference is not None and one.difference.low > 0 for one in others)
    assert own.hardness[0].accuracy.mean() < others[1].hardness[0].accuracy.mean()


def test_pooled_the_mismatch_is_lower_and_said_to_be_so() -> None:
    random = random_tasks(30)
    by_class, pooled = (explain(random, ATTRIBUTES, mismatch=kind) for kind in ("class", "pooled"))
    assert (by_class.to_json()["of"], pooled.to_json()["of"]) == ("class", "pooled")
    assert pooled.sets[0].overall.mean < by_class.sets[0].overall.mean
    assert pooled.sets[0].chance == pytest.approx(pooled.sets[0].overall.mean, rel=0.15)
    with pytest.raises(InputError, match="mismatch: expected class or pooled, found 'pool': did you mean 'pooled'"):
        explain(random, ATTRIBUTES, mismatch="pool")  # type: ignore[arg-type]


def test_an_encoder_that_sees_no_context_finds_none() -> None:
    random = random_tasks(60)
    blind = sample(WORLD.catalog(), "hardest", features=leaning_features(0.0), like=random)
    explanation = explain(blind, ATTRIBUTES, against=[random])
    significant = [attribute for attribute in explanation.attributes if explanation.excess(attribute).low > 0]
    opposite = [attribute for attribute in explanation.attributes if explanation.excess(attribute).high < 0]
    # The hardest items of a class are chosen again and again, so that more than one in forty stand out, either way.
    assert len(significant) <= 0.2 * len(explanation.attributes)
    assert abs(len(significant) - len(opposite)) <= 3


def test_differences_are_scipys_paired_where_queries_are_shared_and_welchs_where_not() -> None:
    random = random_tasks(30)
    other = with_other_supports(random, "moved")
    apart = sample(WORLD.catalog(), "random", shot=5, query=8, tasks=25, seed=7)
    explanation = explain(other, ATTRIBUTES, against=[random, apart], level=0.9)
    assert [task_set.paired for task_set in explanation.sets] == [True, True, False]
    words, own = mismatch_by_task(other)
    values = [mismatch_by_task(given)[1] for given in (random, apart)]
    paired, welch = ([stats.ttest_rel, stats.ttest_ind][kind] for kind in (0, 1))
    for one in explanation.attributes:
        column = words.index(one.attribute)
        tests = (
            paired(own[:, column], values[0][:, column]),
            welch(own[:, column], values[1][:, column], equal_var=False),
        )
        for difference, test in zip(one.differences, tests, strict=True):
            bounds = test.confidence_interval(0.9)
            assert (difference.low, difference.high) == pytest.approx((bounds.low, bounds.high))
            assert (difference.covers, difference.level) == ("sampler", 0.9)
        low, high = stats.t.interval(0.9, 29, own[:, column].mean(), stats.sem(own[:, column]))
        assert (one.sets[0].mismatch.low, one.sets[0].mismatch.high) == pytest.approx((low, high))
    excess = [explanation.excess(attribute).mean for attribute in explanation.attributes]
    assert excess == sorted(excess, reverse=True)
    assert explanation.sets[0].overall.mean == pytest.approx(own[:, -1].mean())


def test_without_another_set_attributes_are_held_against_chance() -> None:
    explanation = explain(random_tasks(30), ATTRIBUTES)
    assert (explanation.reference, explanation.reference_name) == (None, "chance")
    for attribute in explanation.attributes:
        assert attribute.differences == []
        assert explanation.excess(attribute).mean == pytest.approx(
            attribute.sets[0].mismatch.mean - attribute.sets[0].chance
        )
    content = json.loads(json.dumps(explanation.to_json()))
    first = content["attributes"][0]["sets"]["random"]
    assert first["mismatch"] == explanation.attributes[0].sets[0].mismatch.mean
    assert len(first["mismatch_interval"]) == 2


def test_one_task_has_no_intervals_and_the_json_says_null() -> None:
    content = explain(random_tasks(1), ATTRIBUTES).to_json()
    assert content["sets"][0]["mismatch_interval"] is None
    assert "NaN" not in json.dumps(content)


def test_sets_are_named_by_what_tells_them_apart() -> None:
    random = random_tasks(3)
    twice = with_other_supports(random, "moved")
    assert set_names([twice, random, twice]) == ["moved 1", "random", "moved 2"]
    assert set_names([TaskSet(random.table)]) == ["unknown"]


def test_bad_input_is_told() -> None:
    random = random_tasks(3)
    with pytest.raises(Mismatch, match="the attributes lack"):
        explain(random, Attributes.from_words({"other": ["word"]}))
    nothing = Attributes.from_words({item: [] for item in WORLD.catalog().table.column("item").to_pylist()})
    with pytest.raises(InputError, match="no words for the items"):
        explain(random, nothing)
    fewer = TaskSet(random.first(2).table, replace(random.record, match=random.digest))
    with pytest.raises(Mismatch, match=r"3 and 2 tasks .*cannot be paired"):
        explain(random, ATTRIBUTES, against=[fewer])
    with pytest.raises(InputError, match=r"did you mean 0\.95"):
        explain(random, ATTRIBUTES, level=95)


def test_an_example_is_the_class_in_which_its_attribute_differs_most() -> None:
    random = random_tasks(20)
    tasks = with_other_supports(random, "one")
    words = WORLD.attributes().to_words()
    explanation = explain(tasks, WORLD.attributes(), against=[random])
    examples = mismatch_examples(explanation, WORLD.attributes())
    leading = [one.attribute for one in explanation.attributes[:4] if explanation.excess(one).mean > 0]
    assert [example.attribute for example in examples] == leading
    assert len({(example.task, example.label) for example in examples}) == len(examples)
    rows = tasks.table.to_pylist()

    def holding(items: list[str], attribute: str) -> list[bool]:
        return [attribute in (words[item] or ()) for item in items]

    for number, example in enumerate(examples):
        (row,) = [row for row in rows if (row["task"], row["label"]) == (example.task, example.label)]
        assert example.support == list(zip(row["support"], holding(row["support"], example.attribute), strict=True))
        taken = {(example.task, example.label) for example in examples[:number]}
        free = [row for row in rows if (row["task"], row["label"]) not in taken]
        distances = [
            abs(np.mean(holding(one["support"], example.attribute)) - np.mean(holding(one["query"], example.attribute)))
            for one in free
        ]
        own = [np.mean([holds for _, holds in side]) for side in (example.support, example.query)]
        assert abs(own[0] - own[1]) == max(distances)


def test_the_hardest_of_matched_sets_is_held_against_the_others() -> None:
    random = random_tasks(20)
    sets = [random, *(with_other_supports(random, name, seed) for seed, name in enumerate(("one", "two"), start=1))]
    features = leaning_features(0.5)
    results = [evaluate(task_set, features, ["ncc"]) for task_set in sets]
    accuracy = {result.record.tasks.sampler_name: result.counts("ncc").accuracy_by_task() for result in results}
    words = WORLD.attributes()
    ((explanation, used),) = explain_hardest(Inputs(results, sets, features=[features], attributes=[words]))
    hardest = min(("one", "two"), key=lambda name: accuracy[name].mean())
    assert used is words
    assert [task_set.name for task_set in explanation.sets][:2] == [hardest, "random"]
    assert len(explanation.sets) == 3
    assert [one.method for one in explanation.sets[0].hardness] == ["ncc"]


def test_random_tasks_alone_and_no_attributes_give_none() -> None:
    random = random_tasks(5)
    assert explain_hardest(Inputs(tasks=[random], attributes=[WORLD.attributes()])) == []
    hard = with_other_supports(random, "one")
    assert explain_hardest(Inputs(tasks=[random, hard])) == []


def test_changed_tasks_are_left_out_since_attributes_describe_items_as_they_were() -> None:
    random = random_tasks(5)
    changed = sample(WORLD.catalog(), "changed(change='blur')", like=random)
    assert explain_hardest(Inputs(tasks=[random, changed], attributes=[WORLD.attributes()])) == []
    hard = with_other_supports(random, "one")
    ((explanation, _),) = explain_hardest(Inputs(tasks=[random, changed, hard], attributes=[WORLD.attributes()]))
    assert [task_set.name for task_set in explanation.sets] == ["one", "random"]


def test_the_lowest_seed_stands_for_replicates() -> None:
    words, catalog = WORLD.attributes(), WORLD.catalog()
    sets = [sample(catalog, "fewstab", attributes=words, shot=1, query=5, tasks=10, seed=seed) for seed in (2, 1)]
    ((explanation, _),) = explain_hardest(Inputs(tasks=sets, attributes=[words]))
    assert explanation.sets[0].tasks is sets[1]


def test_each_set_is_explained_by_the_attributes_that_it_was_drawn_with() -> None:
    catalog, known = WORLD.catalog(), WORLD.attributes()
    some = Attributes.from_words({item: sorted(words or ())[::2] for item, words in known.to_words().items()})
    sets = [sample(catalog, "fewstab", attributes=words, shot=1, query=5, tasks=10) for words in (known, some)]
    explained = explain_hardest(Inputs(tasks=sets, attributes=[some, known]))
    assert [words is given for (_, words), given in zip(explained, (known, some), strict=True)] == [True, True]


def test_attributes_of_another_data_set_explain_nothing() -> None:
    hard = with_other_supports(random_tasks(5), "one")
    others = Attributes.from_words({"somebody else's": ["red"]})
    of_other_data = Attributes(others.table, replace(others.record, sources={"catalog": Source("another catalog")}))
    for words in (others, of_other_data):
        assert explain_hardest(Inputs(tasks=[hard], attributes=[words])) == []
    bare = TaskSet(hard.table, replace(hard.record, sources={}))
    assert len(explain_hardest(Inputs(tasks=[bare], attributes=[of_other_data, WORLD.attributes()]))) == 1


def test_the_same_tasks_of_two_catalogs_are_explained_by_their_own_features() -> None:
    hard = with_other_supports(random_tasks(10), "one")
    sets = [TaskSet(hard.table, replace(hard.record, sources={"catalog": Source(name)})) for name in ("quiet", "loud")]
    features = [leaning_features(share) for share in (0.1, 0.9)]
    results = [evaluate(tasks, used, "ncc") for tasks, used in zip(sets, features, strict=True)]
    explained = explain_hardest(Inputs(results, sets, features=features, attributes=[WORLD.attributes()]))
    for (explanation, _), result in zip(explained, results, strict=True):
        (own,) = explanation.sets[0].hardness
        assert own.accuracy.tolist() == result.counts("ncc").accuracy_by_task().tolist()
