from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.cli.arguments import files_of_kind, read_all, read_one, read_settings, sort_files
from shotproof.core.errors import InputError
from shotproof.worlds.shapes import ShapesWorld


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A catalog and its attributes, under names that say nothing."""
    world, names = ShapesWorld(classes=2, items=2), {"catalog": tmp_path / "a", "attributes": tmp_path / "b"}
    world.catalog().write(names["catalog"])
    world.attributes().write(names["attributes"])
    return names


def test_files_are_told_apart_by_what_they_hold(files: dict[str, Path], tmp_path: Path) -> None:
    catalog, attributes = files["catalog"], files["attributes"]
    kinds = ("catalog", "attributes", "features")
    expected = {"catalog": [catalog], "attributes": [attributes], "features": []}
    assert sort_files([attributes, catalog], kinds) == expected
    assert files_of_kind([tmp_path, attributes, catalog], "catalog") == [catalog]
    assert read_one([catalog], "catalog").digest == ShapesWorld(classes=2, items=2).catalog().digest
    assert read_one([], "catalog") is None
    assert len(read_all([catalog, catalog], "catalog")) == 2


def test_what_is_of_no_use_or_one_too_many_is_refused(files: dict[str, Path]) -> None:
    catalog, attributes = files["catalog"], files["attributes"]
    with pytest.raises(InputError, match=r"b: expected a catalog or features, found attributes"):
        sort_files([catalog, attributes], ("catalog", "features"))
    with pytest.raises(InputError, match="both hold a catalog"):
        sort_files([catalog, catalog], ("catalog",))
    assert sort_files([catalog, catalog], ("catalog",), several=["catalog"]) == {"catalog": [catalog, catalog]}


def test_settings_are_values_or_text_without_quotes() -> None:
    given = ["lr=0.1", "milestones=[1, 2]", "augment=none", "embedding=file:a b.npz"]
    assert read_settings(given) == {"lr": 0.1, "milestones": [1, 2], "augment": "none", "embedding": "file:a b.npz"}
    for text in ("lr", "=1", "two words=1"):
        with pytest.raises(InputError, match="expected NAME=VALUE"):
            read_settings([text])
