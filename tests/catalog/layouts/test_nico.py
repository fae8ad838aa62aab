from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.catalog.layout import read_layout
from shotproof.core.errors import InputError
from tests.catalog.layouts.test_meta_dataset import touch


def pairs(root: Path, **options: str) -> list[tuple[str, str]]:
    table = read_layout(root, {"name": "nico", **options}).table
    return list(zip(table.column("label").to_pylist(), table.column("context").to_pylist(), strict=True))


def test_nico_has_classes_above_contexts(tmp_path: Path) -> None:
    touch(tmp_path, "Animal/bear/on snow/1.jpg", "Animal/cow/on_grass/1.jpg", "Vehicle/truck/on_beach/83.jpg")
    expected = [("bear", "on snow"), ("cow", "on_grass"), ("truck", "on_beach")]
    assert pairs(tmp_path) == expected
    assert pairs(tmp_path / "Animal", version="nico") == expected[:2]


def test_nico_plus_plus_has_contexts_above_classes(tmp_path: Path) -> None:
    touch(tmp_path, "train/rock/hot air balloon/1.jpg", "train/autumn/dog/1.jpg", "test/1.jpg")
    assert pairs(tmp_path) == [("dog", "autumn"), ("hot air balloon", "rock")]
    assert pairs(tmp_path / "train") == pairs(tmp_path)
    record = read_layout(tmp_path, "nico").record
    assert (record.name, record.notes) == ("NICO++", {"version": "nico++", "ignored_files": 1})


def test_what_cannot_be_told_is_asked_for(tmp_path: Path) -> None:
    touch(tmp_path, "bear/on snow/1.jpg", "loose/1.jpg")
    with pytest.raises(InputError, match=r"version='nico'"):
        pairs(tmp_path)
    assert pairs(tmp_path, version="nico++") == [("on snow", "bear")]
    with pytest.raises(InputError, match=r"layout 'nico': version: expected nico or nico\+\+ or None, found 'nico2'"):
        pairs(tmp_path, version="nico2")
    with pytest.raises(InputError, match="no image 2 folders deep"):
        pairs(tmp_path / "bear", version="nico")
