"""Supports that are chosen anew: pools, rules, records, and comparisons of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData, Mismatch
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.results.origin import Origin, labels_of
from shotproof.tasks import support_choices
from shotproof.tasks.chosen import BoundEasy, Chosen
from shotproof.tasks.sampler import sample
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet, TaskShape
from tests.conftest import draw_data
from tests.hash_seeds import run_with_another_hash_seed

DESIGN: dict[str, Any] = {"way": 3, "shot": 3, "query": 5}
CHOICES = ("random", "spread", "typical", "easy")
Data = tuple[Catalog, Attributes]


def features_of(catalog: Catalog) -> Features:
    """Each class around a mean of its own."""
    rng = np.random.default_rng(7)
    items = sorted(catalog.items)
    means = {label: rng.normal(size=6) for label in sorted({item.split("/")[0] for item in items})}
    return Features.from_array(items, np.stack([means[item.split("/")[0]] + rng.normal(size=6) for item in items]))


def choose(data: Data, like: TaskSet, choice: str, *, words: bool = False, **options: Any) -> TaskSet:
    """The tasks of another set with chosen supports."""
    catalog, attributes = data
    arguments = {name: options.pop(name) for name in ("seed", "tasks", "runtime") if name in options}
    if choice in ("typical", "easy"):
        arguments["features"] = features_of(catalog)
    if words:
        arguments["attributes"] = attributes
    return sample(catalog, Chosen(choose=choice, **options), like=like, **arguments)  # type: ignore[arg-type]


def sets_of(tasks: TaskSet, side: str) -> list[list[str]]:
    lists: list[list[str]] = tasks.table.column(side).to_pylist()
    return lists


@given(
    seed=st.integers(0, 10**6),
    choice=st.sampled_from(CHOICES),
    words=st.booleans(),
    per_source=st.sampled_from([None, 2, 3]),
    base=st.sampled_from(["random", "meta-dataset", "fewstab"]),
)
def test_only_supports_differ_and_none_is_a_query(
    seed: int, choice: str, words: bool, per_source: int | None, base: str
) -> None:
    data = draw_data(items=36, source_of=per_source)
    attributes = {"attributes": data[1]} if base == "fewstab" else {}
    like = sample(data[0], base, **DESIGN, tasks=8, seed=seed, **attributes)
    tasks = choose(data, like, choice, words=words and choice == "spread", seed=seed)
    assert check_tasks(tasks, data[0]) == []
    shared = ["task", "slot", "label", "query"]
    assert tasks.table.select(shared).equals(like.table.select(shared))
    assert [len(items) for items in sets_of(tasks, "support")] == [len(items) for items in sets_of(like, "support")]
    table = data[0].table.to_pydict()
    source = dict(zip(table["item"], table.get("source", table["item"]), strict=True))
    for start, stop in zip(tasks.starts[:-1], tasks.starts[1:], strict=True):
        queries = {source[item] for items in sets_of(tasks, "query")[start:stop] for item in items}
        supports = [item for items in sets_of(tasks, "support")[start:stop] for item in items]
        assert len(set(supports)) == len(supports)
        assert not queries & {source[item] for item in supports}


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("choice", CHOICES)
def test_tasks_depend_on_their_number_alone(choice: str, words: bool, tmp_path: Path) -> None:
    data = draw_data()
    words = words and choice == "spread"
    like = sample(data[0], "random", **DESIGN, tasks=300)
    tasks = choose(data, like, choice, words=words, runtime=Runtime(workers=1))
    assert choose(data, like, choice, words=words, runtime=Runtime(workers=2)).digest == tasks.digest
    assert choose(data, like, choice, words=words, tasks=7).digest == tasks.first(7).digest
    other = choose(data, like, choice, words=words, seed=1)
    assert (other.digest == tasks.digest) == (choice == "typical")  # which draws nothing
    order = np.random.default_rng(1).permutation(len(data[0]))
    shuffled = Catalog(data[0].table.take(pa.array(order))), Attributes(data[1].table.take(pa.array(order[::-1])))
    assert choose(shuffled, like, choice, words=words).digest == tasks.digest
    tasks.write(tmp_path / "tasks.parquet")
    assert TaskSet.read(tmp_path / "tasks.parquet").record.summary == tasks.record.summary
    assert tasks.record.match == other.record.match == like.digest


DIGESTS = """
from tests.tasks.test_chosen import CHOICES, DESIGN, choose, draw_data, sample
data = draw_data()
like = sample(data[0], "random", **DESIGN, tasks=20)
print(*(choose(data, like, choice, words=choice == "spread").digest for choice in CHOICES))
"""


def test_another_process_with_another_hash_seed_chooses_the_same() -> None:
    data = draw_data()
    like = sample(data[0], "random", **DESIGN, tasks=20)
    digests = [choose(data, like, choice, words=choice == "spread").digest for choice in CHOICES]
    assert run_with_another_hash_seed(DIGESTS).split() == digests


@pytest.mark.parametrize("cues", [0, 1, 2, 3])
def test_spread_covers_the_contexts(cues: int) -> None:
    data = draw_data(items=60)
    like = sample(data[0], "random", **DESIGN, tasks=50)
    tasks = choose(data, like, "spread", cues=cues)
    contexts = dict(zip(data[0].items, data[0].table.column("context").to_pylist(), strict=True))
    covered = [len({contexts[item] for item in items}) for items in sets_of(tasks, "support")]
    assert set(covered) == {cues or 3}  # every class has five contexts, and a support three items
    assert tasks.table.column("cues").to_pylist() == covered
    assert tasks.record.summary["cues_covered"] == np.mean(covered)


def test_what_is_covered_is_recorded_and_follows_the_other_set() -> None:
    catalog, attributes = draw_data(items=60)
    both = catalog, attributes
    random = sample(catalog, "random", **DESIGN, tasks=4)
    in_contexts = sample(catalog, "iid(clean_value='none')", way=3, shot=3, query=3, tasks=4)
    assert choose(both, random, "spread").record.context_column == "context"
    by_words = choose(both, random, "spread", words=True)
    assert by_words.record.context_column is None
    assert "attributes" in by_words.record.sources
    assert choose(both, in_contexts, "spread", words=True).record.context_column == "context"
    assert choose(both, random, "spread", context_column="context").record.context_column == "context"
    assert choose(both, random, "random").record.context_column is None
    assert by_words.digest != choose(both, random, "spread").digest


def test_words_are_more_even_than_at_random() -> None:
    data = draw_data(items=60)
    like = sample(data[0], "random", **DESIGN, tasks=50)
    words = {item: set(held or ()) for item, held in data[1].to_words().items()}
    vocabulary = sorted(set().union(*words.values()))

    def unevenness(tasks: TaskSet) -> float:
        return float(
            np.mean(
                [
                    (2 * sum(word in words[item] for item in items) - len(items)) ** 2
                    for items in sets_of(tasks, "support")
                    for word in vocabulary
                ]
            )
        )

    def mixed(items: list[str]) -> int:
        return sum(0 < sum(word in words[item] for item in items) < len(items) for word in vocabulary)

    spread = choose(data, like, "spread", words=True)
    assert unevenness(spread) < 0.8 * unevenness(choose(data, like, "random"))
    assert spread.table.column("cues").to_pylist() == [mixed(items) for items in sets_of(spread, "support")]


@pytest.mark.parametrize("normalize", [False, True])
def test_one_typical_item_is_the_nearest_to_the_mean(normalize: bool) -> None:
    data = draw_data()
    like = sample(data[0], "random", way=3, shot=1, query=5, tasks=20)
    tasks = choose(data, like, "typical", normalize=normalize)
    features = features_of(data[0])
    values = dict(zip(data[0].items, features.array.astype(np.float64), strict=True))
    if normalize:
        values = {item: value / np.linalg.norm(value) for item, value in values.items()}
    for row in tasks.table.to_pylist():
        pool = [item for item in sorted(values) if item.startswith(row["label"]) and item not in row["query"]]
        mean = np.mean([values[item] for item in pool], axis=0)
        assert row["support"] == [min(pool, key=lambda item: float(np.linalg.norm(values[item] - mean)))]
        assert row["pool_size"] == len(pool)


def test_easy_supports_have_a_lower_loss_than_the_mean_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    data = draw_data()
    like = sample(data[0], "random", **DESIGN, tasks=30)
    losses: list[float] = []
    original = support_choices.easiest

    def recorded(*arguments: Any) -> Any:
        best, of_candidates = original(*arguments)
        losses.append(float(of_candidates[best] - of_candidates.mean()))
        return best, of_candidates

    monkeypatch.setattr(support_choices, "easiest", recorded)
    easy = choose(data, like, "easy", candidates=8, runtime=Runtime(workers=1))
    assert len(losses) == 30
    assert max(losses) < 0
    assert choose(data, like, "easy", candidates=1).digest == choose(data, like, "random").digest
    features = features_of(data[0])
    accuracy = {
        name: evaluate(tasks, features, "ncc").counts("ncc").accuracy_by_task().mean()
        for name, tasks in {"easy": easy, "random": choose(data, like, "random")}.items()
    }
    assert accuracy["easy"] > accuracy["random"]


def test_random_supports_are_uniform() -> None:
    catalog, _ = draw_data(classes=3, items=10)
    columns = {"task": [0] * 2, "slot": [0, 1], "label": ["class00", "class01"], "attribute": pa.nulls(2, pa.string())}
    sides = {"support": [[f"class0{c}/item00{i}" for i in range(3)] for c in range(2)]}
    queries = {"query": [[f"class0{c}/item009"] for c in range(2)]}
    table = pa.table({**columns, **sides, **queries})
    like = TaskSet(pa.concat_tables([table.set_column(0, "task", pa.array([task] * 2)) for task in range(600)]))
    drawn = [
        item[-1]
        for items in sets_of(choose((catalog, Attributes.from_words({})), like, "random"), "support")
        for item in items
    ]
    counts = np.bincount([int(number) for number in drawn], minlength=10)
    assert counts[9] == 0
    np.testing.assert_allclose(counts[:9] / len(drawn), 1 / 9, atol=0.02)


def test_pools_without_a_choice_are_counted_and_too_small_ones_refused() -> None:
    catalog, words = draw_data(items=8)
    like = sample(catalog, "random", **DESIGN, tasks=6)
    tasks = choose((catalog, words), like, "random")
    assert tasks.record.summary["supports_without_choice"] == 18
    assert sorted(sets_of(tasks, "support")[0]) == sorted(sets_of(like, "support")[0])
    used = set(sets_of(like, "support")[0])
    smaller = catalog.filter([item not in used for item in catalog.items])
    label = like.table.column("label")[0].as_py()
    with pytest.raises(Mismatch, match=r"query item '.*', which this catalog and split do not have"):
        choose((smaller, words), like, "random")
    with pytest.raises(InsufficientData, match=rf"task 0: class '{label}' has 0 items .* but the support needs 3"):
        choose((smaller, words), like.first(1), "random")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"choose": "typcal"}, "choose: expected random or spread or typical or easy, found 'typcal'"),
        ({"cues": 2}, "cues limits the contexts of spread, and choose is random"),
        ({"candidates": 0}, "candidates: expected .* from 1 to 10,000, found 0"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Chosen(**options)


def test_what_a_choice_needs_is_asked_for() -> None:
    catalog, attributes = draw_data()
    like = sample(catalog, "random", **DESIGN, tasks=4)
    for choice in ("typical", "easy"):
        with pytest.raises(InputError, match="sampler 'chosen' needs features"):
            sample(catalog, f"chosen(choose='{choice}')", like=like)
    bare = Catalog(catalog.table.drop_columns(["context"]))
    with pytest.raises(InputError, match=r"needs attributes, or a column of the catalog with contexts"):
        choose((bare, attributes), like, "spread")
    with pytest.raises(
        InputError, match="cues limits the number of contexts, and the supports are spread over the wor"
    ):
        choose((bare, attributes), like, "spread", words=True, cues=2)
    with pytest.raises(InputError, match="no column 'place'"):
        choose((catalog, attributes), like, "spread", context_column="place")
    broken = features_of(catalog)
    values = broken.array.copy()
    values[0, 0] = np.nan
    with pytest.raises(InputError, match="features: item 'class00/item000' has a value that is not finite"):
        sample(catalog, "chosen(choose='typical')", like=like, features=Features.from_array(catalog.items, values))
    with pytest.warns(UserWarning, match="sampler 'chosen' does not use features"):
        sample(catalog, "chosen", like=like, features=broken)
    blurred = sample(catalog, "changed(change='noise', side='support')", like=like)
    with pytest.raises(InputError, match=r"support items of .* are changed: name the unchanged set"):
        sample(catalog, "chosen", like=blurred)


def test_changed_queries_stay_changed() -> None:
    data = draw_data()
    like = sample(data[0], "changed(change='noise')", like=sample(data[0], "random", **DESIGN, tasks=4))
    tasks = choose(data, like, "random")
    assert tasks.table.column("query_change").equals(like.table.column("query_change"))
    assert tasks.changes("support") is None
    assert check_tasks(tasks, data[0]) == []


def test_parts_of_a_block_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = draw_data()
    like = sample(data[0], "meta-dataset", tasks=12)
    undivided = {choice: choose(data, like, choice) for choice in CHOICES}
    monkeypatch.setattr("shotproof.tasks.chosen._NUMBERS_AT_A_TIME", 1)
    assert {choice: choose(data, like, choice).digest for choice in CHOICES} == {
        choice: tasks.digest for choice, tasks in undivided.items()
    }
    bound = Chosen(choose="easy").bind(data[0], TaskShape(), 0, like=like, features=features_of(data[0]))
    assert isinstance(bound, BoundEasy)
    assert TaskSet(bound.draw(range(3, 6))).table.column("support").to_pylist() == (
        undivided["easy"]
        .table.slice(int(like.starts[3]), int(like.starts[6] - like.starts[3]))
        .column("support")
        .to_pylist()
    )


def test_choices_are_compared_with_intervals_for_other_images() -> None:
    catalog, attributes = draw_data(items=40)
    features = features_of(catalog)
    like = sample(catalog, "random", **DESIGN, tasks=40)
    planted = sample(catalog, "fewstab", attributes=attributes, **DESIGN, tasks=40)
    words = {choice: choice == "spread" for choice in CHOICES}
    chosen = [choose((catalog, attributes), like, choice, words=words[choice]) for choice in CHOICES]
    chosen.append(choose((catalog, attributes), planted, "spread"))
    sets = [like, planted, *chosen]
    results = [evaluate(tasks, features, "ncc") for tasks in sets]
    inputs = Inputs(results, sets, [catalog], [features], [attributes], halvings=4, tasks_per_half=10)
    comparison = compare(inputs, intervals=["images", "sampler"], placebo=False)
    (block,) = comparison.blocks
    assert len({group.label for group in comparison.groups}) == len(sets)
    assert {group.sampler for group in comparison.groups} >= {"chosen"}
    assert block is not None
    for group in comparison.groups:
        for row in group.rows:
            interval = row.intervals["acc"]["images"]
            assert interval.refused is None, (group.label, interval.refused)


def test_choices_for_several_sets_are_named_after_them() -> None:
    data = draw_data(items=40)
    first, second = (sample(data[0], "random", **DESIGN, tasks=4, seed=seed) for seed in (0, 1))
    fewstab = sample(data[0], "fewstab", attributes=data[1], **DESIGN, tasks=4)
    sets = [first, fewstab, *(choose(data, like, "random") for like in (first, fewstab))]
    results = [evaluate(tasks, features_of(data[0]), "ncc") for tasks in sets]
    assert labels_of([Origin.of(each) for each in results]) == [
        "random",
        "fewstab",
        "chosen of random",
        "chosen of fewstab",
    ]
    replicates = [choose(data, like, "random", seed=seed) for seed, like in enumerate((first, second))]
    results = [evaluate(tasks, features_of(data[0]), "ncc") for tasks in (first, second, *replicates)]
    assert labels_of([Origin.of(each) for each in results])[2:] == ["chosen", "chosen"]
