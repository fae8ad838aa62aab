from __future__ import annotations

import itertools
from math import log
from typing import Any

import pytest

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core import draws
from shotproof.core.errors import InsufficientData
from shotproof.tasks.fewstab.fewstab_sampler import CLASSES, WORDS
from shotproof.tasks.sampler import sample
from shotproof.tasks.task_check import check_tasks
from tests.conftest import draw_data
from tests.tasks.fewstab.test_fewstab_sampler import data_of

WAY, SHOT, QUERY = 3, 3, 6
DESIGN: dict[str, Any] = {"way": WAY, "shot": SHOT, "query": QUERY}


def told_step_by_step(catalog: Catalog, attributes: Attributes, task: int) -> list[dict[str, Any]]:
    """Classes, words and loosenings of a task by plain sets and numbers, from the same random bits."""
    held = {item: set(words or []) for item, words in attributes.to_words().items()}
    items: dict[str, list[str]] = {}
    for item in sorted(held):
        items.setdefault(item.split("/")[0], []).append(item)
    classes = sorted(items)
    words = sorted(set().union(*held.values()))
    eligible = {
        word: [
            c
            for c in classes
            if sum(word in held[i] for i in items[c]) >= SHOT and sum(word not in held[i] for i in items[c]) >= QUERY
        ]
        for word in words
    }
    vocabulary = [word for word in words if eligible[word]]
    support_failed, query_failed, support_failures, query_failures = 0.0, 0, 0, 0
    for attempt in itertools.count():
        bits = [draws.bits(0, task, attempt, what, list(range(WAY))) for what in (WORDS, CLASSES)]
        chosen = [vocabulary[i] for i in draws.distinct(bits[0], len(vocabulary))]
        rows: list[dict[str, Any]] = []
        for slot, word in enumerate(chosen):
            others = set(chosen) - {word}
            shared = {c for other in others for c in eligible[other]}
            left = [c for c in eligible[word] if c in shared and c not in [row["label"] for row in rows]]
            if not left:
                break
            label = left[int(draws.below(bits[1][slot], len(left)))]
            supports = [i for i in items[label] if word in held[i] and len(held[i] & others) <= support_failed]
            if len(supports) < SHOT:
                support_failed, support_failures = support_failed + 0.2, support_failures + 1
                break
            row = {"label": label, "attribute": word, "support_loosened": int(support_failed)}
            support_failed = 0.0
            candidates = [i for i in items[label] if word not in held[i]]
            if query_failed < 5:
                candidates = [i for i in candidates if held[i] & others]
            if len(candidates) < QUERY:
                query_failed, query_failures = query_failed + 1, query_failures + 1
                break
            counted = [w for w in vocabulary if w not in chosen]
            share = {w: sum(w in held[i] for i in candidates) / len(candidates) for w in counted}
            scores = sorted(sum(log((share[w] if w in held[i] else 0) + 1e-10) for w in counted) for i in candidates)
            rows.append({**row, "fallback": query_failed >= 5, "scores": scores[:QUERY], "share": share})
            query_failed = 0
        if len(rows) == WAY:
            more = {"tries": attempt + 1, "support_failures": support_failures, "query_failures": query_failures}
            return [{**row, **more} for row in rows]
    raise AssertionError


def test_tasks_are_those_told_step_by_step() -> None:
    catalog, attributes = draw_data(seed=4, classes=7, items=20)
    tasks = sample(catalog, "fewstab(variant='published')", attributes=attributes, **DESIGN, tasks=40)
    known = {item: set(words or []) for item, words in attributes.to_words().items()}
    rows = tasks.table.to_pylist()
    for task in range(40):
        for row, told in zip(
            rows[task * WAY : (task + 1) * WAY], told_step_by_step(catalog, attributes, task), strict=True
        ):
            share, scores = told.pop("share"), told.pop("scores")
            assert {name: row[name] for name in told} == told
            mine = [sum(log((share[w] if w in known[i] else 0) + 1e-10) for w in share) for i in row["query"]]
            assert sorted(mine) == pytest.approx(scores)
    assert check_tasks(tasks, catalog, attributes) == []
    summary = tasks.record.summary
    assert summary["support_loosened_share"] > 0
    assert summary["support_failures"] == sum(row["support_failures"] for row in rows[::WAY])
    assert summary["query_failures"] == sum(row["query_failures"] for row in rows[::WAY])
    assert summary["fallback_share"] > 0


def test_only_the_first_class_of_a_task_falls_back_since_a_success_forgets_the_failures() -> None:
    # In classes a and b, four items hold the other word, where five queries are asked for.
    words = {
        f"{label}/{i:02d}": [*(["x"] if i < few else []), *(["y"] if few <= i < 2 * few else [])]
        for label, few in (("a", 4), ("b", 4), ("c", 6), ("d", 6))
        for i in range(14)
    }
    catalog, attributes = data_of(words)
    tasks = sample(catalog, "fewstab(variant='published')", attributes=attributes, way=2, shot=2, query=5, tasks=300)
    rows = tasks.table.to_pylist()
    assert {row["label"] for row in rows[::2]} == set("abcd")
    assert {row["label"] for row in rows[1::2]} == {"c", "d"}
    assert all(row["fallback"] for row in rows if row["label"] in "ab")
    assert not any(row["fallback"] for row in rows[1::2])
    assert all(row["query_failures"] >= 5 for row in rows if row["fallback"])
    assert check_tasks(tasks, catalog, attributes) == []


def test_the_rank_is_by_sums_of_logarithms() -> None:
    """Two rare words weigh more than a frequent one by logarithms, and less by shares."""
    words: dict[str, list[str] | None] = {}
    for label, own, other in (("a", "x", "y"), ("b", "y", "x")):
        words |= {f"{label}/{i:02d}": [own] for i in range(3)}
        words |= {f"{label}/{i:02d}": [other, "often"] for i in range(3, 13)}
        words |= {f"{label}/{i:02d}": [other, f"rare{i}", f"seldom{i}"] for i in range(13, 15)}
        words |= {f"{label}/{i:02d}": [f"rare{j}", f"seldom{j}"] for i, j in ((15, 13), (16, 14))}
    catalog, attributes = data_of(words)
    design: dict[str, Any] = {"way": 2, "shot": 2, "query": 2, "tasks": 200}
    for variant, queries in (("paper", {"13", "14"}), ("published", {f"{i:02d}" for i in range(3, 13)})):
        tasks = sample(catalog, f"fewstab(variant='{variant}')", attributes=attributes, **design)
        own = {("a", "x"), ("b", "y")}
        planted = [row for row in tasks.table.to_pylist() if (row["label"], row["attribute"]) in own]
        both = [row for row in planted if sum(row["task"] == other["task"] for other in planted) == 2]
        assert both
        assert {item.split("/")[1] for row in both for item in row["query"]} <= queries


def test_a_loosening_that_is_not_recorded_is_found() -> None:
    catalog, attributes = draw_data(seed=4, classes=7, items=20)
    tasks = sample(catalog, "fewstab(variant='published')", attributes=attributes, **DESIGN, tasks=40)
    index = tasks.table.column_names.index("support_loosened")
    loosened = tasks.table.column("support_loosened").to_pylist()
    hidden = type(tasks)(tasks.table.set_column(index, "support_loosened", [[0] * len(loosened)]), tasks.record)
    found = [str(check_task) for check_task in check_tasks(hidden, catalog, attributes)]
    assert any("holds another class's attribute" in each for each in found)


def test_where_no_class_is_left_the_error_says_so() -> None:
    # No class has two eligible words, so no class is eligible for a word of another.
    words = {f"{label}/{i}": [f"{label}-word"] if i < 4 else [] for label in "abcd" for i in range(12)}
    catalog, attributes = data_of(words)
    with pytest.raises(InsufficientData, match=r"no class was left .* tries"):
        sample(catalog, "fewstab(variant='published', max_tries=300)", attributes=attributes, way=3, shot=2, query=4)
