from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.catalog.layout import read_layout
from shotproof.catalog.layouts.metacoco import published_split
from shotproof.core.errors import InputError

# Number of samples of the concepts next to the borders of the published split (MetaCoCo, Table 4).
AT_BORDERS = {"bag": 993, "toilet": 864, "rat": 857, "curtain": 482, "carpet": 437, "bridge": 249}


def touch(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def test_concepts_and_contexts_are_read_from_folders(tmp_path: Path) -> None:
    touch(tmp_path, "dog/on grass/1.jpg", "dog/snow/more/2.png", "cat/snow/1.jpg", "dog/snow/notes.txt")
    catalog = read_layout(tmp_path, "metacoco")
    rows = catalog.table.select(["item", "label", "context"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("cat/snow/1.jpg", "cat", "snow"),
        ("dog/on grass/1.jpg", "dog", "on grass"),
        ("dog/snow/more/2.png", "dog", "snow"),
    ]
    assert catalog.record.notes == {"ignored_files": 1}
    assert "MetaCoCo" in (catalog.record.citation or "")


def test_the_published_split_is_reproduced() -> None:
    sizes = dict(AT_BORDERS)
    sizes |= {f"large{i:02d}": 1000 + i for i in range(62)} | {f"middle{i:02d}": 500 + i for i in range(18)}
    sizes |= {f"small{i:02d}": 300 + i for i in range(14)}
    split_of = published_split([concept for concept, size in sizes.items() for _ in range(size)])
    assert [list(split_of.values()).count(split) for split in ("train", "test", "val")] == [64, 20, 16]
    assert [split_of[name] for name in AT_BORDERS] == ["train", "train", "test", "test", "val", "val"]


@pytest.mark.parametrize(("concepts", "sizes"), [(1, (1, 0, 0)), (5, (3, 1, 1)), (10, (6, 2, 2)), (50, (32, 10, 8))])
def test_other_numbers_of_concepts_are_split_in_proportion(concepts: int, sizes: tuple[int, int, int]) -> None:
    splits = list(published_split([f"c{i}" for i in range(concepts)]).values())
    assert tuple(splits.count(split) for split in ("train", "test", "val")) == sizes


def test_split_folders_are_kept(tmp_path: Path) -> None:
    touch(tmp_path, "train/dog/grass/1.jpg", "val/cat/grass/1.jpg", "test/cow/snow/1.jpg")
    table = read_layout(tmp_path, "metacoco").table
    assert table.column("split").to_pylist() == ["test", "train", "val"]
    assert table.column("label").to_pylist() == ["cow", "dog", "cat"]


def test_an_image_without_a_context_is_named(tmp_path: Path) -> None:
    touch(tmp_path, "dog/grass/1.jpg", "cat/1.jpg")
    with pytest.raises(InputError, match=r"'cat/1\.jpg' is not in a context folder"):
        read_layout(tmp_path, "metacoco")
