from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.catalog.layouts.mini_imagenet import MiniImageNetLayout
from shotproof.core.errors import InputError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "images").mkdir()
    for split, name, label in [("train", "n01_1", "n01"), ("val", "n02_1", "0123"), ("test", "n03_1", "n03")]:
        (tmp_path / f"{split}.csv").write_text(f"filename,label\n{name}.jpg,{label}\n")
        (tmp_path / "images" / f"{name}.jpg").touch()
    return tmp_path


def test_the_three_files_give_label_and_split(root: Path) -> None:
    catalog = MiniImageNetLayout().read(root)
    assert catalog.table.to_pylist() == [
        {"item": "images/n01_1.jpg", "path": "images/n01_1.jpg", "label": "n01", "split": "train"},
        {"item": "images/n02_1.jpg", "path": "images/n02_1.jpg", "label": "0123", "split": "val"},
        {"item": "images/n03_1.jpg", "path": "images/n03_1.jpg", "label": "n03", "split": "test"},
    ]
    assert all(path.is_file() for path in catalog.paths)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("filename,label\nn01_1.jpg,n01\nn01_2.jpg,n01\n", r"train\.csv, line 3: .*n01_2\.jpg does not exist \(1 of 2"),
        ("filename,label\nn01_1.jpg,\n", r"train\.csv, line 2: empty label"),
        ("filename,label\nn02_1.jpg,n01\n", r"must be unique: 'images/n02_1\.jpg' occurs 2 times"),
        ("file,label\nn01_1.jpg,n01\n", "no column 'filename': did you mean 'file'"),
    ],
)
def test_a_list_that_does_not_fit_is_named_with_its_line(root: Path, text: str, message: str) -> None:
    (root / "train.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        MiniImageNetLayout().read(root)


def test_a_missing_list_is_named(root: Path) -> None:
    (root / "val.csv").unlink()
    with pytest.raises(InputError, match=r"val\.csv does not exist"):
        MiniImageNetLayout().read(root)
