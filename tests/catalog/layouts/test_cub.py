from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shotproof.catalog.layouts.cub import CubLayout
from shotproof.core.errors import InputError

CLASSES = ["001.Black_footed_Albatross", "002.Laysan_Albatross"]
PARTS = ["back", "left wing", "right_eye"]  # the official file has spaces, some copies underscores
FILES = ["images.txt", "classes.txt", "image_class_labels.txt", "train_test_split.txt", "bounding_boxes.txt"]


def write_lines(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Six images of two classes; whether a part is visible follows from the numbers of image and part."""
    paths = [f"{CLASSES[i % 2]}/bird_{i}.jpg" for i in range(1, 7)]
    write_lines(tmp_path / "images.txt", [f"{i} {path}" for i, path in enumerate(paths, 1)])
    write_lines(tmp_path / "classes.txt", [f"{i} {name}" for i, name in enumerate(CLASSES, 1)])
    write_lines(tmp_path / "image_class_labels.txt", [f"{i} {i % 2 + 1}" for i in range(1, 7)])
    write_lines(tmp_path / "train_test_split.txt", [f"{i} {int(i > 4)}" for i in range(1, 7)])
    write_lines(tmp_path / "bounding_boxes.txt", [f"{i} {i}.0 {i + 1}.5 30.0 40.0" for i in range(1, 7)])
    write_lines(tmp_path / "parts" / "parts.txt", [f"{i} {name}" for i, name in enumerate(PARTS, 1)])
    locations = [f"{i} {p} 1.0 2.0 {i * p % 2}" for i in range(1, 7) for p in range(1, 4)]
    write_lines(tmp_path / "parts" / "part_locs.txt", locations)
    for path in paths:
        (tmp_path / "images" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / path).touch()
    return tmp_path


def test_every_file_becomes_columns(root: Path) -> None:
    catalog = CubLayout().read(root)
    assert catalog.table["item"].to_pylist() == [
        *(f"images/{CLASSES[0]}/bird_{i}.jpg" for i in (2, 4, 6)),
        *(f"images/{CLASSES[1]}/bird_{i}.jpg" for i in (1, 3, 5)),
    ]
    number = np.array([2, 4, 6, 1, 3, 5])
    table = catalog.table
    assert table["label"].to_pylist() == [CLASSES[0]] * 3 + [CLASSES[1]] * 3
    assert table["split"].to_pylist() == ["train" if i > 4 else "test" for i in number]
    np.testing.assert_array_equal(table["box_x"], number)
    np.testing.assert_array_equal(table["box_y"], number + 1.5)
    np.testing.assert_array_equal(table["box_height"], [40.0] * 6)
    np.testing.assert_array_equal(table["back visible"], number % 2 == 1)
    np.testing.assert_array_equal(table["left wing visible"], [False] * 6)
    np.testing.assert_array_equal(table["right eye visible"], number * 3 % 2 == 1)
    assert all(path.is_file() for path in catalog.paths)


@pytest.mark.parametrize("name", [*FILES, "parts/part_locs.txt"])
def test_the_order_of_lines_does_not_matter(root: Path, name: str) -> None:
    before = CubLayout().read(root)
    lines = (root / name).read_text().splitlines()
    write_lines(root / name, lines[::-1])
    assert CubLayout().read(root).table == before.table


def test_lines_may_end_as_on_windows(root: Path) -> None:
    before = CubLayout().read(root)
    for name in FILES:
        (root / name).write_bytes((root / name).read_bytes().replace(b"\n", b"\r\n"))
    assert CubLayout().read(root).table == before.table


@pytest.mark.parametrize("name", [*FILES, "parts/parts.txt", "parts/part_locs.txt"])
def test_a_missing_file_is_named(root: Path, name: str) -> None:
    (root / name).unlink()
    with pytest.raises(InputError, match=rf"{name} does not exist: expected the official CUB_200_2011 folder"):
        CubLayout().read(root)


@pytest.mark.parametrize("name", [*FILES, "parts/parts.txt", "parts/part_locs.txt"])
@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe", b"one two three four five six"])
def test_a_file_of_something_else_is_named(root: Path, name: str, content: bytes) -> None:
    (root / name).write_bytes(content)
    with pytest.raises(InputError, match=name):
        CubLayout().read(root)


@pytest.mark.parametrize(
    ("name", "line", "text", "message"),
    [
        ("images.txt", 3, "3", r"images\.txt, line 3: expected 2 fields \(image, path\), found '3'"),
        ("images.txt", 3, "2 x.jpg", r"images\.txt, line 3: image 2 occurs twice"),
        ("images.txt", 3, f"3 {CLASSES[1]}/gone.jpg", r"images\.txt, line 3: .*gone\.jpg does not exist \(1 of 6"),
        ("bounding_boxes.txt", 2, "2 1.0 nan 3.0 4.0", r"line 2: expected a number for the box_y, found 'nan'"),
        ("bounding_boxes.txt", 2, "2 1.0 2.0 3.0 4.0 5", r"line 2: expected a number for the box_height"),
        ("bounding_boxes.txt", 2, "9 1.0 2.0 3.0 4.0", r"line 2: image 9 is not in images\.txt"),
        ("train_test_split.txt", 6, "6 2", r"train_test_split\.txt, line 6: expected 0 or 1 for the is_training"),
        ("train_test_split.txt", 6, "5 1", r"train_test_split\.txt, line 6: image 5 occurs twice"),
        ("image_class_labels.txt", 1, "1 7", r"image_class_labels\.txt, line 1: class 7 is not in classes\.txt"),
        ("image_class_labels.txt", 1, "1 1", rf"line 1: the class is {CLASSES[0]}, but images\.txt has the path"),
        ("parts/part_locs.txt", 4, "1 1 0.0 0.0 1", r"part_locs\.txt, line 4: image 1, part 1 occurs twice"),
        ("parts/part_locs.txt", 4, "2 9 0.0 0.0 1", r"part_locs\.txt, line 4: part 9 is not in parts\.txt"),
        ("parts/part_locs.txt", 4, "", r"part_locs\.txt, line 4: expected 5 fields"),
    ],
)
def test_a_line_that_does_not_fit_is_named(root: Path, name: str, line: int, text: str, message: str) -> None:
    lines = (root / name).read_text().splitlines()
    lines[line - 1] = text
    write_lines(root / name, lines)
    with pytest.raises(InputError, match=message):
        CubLayout().read(root)


@pytest.mark.parametrize("name", [*FILES[2:], "parts/part_locs.txt"])
def test_an_image_that_a_file_lacks_is_named(root: Path, name: str) -> None:
    lines = (root / name).read_text().splitlines()
    write_lines(root / name, [line for line in lines if not line.startswith("5 ")])
    with pytest.raises(InputError, match=f"{name} lacks records of image 5"):
        CubLayout().read(root)
