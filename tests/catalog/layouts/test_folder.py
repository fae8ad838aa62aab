from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import read_layout
from shotproof.catalog.layouts.folder import FolderLayout
from shotproof.core.errors import InputError
from shotproof.media.images import open_image
from shotproof.worlds.shapes import ShapesWorld


def grow(root: Path, *files: str) -> Path:
    """Empty files, with their folders; a catalog looks at names only."""
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    return root


def rows(catalog: Catalog) -> list[tuple[str, str, str]]:
    columns = [catalog.table[name].to_pylist() for name in ("item", "label", "split")]
    return list(zip(*columns, strict=True))


def test_class_folders(tmp_path: Path) -> None:
    catalog = FolderLayout().read(grow(tmp_path, "robin/b.JPG", "robin/a.png", "jay/deep/er/c.webp", "jay/d.tif"))
    assert rows(catalog) == [
        ("jay/d.tif", "jay", "all"),
        ("jay/deep/er/c.webp", "jay", "all"),
        ("robin/a.png", "robin", "all"),
        ("robin/b.JPG", "robin", "all"),
    ]
    assert all(path.is_file() for path in catalog.paths)


def test_split_folders(tmp_path: Path) -> None:
    catalog = FolderLayout().read(grow(tmp_path, "train/jay/a.png", "novel/robin/x/b.png", "novel/wren/c.png"))
    assert rows(catalog) == [
        ("novel/robin/x/b.png", "robin", "novel"),
        ("novel/wren/c.png", "wren", "novel"),
        ("train/jay/a.png", "jay", "train"),
    ]


def test_one_can_say_that_there_are_no_split_folders(tmp_path: Path) -> None:
    root = grow(tmp_path, "robin/monday/a.png", "jay/b.png")
    assert rows(FolderLayout(split_folders=False).read(root)) == [
        ("jay/b.png", "jay", "all"),
        ("robin/monday/a.png", "robin", "all"),
    ]
    with pytest.raises(InputError, match=r"'jay/b\.png' is in a split folder"):
        FolderLayout(split_folders=True).read(root)


file_names = st.text("ab", min_size=1, max_size=2).map(lambda name: f"{name}.png")
folder_names = st.sampled_from(["A", "b b", "é", "train", "x.png"])


@settings(deadline=None)
@given(st.sets(st.tuples(folder_names, folder_names, file_names), min_size=1, max_size=12), st.booleans())
def test_any_tree_is_read_as_it_was_grown(
    tmp_path_factory: pytest.TempPathFactory, tree: set[tuple[str, str, str]], with_splits: bool
) -> None:
    root = tmp_path_factory.mktemp("tree")
    expected = sorted(
        (f"{split}/{label}/{name}", label, split) if with_splits else (f"{label}/{name}", label, "all")
        for split, label, name in tree
    )
    grow(root, *(item for item, _, _ in expected))
    assert rows(FolderLayout().read(root)) == sorted(set(expected))


def test_hidden_and_foreign_files_are_left_out_and_counted(tmp_path: Path) -> None:
    grow(tmp_path, "a/1.png", "a/.2.png", "a/._1.png", "a/notes.txt", "labels.csv", ".git/a/b.png", "a/png", "b/3.gif")
    catalog = FolderLayout().read(tmp_path)
    assert catalog.table["item"].to_pylist() == ["a/1.png", "b/3.gif"]
    assert catalog.record.notes == {"ignored_files": 6}


def test_empty_class_folders_and_stray_items_are_left_out_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grow(tmp_path, "a/1.png", "b/2.png", "stray.png", "notes/readme.txt", ".git/x.png")
    (tmp_path / "wren" / "more").mkdir(parents=True)
    (tmp_path / "b" / "none").mkdir()
    catalog = FolderLayout().read(tmp_path)
    assert catalog.items == ["a/1.png", "b/2.png"]
    assert catalog.record.notes == {
        "ignored_files": 2,
        "folders_without_items": ["b/none", "notes", "wren"],
        "items_without_folder": ["stray.png"],
    }
    told = [message.removeprefix(f"{tmp_path}: ") for message in caplog.messages]
    assert told == [
        "left out folders without items: b/none, notes, wren",
        "left out files in no class folder: stray.png",
    ]
    FolderLayout().read(tmp_path / "a" / "..")  # as an experiment in another folder names it
    assert len(caplog.messages) == 2


@pytest.mark.parametrize("extensions", [["ogg", ".WAV"], ("wav", "OGG")])
def test_other_extensions_can_be_chosen(tmp_path: Path, extensions: list[str]) -> None:
    grow(tmp_path, "a/1.ogg", "a/2.wav", "a/3.png")
    assert FolderLayout(extensions=extensions).read(tmp_path).table["item"].to_pylist() == ["a/1.ogg", "a/2.wav"]
    assert FolderLayout(extensions="wav").read(tmp_path).table["item"].to_pylist() == ["a/2.wav"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["a/notes.txt"], r"\.jpg, .* \(1 others ignored\)"),
        (["1.png", "2.png"], r"'1\.png' directly: expected a folder"),
        (["robin/1.png", "train/jay/2.png"], r"mixes depths: 'robin/1\.png' .* all files of 'train' are deeper"),
    ],
)
def test_a_tree_that_cannot_be_read_is_one_clear_error(tmp_path: Path, files: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FolderLayout().read(grow(tmp_path, *files))


def test_a_root_that_is_no_folder(tmp_path: Path) -> None:
    grow(tmp_path, "file")
    with pytest.raises(InputError, match="is not a folder"):
        FolderLayout().read(tmp_path / "file")


def test_linked_folders_are_entered(tmp_path: Path) -> None:
    grow(tmp_path, "store/robin/1.png", "data/jay/2.png")
    (tmp_path / "data" / "robin").symlink_to(tmp_path / "store" / "robin")
    assert FolderLayout().read(tmp_path / "data").items == ["jay/2.png", "robin/1.png"]


@pytest.mark.parametrize(
    ("link", "target", "message"),
    [
        ("jay/loop", "..", r"jay/loop is a link to a folder .*: remove it"),
        ("jay/loop", "../jay", r"jay/loop is a link to a folder .*: remove it"),
        ("jay/loop", "loop", r"jay/loop is a link .*itself: remove it"),
        ("jay/2.png", "2.png", r"jay/2\.png is a link .*itself: remove it"),
        ("loop", "loop", r"loop is a link .*itself: remove it"),
    ],
)
def test_a_link_that_leads_in_a_circle_is_refused_by_name(tmp_path: Path, link: str, target: str, message: str) -> None:
    grow(tmp_path, "jay/1.png", "robin/1.png")
    (tmp_path / link).symlink_to(target)
    with pytest.raises(InputError, match=message):
        FolderLayout().read(tmp_path)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["images/jay/1.png", "images/robin/2.png"], [("jay", "all"), ("robin", "all")]),
        (["Images/jay/1.png", "images/robin/2.png"], [("jay", "all"), ("robin", "all")]),
        (["jay/images/1.png", "robin/images/2.png"], [("jay", "all"), ("robin", "all")]),
        (["images/test/jay/1.png", "images/train/robin/2.png"], [("jay", "test"), ("robin", "train")]),
        (["test/jay/images/1.png", "train/robin/images/2.png"], [("jay", "test"), ("robin", "train")]),
        (["images/1.png", "jay/2.png"], [("images", "all"), ("jay", "all")]),
        (["images/1.png", "images/2.png"], [("images", "all"), ("images", "all")]),
    ],
)
def test_a_level_of_folders_called_images_is_passed_over(
    tmp_path: Path, files: list[str], expected: list[tuple[str, str]]
) -> None:
    catalog = FolderLayout().read(grow(tmp_path, *files, "notes/read me.txt"))
    assert [(label, split) for _, label, split in rows(catalog)] == expected
    assert catalog.items == files


def test_a_name_that_is_not_utf8_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / os.fsdecode(b"caf\xe9.png")).touch()
    with pytest.raises(InputError, match="is not UTF-8: rename it"):
        FolderLayout().read(tmp_path)


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_is_read_like_the_folder_in_it(tmp_path: Path, kind: str) -> None:
    local = ShapesWorld(classes=2, items=3).write(tmp_path / "birds")
    archive = Path(shutil.make_archive(str(tmp_path / "birds"), kind, tmp_path / "birds"))
    catalog = read_layout(archive)
    assert catalog.record.name == "birds"
    assert catalog.items == read_layout(tmp_path / "birds").items
    catalog.write(tmp_path / "elsewhere/catalog.parquet")
    again = Catalog.read(tmp_path / "elsewhere/catalog.parquet")
    assert again.table.column("path")[0].as_py() == f"../birds.{kind}!/{catalog.items[0]}"
    pixels = {path.relative_to(tmp_path / "birds").as_posix(): open_image(path).tobytes() for path in local.paths}
    assert [open_image(path).tobytes() for path in again.paths] == [pixels[item] for item in again.items]
