from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.catalog.layouts.tiered_imagenet import TieredImageNetLayout
from shotproof.core.errors import InputError


def grow(root: Path, *files: str) -> Path:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    return root


WHOLE = ("train/n01/a.jpg", "val/n02/b.JPEG", "test/n03/c.jpg")


def test_three_splits_with_class_folders(tmp_path: Path) -> None:
    catalog = TieredImageNetLayout().read(grow(tmp_path, *WHOLE))
    assert catalog.table.select(["item", "label", "split"]).to_pylist() == [
        {"item": "test/n03/c.jpg", "label": "n03", "split": "test"},
        {"item": "train/n01/a.jpg", "label": "n01", "split": "train"},
        {"item": "val/n02/b.JPEG", "label": "n02", "split": "val"},
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (WHOLE[:2], "no images below 'test'"),
        ((*WHOLE, "trian/n04/d.jpg"), "'trian' is not a split of tieredImageNet: did you mean 'train'"),
        ((*WHOLE, "train/d.jpg"), r"'train/d\.jpg' is in a split folder, but in no class folder"),
    ],
)
def test_another_form_is_refused(tmp_path: Path, files: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TieredImageNetLayout().read(grow(tmp_path, *files))
