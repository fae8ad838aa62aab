"""Mismatch between support and query, against plain loops and against all divisions of few items."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from shotproof.analysis.explanation import mismatch
from shotproof.analysis.explanation.mismatch import RunningMeans, blocks, expected_mismatch, sides_of
from shotproof.attributes.attributes import Attributes
from shotproof.core.errors import InputError
from shotproof.tasks.taskset import TaskSet
from tests.drawn_tasks import draw_task_set


def draw_words(seed: int, unknown: float = 0.0) -> tuple[TaskSet, dict[str, list[str] | None]]:
    """Tasks of unequal ways, shots and queries, and words for their items; of some nothing is known."""
    tasks, features = draw_task_set(seed, tasks=7)
    random = np.random.default_rng(seed)
    items = features.table.column("item").to_pylist()
    words = {item: [word for word in "abcde" if random.random() < 0.4] for item in items}
    return tasks, {item: None if random.random() < unknown else held for item, held in words.items()}


def by_hand(tasks: TaskSet, words: dict[str, list[str] | None], names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The mismatch and what chance gives, [tasks, words] each, by loops over classes, words and divisions."""
    found: dict[int, list[list[tuple[float, float]]]] = {}
    for row in tasks.table.to_pylist():
        sides = [
            [set(held) for item in row[name] if (held := words[item]) is not None] for name in ("support", "query")
        ]
        if all(sides):
            pairs = [(_distance(*sides, word), _by_chance(*sides, word)) for word in names]
            found.setdefault(row["task"], []).append(pairs)
    means = np.array([np.mean(found[task], axis=0) for task in sorted(found)])
    return means[..., 0], means[..., 1]


def _distance(support: list[set[str]], query: list[set[str]], word: str) -> float:
    """In points."""
    return 100 * abs(float(np.mean([word in held for held in support]) - np.mean([word in held for held in query])))


def _by_chance(support: list[set[str]], query: list[set[str]], word: str) -> float:
    items = support + query
    divisions = combinations(range(len(items)), len(support))
    return float(
        np.mean(
            [
                _distance([items[i] for i in chosen], [items[i] for i in range(len(items)) if i not in chosen], word)
                for chosen in divisions
            ]
        )
    )


@pytest.mark.parametrize("seed", range(4))
def test_blocks_agree_with_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mismatch, "BLOCK", 3)  # seven tasks: three blocks
    tasks, words = draw_words(seed, unknown=0.1)
    (sides,), held = sides_of([tasks], Attributes.from_words(words))
    made = list(blocks(sides, held))
    assert len(made) == 3
    expected, by_chance = by_hand(tasks, words, held.words)
    for name, values in (("mismatch", expected), ("chance", by_chance)):
        found = sparse.vstack([getattr(block, name) for block in made]).toarray()
        np.testing.assert_allclose(found[:, :-1], values, atol=1e-10)
        np.testing.assert_allclose(found[:, -1], values.mean(axis=1), atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_pooled_over_a_task_its_classes_are_one(seed: int) -> None:
    tasks, words = draw_words(seed, unknown=0.1)
    (by_class,), held = sides_of([tasks], Attributes.from_words(words))
    (block,) = blocks(by_class.pooled(), held)
    pooled: dict[int, tuple[list[set[str]], list[set[str]]]] = {}
    for row in tasks.table.to_pylist():
        sides = [[set(own) for item in row[name] if (own := words[item]) is not None] for name in ("support", "query")]
        if all(sides):
            for together, own in zip(pooled.setdefault(row["task"], ([], [])), sides, strict=True):
                together += own
    expected = [[_distance(*pooled[task], word) for word in held.words] for task in sorted(pooled)]
    np.testing.assert_allclose(block.mismatch.toarray()[:, :-1], expected, atol=1e-10)
    # Classes that differ in opposite ways cancel out.
    (apart,) = blocks(by_class, held)
    assert block.mismatch.toarray()[:, -1].mean() < apart.mismatch.toarray()[:, -1].mean()
    # By chance: the mean over random divisions of all items of the task.
    support, query = pooled[min(pooled)]
    items, random = support + query, np.random.default_rng(seed)
    divided = []
    for _ in range(4000):
        order = [items[place] for place in random.permutation(len(items))]
        divided.append(_distance(order[: len(support)], order[len(support) :], "a"))
    chance = block.chance.toarray()[0, held.words.index("a")]
    assert chance == pytest.approx(np.mean(divided), abs=4 * np.std(divided) / np.sqrt(4000) + 1e-9)


def test_shares_and_mismatched_classes_are_counted() -> None:
    tasks, words = draw_words(5)
    (sides,), held = sides_of([tasks], Attributes.from_words(words))
    (block,) = blocks(sides, held)
    assert sides.left_out == 0
    rows = tasks.table.to_pylist()
    for column, word in enumerate(held.words):
        for name in ("support", "query"):
            shares: dict[int, list[float]] = {}
            for row in rows:
                shares.setdefault(row["task"], []).append(100 * np.mean([word in (words[i] or []) for i in row[name]]))
            assert getattr(block, name)[column] == pytest.approx(sum(map(np.mean, shares.values())))
        sides_of_row = [[[set(words[i] or []) for i in row[name]] for name in ("support", "query")] for row in rows]
        assert block.often[column] == sum(_distance(*both, word) >= 50 - 1e-9 for both in sides_of_row)


def test_classes_of_which_nothing_is_known_take_no_part_and_whole_tasks_are_refused() -> None:
    tasks, words = draw_words(1)
    first, second = tasks.table.to_pylist()[:2]
    words |= dict.fromkeys(first["support"])
    (sides,), _ = sides_of([tasks], Attributes.from_words(words))
    assert sides.left_out >= 1
    assert (sides.support.sizes[0], sides.query.sizes[0]) == (0, 0)
    rows = [row for row in tasks.table.to_pylist() if row["task"] == second["task"]]
    words |= {item: None for row in rows for item in row["query"]}
    with pytest.raises(InputError, match="task 0: no class has attributes"):
        sides_of([tasks], Attributes.from_words(words))


@given(st.integers(1, 4), st.integers(1, 5))
def test_chance_is_the_mean_over_all_divisions(support: int, query: int) -> None:
    expected = expected_mismatch(support, query)
    for holders in range(support + query + 1):
        items = [{"w"}] * holders + [set[str]()] * (support + query - holders)
        assert expected[holders] == pytest.approx(_by_chance(items[:support], items[support:], "w"))


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_moments_of_blocks_are_those_of_all_rows(seed: int, sizes: list[int]) -> None:
    random = np.random.default_rng(seed)
    parts = [random.normal(size=(size, 4)) * (random.random((size, 4)) < 0.5) for size in sizes]
    for part in parts:
        part[:, 3] = 0.1
    running = RunningMeans(4)
    for part in parts:
        running.add(sparse.csr_matrix(part))
    whole = np.concatenate(parts)
    np.testing.assert_allclose(running.mean, whole.mean(axis=0), atol=1e-12)
    if len(whole) > 1:
        for column in range(3):
            spread = running.estimate(column).spread
            variance = whole[:, column].var(ddof=1) / len(whole)
            assert (spread.variance if spread else 0.0) == pytest.approx(variance, abs=1e-14)
        assert "same value" in str(running.estimate(3).refused)
