"""Drawn animals in drawn places: where they are, and that every picture shows its animal."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.worlds.drawings import PLACES
from shotproof.worlds.scenes import HOMES, ScenesWorld


def counts(catalog: Catalog) -> Counter[tuple[str, str]]:
    """How many pictures of each animal there are in each place."""
    columns = (catalog.table.column(name).to_pylist() for name in ("label", "background"))
    return Counter(zip(*columns, strict=True))


def test_tested_animals_are_in_every_place_and_others_are_at_home() -> None:
    catalog = ScenesWorld(items=10, at_home=0.9).catalog()
    tested, trained = (counts(catalog.in_split(split)) for split in ("test", "train"))
    assert set(tested.values()) == {10}
    assert len(tested) == 8 * len(PLACES)
    assert {animal for animal, _ in trained} == set(HOMES)
    for (animal, place), count in trained.items():
        assert count == (55 if HOMES[animal] == place else 1)
    assert counts(ScenesWorld(items=10).catalog().in_split("train")) == dict.fromkeys(trained, 10)
    alone = counts(ScenesWorld(items=10, at_home=1).catalog().in_split("train"))
    assert alone == dict.fromkeys(HOMES.items(), 60)


def test_pictures_follow_from_the_seed_and_all_differ(tmp_path: Path) -> None:
    def drawn(name: str, seed: int) -> list[bytes]:
        return [
            path.read_bytes() for path in ScenesWorld(items=1, size=24, seed=seed).write(tmp_path / name, "test").paths
        ]

    first = drawn("first", 0)
    assert first == drawn("again", 0)
    assert not set(first) & set(drawn("other", 1))
    assert len(set(first)) == len(first)


def test_a_place_looks_alike_and_unlike_the_others(tmp_path: Path) -> None:
    catalog = ScenesWorld(items=2, size=24).write(tmp_path, "test")
    corners = np.stack([np.asarray(Image.open(path))[-2:, [0, 1, -2, -1]].mean((0, 1)) for path in catalog.paths])
    places = np.array(catalog.table.column("background").to_pylist())
    centers = {place: np.median(corners[places == place], axis=0) for place in PLACES}
    nearest = [min(centers, key=lambda place: float(np.abs(centers[place] - corner).sum())) for corner in corners]
    assert np.mean(places == np.array(nearest)) > 0.9


def test_a_share_beyond_one_is_refused() -> None:
    with pytest.raises(InputError, match="at_home"):
        ScenesWorld(at_home=1.5)
