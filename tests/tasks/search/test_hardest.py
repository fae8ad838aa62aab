"""Hardest against greedy, on worlds of several kinds."""

from __future__ import annotations

from typing import Any

import pytest

from shotproof.core.errors import InputError
from shotproof.features.features import Features
from tests.searched_tasks import accuracy, search, world


@pytest.mark.parametrize("separation", [0.4, 0.8])
@pytest.mark.parametrize("length", [0.05, 1.0, 20.0])
def test_at_least_as_hard_as_greedy_whatever_the_length_of_features(separation: float, length: float) -> None:
    catalog, features = world(seed=3, separation=separation)
    scaled = Features.from_array(catalog.items, features.array * length)
    greedy = accuracy(search("greedy", (catalog, scaled)), scaled)
    # Where features are so short that greedy's loss is linear, one round is not enough.
    assert accuracy(search("hardest", (catalog, scaled), rounds=2 if length < 1 else 1), scaled) <= greedy


def test_more_rounds_and_swaps_make_tasks_harder() -> None:
    given = world()
    found = [
        accuracy(search("hardest", given, **options), given[1])
        for options in ({"rounds": 1}, {"rounds": 4}, {"rounds": 4, "swaps": 1})
    ]
    assert found == sorted(found, reverse=True)


def test_a_pool_as_large_as_the_support_is_taken_whole() -> None:
    catalog, features = world(items=11)
    tasks = search("hardest", (catalog, features))
    assert all(len(set(row["support"] + row["query"])) == 11 for row in tasks.table.to_pylist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds: expected a whole number of at least 1"),
        ({"sharpness": -1}, "sharpness: expected a number above 0"),
        ({"swaps": -1}, "swaps: expected a whole number of at least 0, found -1"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        search("hardest", world(), **options)
