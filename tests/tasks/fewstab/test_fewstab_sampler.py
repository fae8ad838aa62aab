from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData, Mismatch
from shotproof.tasks.fewstab.fewstab_sampler import BoundFewStab, FewStab
from shotproof.tasks.fewstab.holders import Holders
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import SamplerInputs, sample
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskShape
from tests.conftest import Data, draw_data

SMALL: dict[str, Any] = {"way": 3, "shot": 2, "query": 4}


def data_of(words: dict[str, list[str] | None]) -> Data:
    """A catalog of items `class/number` with these words."""
    names = list(words)
    columns = {"item": names, "path": names, "label": [n.split("/")[0] for n in names], "split": ["all"] * len(names)}
    return Catalog(pa.table(columns)), Attributes.from_words(words)


@pytest.mark.parametrize("support", ["exclusive", "attribute", "random"])
@pytest.mark.parametrize("query_selection", ["lowest", "inter", "intra"])
@pytest.mark.parametrize("source_of", [None, 2])
@pytest.mark.parametrize("variant", ["paper", "published"])
def test_every_variant_keeps_its_constraints(
    support: str, query_selection: str, source_of: int | None, variant: str
) -> None:
    catalog, attributes = draw_data(seed=3, source_of=source_of)
    sampler = FewStab(support=support, query_selection=query_selection, variant=variant)
    tasks = sample(catalog, sampler, attributes=attributes, way=4, shot=3, query=6, tasks=60)
    assert check_tasks(tasks, catalog, attributes) == []
    assert tasks.record.options["support"] == support


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 8), st.integers(2, 70))
def test_any_data_gives_checked_tasks_or_a_clear_error(seed: int, shot: int, words: int, items: int) -> None:
    data = draw_data(seed, classes=5, items=items, words=words, held=min(4, words))
    design = {"way": 3, "shot": shot, "query": 4, "tasks": 10}
    try:
        tasks = sample(data[0], "fewstab(max_tries=500)", attributes=data[1], **design)
    except InsufficientData:
        with pytest.raises(InsufficientData, match="lower the"):
            sample(data[0], "fewstab(max_tries=500)", attributes=data[1], **design)
    else:
        assert check_tasks(tasks, *data) == []


def test_classes_and_words_are_uniform_over_all_valid_choices() -> None:
    """Redrawing until the constraints hold: uniform over the choices for which they hold, weighed by 1 / words."""
    words = {
        f"{label}/{i}": [w for w, holders in held.items() if i in holders]
        for label, held in {
            "a": {"red": range(4), "wet": range(2, 6)},
            "b": {"red": range(3), "dry": range(1, 5)},
            "c": {"wet": range(5), "dry": range(4, 8), "old": range(3)},
        }.items()
        for i in range(9)
    }
    catalog, attributes = data_of(words)
    tasks = sample(catalog, "fewstab", attributes=attributes, way=2, shot=2, query=3, tasks=6000).table
    items = {label: {i: set(words[f"{label}/{i}"]) for i in range(9)} for label in "abc"}
    eligible = {label: sorted(set().union(*items[label].values())) for label in "abc"}
    weights = {}
    for first, second in itertools.permutations("abc", 2):
        for own, other in itertools.product(eligible[first], eligible[second]):
            enough = all(
                sum(mine in held and theirs not in held for held in items[label].values()) >= 2
                for label, mine, theirs in ((first, own, other), (second, other, own))
            )
            if own != other and enough:
                weights[first, own, second, other] = 1 / len(eligible[first]) / len(eligible[second])
    rows = zip(tasks.column("label").to_pylist(), tasks.column("attribute").to_pylist(), strict=True)
    pairs = list(rows)
    counts = Counter((*pairs[i], *pairs[i + 1]) for i in range(0, len(pairs), 2))
    assert set(counts) == set(weights)
    expected = np.array([weights[choice] for choice in weights])
    observed = np.array([counts[choice] for choice in weights])
    assert stats.chisquare(observed, 6000 * expected / expected.sum()).pvalue > 1e-4


def test_ties_are_broken_at_random_not_by_file_order() -> None:
    # Eight candidates with equal scores for two places, in each of two classes.
    words = {
        f"{label}/{i}": [word] if i < 3 else [other]
        for label, word, other in (("a", "x", "y"), ("b", "y", "x"))
        for i in range(11)
    }
    catalog, attributes = data_of(words)
    tasks = sample(catalog, "fewstab", attributes=attributes, way=2, shot=3, query=2, tasks=3000)
    assert check_tasks(tasks, catalog, attributes) == []
    queries = tasks.table.column("query").combine_chunks().flatten().to_pylist()
    planted_few = [q for q in queries if int(q.split("/")[1]) >= 3]
    counts = np.array(list(Counter(planted_few).values()))
    assert len(counts) == 16
    assert stats.chisquare(counts).pvalue > 1e-4


def test_fallback_to_intra_class_is_used_and_recorded() -> None:
    # No item of a class holds another class's word, so there is no inter-class candidate at all.
    words = {f"{label}/{i}": [f"{label}-word"] if i < 4 else [] for label in "abcd" for i in range(12)}
    catalog, attributes = data_of(words)
    tasks = sample(catalog, "fewstab", attributes=attributes, **SMALL, tasks=20)
    assert set(tasks.table.column("fallback").to_pylist()) == {True}
    assert tasks.record.summary["fallback_share"] == 1.0
    assert check_tasks(tasks, catalog, attributes) == []


def test_how_tries_are_grouped_changes_nothing(data: Data) -> None:
    catalog, attributes = data
    sampler = FewStab().bind(catalog, TaskShape(5, 4, 8), 0, attributes=attributes)
    together = sampler.draw(range(40))
    alone = pa.concat_tables([sampler.draw(range(t, t + 1)) for t in range(40)])
    assert together.equals(alone.combine_chunks())
    assert max(together.column("tries").to_pylist()) > 4  # some tasks took more than one round


def test_bit_sets_are_forgotten_and_made_again_without_a_trace(data: Data) -> None:
    catalog, attributes = data
    inputs = SamplerInputs(catalog, TaskShape(4, 3, 6), 0, attributes)
    bound, forgetful = BoundFewStab(FewStab(), inputs), BoundFewStab(FewStab(), inputs)
    forgetful.holders.budget = 1
    assert forgetful.draw(range(30)).equals(bound.draw(range(30)))
    unpruned = BoundFewStab(FewStab(), inputs)
    assert bound.compatible_words is not None
    unpruned.compatible_words = None  # as for large vocabularies
    assert unpruned.draw(range(30)).equals(bound.draw(range(30)))


def test_holders_are_those_of_the_attributes(data: Data) -> None:
    catalog, attributes = data
    pool, held = ItemPool.of(catalog), attributes.of(catalog)
    holders = Holders(pool, held)
    words = attributes.to_words()
    for chosen, label in enumerate(pool.classes):
        items = pool.items.to_pylist()[pool.offsets[chosen] : pool.offsets[chosen + 1]]
        expected = {word: {i for i, item in enumerate(items) if word in (words[item] or [])} for word in held.words}
        low, high = holders.first_pair[chosen : chosen + 2]
        dense = holders.incidence(chosen).toarray()
        found = {held.words[holders.pair_word[p]]: set(np.flatnonzero(dense[p - low])) for p in range(low, high)}
        assert found == {word: held_by for word, held_by in expected.items() if held_by}, label


def test_items_of_which_nothing_is_known_take_no_part(data: Data) -> None:
    catalog, attributes = data
    words = attributes.to_words()
    unknown = {item for item in words if item.endswith("7")}
    known = Attributes.from_words({item: None if item in unknown else held for item, held in words.items()})
    tasks = sample(catalog, "fewstab", attributes=known, **SMALL, tasks=50)
    used = set(tasks.table.column("support").combine_chunks().flatten().to_pylist())
    used |= set(tasks.table.column("query").combine_chunks().flatten().to_pylist())
    assert not used & unknown
    assert tasks.record.summary["items_without_attributes"] == len(unknown)
    assert check_tasks(tasks, catalog, known) == []


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (
            "fewstab(support='exclusiv')",
            "support: expected exclusive or attribute or random, found 'exclusiv': did you",
        ),
        ("fewstab(query_selection='low')", "query_selection: expected lowest or inter or intra, found 'low'"),
        ("fewstab(variant='publishd')", "variant: expected paper or published, found 'publishd': did you mean"),
        ("fewstab(max_tries=0)", "max_tries: expected a whole number from 1 to 10,000,000, found 0"),
        ("fewstab", "sampler 'fewstab' needs attributes"),
    ],
)
def test_bad_options(data: Data, sampler: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample(data[0], sampler, **SMALL)


def test_attributes_of_other_items(data: Data) -> None:
    strange = Attributes.from_words({"elsewhere/1": ["wet"]})
    with pytest.raises(Mismatch, match=r"lack 320 of the 320 items, e\.g\. 'class00/item000'"):
        sample(data[0], "fewstab", attributes=strange)


def test_empty_attributes(data: Data) -> None:
    empty = Attributes.from_words({item: [] for item in data[0].items})
    with pytest.raises(InputError, match="attribute table is empty"):
        sample(data[0], "fewstab", attributes=empty)


def test_insufficient_data_names_class_counts_constraint_and_remedy() -> None:
    # Every item that holds one word holds the others too: no support excludes them.
    words = {f"{label}/{i}": ["red", "wet", "old"] if i < 10 else [] for label in "abc" for i in range(20)}
    catalog, attributes = data_of(words)
    with pytest.raises(InsufficientData) as caught:
        sample(catalog, "fewstab(max_tries=2000)", attributes=attributes, **SMALL)
    message = str(caught.value)
    assert "task 0 failed 2000 tries" in message
    assert "none of the other 2 in 100%" in message
    assert "'old' 10, 'red' 10, 'wet' 10" in message
    assert "support='attribute'" in message


def test_too_few_classes_with_an_eligible_word() -> None:
    words = {
        f"{label}/{i}": [f"{label}-word"] if i < (3 if label in "ab" else 1) else []
        for label in "abc"
        for i in range(20)
    }
    catalog, attributes = data_of(words)
    with pytest.raises(InsufficientData, match=r"has 2 of 3; e\.g\. class 'c' \(20 items, 1 words, .* by 1\)"):
        sample(catalog, "fewstab", attributes=attributes, **SMALL)


def test_too_few_different_words() -> None:
    words = {f"{label}/{i}": ["red"] if i < 5 else [] for label in "abc" for i in range(20)}
    catalog, attributes = data_of(words)
    with pytest.raises(InsufficientData, match=r"3 ways need 3 different eligible words.*the data has 1"):
        sample(catalog, "fewstab", attributes=attributes, **SMALL)


def test_sources_that_eat_up_the_queries() -> None:
    words = {f"{label}/{i}": [f"{label}-word"] if i < 4 else [] for label in "abc" for i in range(12)}
    catalog, attributes = data_of(words)
    table = catalog.table.append_column("source", catalog.table.column("label"))
    with pytest.raises(InsufficientData, match="left fewer than 4 query items of other sources"):
        sample(Catalog(table), "fewstab", attributes=attributes, **SMALL)
