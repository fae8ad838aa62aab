"""The world of shapes: what is drawn is what the words say, and the seed decides all of it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, WriteFailed
from shotproof.media.images import open_image
from shotproof.worlds import painter
from shotproof.worlds.glyphs import class_shape
from shotproof.worlds.shapes import FACTORS, ShapesWorld
from tests.hash_seeds import run_with_another_hash_seed

SMALL = ShapesWorld(classes=3, items=4, size=32)


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_item_has_a_picture_of_the_size_that_was_asked_for(tmp_path: Path) -> None:
    catalog = SMALL.write(tmp_path)
    assert len(catalog) == 12
    assert {open_image(path).size for path in catalog.paths} == {(32, 32)}
    assert sorted(digests(tmp_path)) == sorted(catalog.table.column("path").to_pylist())


def test_the_same_bytes_under_another_hash_seed(tmp_path: Path) -> None:
    SMALL.write(tmp_path / "here")
    script = (
        "import sys; from shotproof.worlds.shapes import ShapesWorld; "
        "ShapesWorld(classes=3, items=4, size=32).write(sys.argv[1])"
    )
    run_with_another_hash_seed(script, tmp_path / "there")
    assert digests(tmp_path / "here") == digests(tmp_path / "there")


def test_another_seed_is_another_world() -> None:
    assert ShapesWorld(seed=1).catalog().digest != ShapesWorld(seed=0).catalog().digest


def test_more_items_leave_the_first_ones_as_they_are() -> None:
    few = ShapesWorld(classes=3, items=5).attributes().to_words()
    many = ShapesWorld(classes=4, items=9).attributes().to_words()
    assert few.items() <= many.items()


def test_the_words_are_the_columns() -> None:
    world = ShapesWorld(classes=4, items=10)
    words = world.attributes().to_words()
    for row in world.catalog().table.to_pylist():
        assert words[row["item"]] == sorted(f"{row[factor]} {factor}" for factor in FACTORS)


def test_the_picture_shows_the_words(tmp_path: Path) -> None:
    catalog = ShapesWorld(classes=10, items=6).write(tmp_path)
    for path, row in zip(catalog.paths, catalog.table.to_pylist(), strict=True):
        image = np.asarray(open_image(path)).astype(int)
        frame, fill = (
            np.array(Image.new("RGB", (1, 1), colors[row[factor]]).getpixel((0, 0)))
            for factor, colors in (("frame", painter.FRAMES), ("fill", painter.FILLS))
        )
        assert (image[0] == frame).all()
        assert (image[:, -1] == frame).all()
        inside = image[8:-8, 8:-8].reshape(-1, 3)
        assert (abs(inside - fill).max(axis=1) <= 2).mean() > 0.02


def test_by_default_the_context_tells_nothing_of_the_class() -> None:
    table = ShapesWorld(classes=10, items=300).catalog().table
    for factor, values in FACTORS.items():
        pairs = list(zip(table.column("label").to_pylist(), table.column(factor).to_pylist(), strict=True))
        counts = [[pairs.count((label, value)) for value in values] for label in sorted({p[0] for p in pairs})]
        assert stats.chi2_contingency(counts).pvalue > 0.001


def test_factors_are_independent_of_each_other() -> None:
    table = ShapesWorld(classes=10, items=300).catalog().table
    columns = [table.column(factor).to_pylist() for factor in FACTORS]
    for index, first in enumerate(columns):
        for second in columns[:index]:
            assert stats.chi2_contingency(stats.contingency.crosstab(first, second).count).pvalue > 0.001


@pytest.mark.parametrize("correlation", [0.5, 1.0])
def test_correlation_ties_the_context_to_the_class(correlation: float) -> None:
    table = ShapesWorld(classes=5, items=400, correlation=correlation).catalog().table
    labels = np.array(table.column("label").to_pylist())
    for factor, values in FACTORS.items():
        column = np.array(table.column(factor).to_pylist())
        expected = correlation + (1 - correlation) / len(values)
        for label in np.unique(labels):
            most = np.unique(column[labels == label], return_counts=True)[1].max() / 400
            assert most == pytest.approx(expected, abs=0.1)


def test_training_classes_are_apart_from_the_others() -> None:
    table = ShapesWorld(classes=10, items=3, train_classes=6).catalog().table
    pairs = set(zip(table.column("label").to_pylist(), table.column("split").to_pylist(), strict=True))
    assert sorted(split for _, split in pairs) == ["test"] * 4 + ["train"] * 6


def test_shortcut_classes_have_their_own_background_and_nothing_else_is_changed(tmp_path: Path) -> None:
    plain = ShapesWorld(classes=10, items=30, size=32, train_classes=6)
    tied = replace(plain, shortcut_classes=4, tied=("background",))
    before, after = plain.catalog().table.to_pylist(), tied.catalog().table.to_pylist()
    own = {row["label"]: {other["background"] for other in after if other["label"] == row["label"]} for row in after}
    fixed = {label for label, backgrounds in own.items() if len(backgrounds) == 1}
    assert len(fixed) == 4
    assert fixed <= {row["label"] for row in after if row["split"] == "train"}
    for one, other in zip(before, after, strict=True):
        expected = {**one, "background": other["background"]} if one["label"] in fixed else one
        assert other == expected
    test = tied.write(tmp_path / "test", "test")
    assert len(test) == len(digests(tmp_path / "test")) == 4 * 30
    whole = digests(tmp_path / "whole") if plain.write(tmp_path / "whole") else {}
    assert digests(tmp_path / "test").items() <= whole.items()  # the pictures of a split are those of the whole


def test_shapes_are_distinct_and_fit_their_circle() -> None:
    shapes = [class_shape(index) for index in range(60)]
    assert len({name for name, _ in shapes}) == 60
    for _, outline in shapes:
        assert max(np.hypot(*polygon.T).max() for polygon in outline) < 1.2


def test_no_two_classes_look_alike() -> None:
    look = painter.Look("grey", "plain", "black", "heart", "white")
    pose = painter.Pose(0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0)
    pictures = [np.asarray(painter.paint(class_shape(k)[1], look, pose, 64)).astype(int) for k in range(20)]
    for index, picture in enumerate(pictures):
        for other in pictures[:index]:
            assert (abs(picture - other).max(axis=-1) > 60).mean() > 0.01


def test_the_catalog_survives_a_file(tmp_path: Path) -> None:
    catalog = SMALL.write(tmp_path / "pictures")
    catalog.write(tmp_path / "catalog.parquet")
    back = Catalog.read(tmp_path / "catalog.parquet")
    assert back.digest == catalog.digest
    assert back.record.notes["world"] == "shapes"
    assert back.record.name == "world of shapes"
    assert all(path.is_file() for path in back.paths)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 0}, "ShapesWorld: classes: expected a whole number from 1 to 10,000,000, found 0"),
        ({"items": -1}, "items: expected a whole number from 1 to 10,000,000, found -1"),
        ({"size": 8}, "size: expected a whole number from 16 to 10,000,000, found 8"),
        ({"correlation": 1.5}, "correlation: expected a number from 0 to 1, found 1.5"),
        ({"classes": 3, "train_classes": 4}, "at most 3 train_classes .* found 4"),
    ],
)
def test_impossible_worlds_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ShapesWorld(**options)


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(WriteFailed, match="cannot write"):
        SMALL.write(tmp_path / "taken")
