from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from shotproof.catalog.catalog import MASK, Catalog
from shotproof.catalog.changed_catalog import with_changes
from shotproof.catalog.item_files import BOX, item_files
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.options import option
from shotproof.core.records import Maker
from shotproof.core.runtime.runtime import Runtime
from shotproof.masks import cut_images
from shotproof.masks.cut_images import SIDE, CutSettings, cut
from shotproof.masks.cutter import Cutter, Pixels, cutters
from shotproof.media.box import Box
from shotproof.media.images import open_image
from shotproof.media.mask_file import Mask
from tests.drawn_clips import draw_clips
from tests.drawn_layers import disc, picture
from tests.masks.test_grabcut import overlap

RED, GREEN = (210, 40, 40), (40, 130, 60)
NO_CACHE = Runtime(cache=None, workers=1)


@dataclass(frozen=True)
class CountingCutter(Cutter):
    """Cuts what is red, and counts how often it was asked."""

    about = "for tests: what is red"
    calls: ClassVar[list[Box | None]] = []
    limit: ClassVar[int | None] = None  # calls after which somebody interrupts

    least: int = option(120, "red from which a pixel is foreground")

    def cut(self, pixels: Pixels, box: Box | None) -> Mask:
        if len(self.calls) == self.limit:
            raise KeyboardInterrupt
        self.calls.append(box)
        assert min(pixels.shape[:2]) == SIDE
        return np.asarray(pixels[..., 0] > self.least)


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    """The counting cutter, registered."""
    cutters.register("counting", CountingCutter)
    CountingCutter.calls.clear()
    CountingCutter.limit = None
    yield
    cutters.unregister("counting")


def draw(folder: Path, count: int = 5, **columns: object) -> Catalog:
    """Pictures of red discs in a folder of their class, each at another place."""
    names = [f"class{number % 2}/{number}.png" for number in range(count)]
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(true_mask(number), RED, GREEN, 20, number)).save(folder / name)
    table = {"item": names, "path": names, "label": [name[:6] for name in names], "split": ["test"] * count}
    return Catalog(pa.table({**table, **columns}), folder)


def true_mask(number: int) -> Mask:
    return disc(48, 64, 0.28, across=0.4 + 0.04 * number)


def settings(**options: object) -> CutSettings:
    return CutSettings(**{"cutter": "counting", **options})  # type: ignore[arg-type]


def test_a_cut_catalog_has_masks_and_their_measures(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images")
    masked = cut(catalog, tmp_path / "cut", settings(), runtime=NO_CACHE)
    assert masked.items == catalog.items
    again = Catalog.read(tmp_path / "cut" / "catalog.parquet")
    assert again.digest == masked.digest
    assert again.paths[0].samefile(catalog.paths[0])
    for number, mask in enumerate(again.table.column(MASK).to_pylist()):
        pixels = np.asarray(open_image(tmp_path / "cut" / mask).convert("L").resize((64, 48))) > 127
        assert overlap(pixels, true_mask(number)) > 0.9
    assert again.table.column("mask_area")[0].as_py() == pytest.approx(true_mask(0).mean(), abs=0.02)
    assert again.table.column("mask_pieces").to_pylist() == [1] * 5
    assert again.record.notes["cutter"] == {"cutter": "counting"}
    assert not again.record.dropped
    assert again.record.sources["catalog"].digest == catalog.digest
    both = with_changes(again, [(again.item_column, pa.repeat("only-background", 5))])
    for file in item_files(both)[5:]:
        assert np.asarray(open_image(file))[..., 0].max() < 120  # type: ignore[arg-type]


def test_a_second_cut_cuts_nothing_anew(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images")
    runtime = Runtime(cache=tmp_path / "cache", workers=1)
    first = cut(catalog, tmp_path / "cut", settings(), runtime=runtime)
    assert len(CountingCutter.calls) == 2 * len(catalog)  # each image and its mirror image
    second = cut(catalog, tmp_path / "elsewhere", settings(), runtime=runtime)
    assert len(CountingCutter.calls) == 2 * len(catalog)
    assert second.digest == first.digest
    cut(catalog, tmp_path / "cut", settings(cutter="counting(least=100)"), runtime=runtime)
    assert len(CountingCutter.calls) == 4 * len(catalog)
    Image.fromarray(picture(true_mask(2), RED, GREEN, 20, 99)).save(catalog.paths[0])
    cut(catalog, tmp_path / "cut", settings(), runtime=runtime)
    assert len(CountingCutter.calls) == 4 * len(catalog) + 2


def test_masks_of_another_version_are_cut_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = draw(tmp_path / "images", 2)
    runtime = Runtime(cache=tmp_path / "cache", workers=1)
    for version, calls in ((1, 4), (1, 4), (2, 8)):
        monkeypatch.setattr(cut_images, "_VERSION", version)
        cut(catalog, tmp_path / "cut", settings(), runtime=runtime)
        assert len(CountingCutter.calls) == calls
    # A default that changes in a later version is part of the key as well.
    assert "120" in CountingCutter().fingerprint


def test_copies_are_cut_once(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images", 2)
    catalog.paths[1].write_bytes(catalog.paths[0].read_bytes())
    assert len(cut(catalog, tmp_path / "cut", settings(), runtime=NO_CACHE)) == 2
    assert len(CountingCutter.calls) == 2


def test_an_interrupted_cut_resumes(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images", 12)
    runtime = Runtime(cache=tmp_path / "cache", workers=1)
    CountingCutter.limit = 20
    with pytest.raises(KeyboardInterrupt):
        cut(catalog, tmp_path / "cut", settings(), runtime=runtime)
    assert not (tmp_path / "cut" / "catalog.parquet").exists()
    CountingCutter.limit = None
    CountingCutter.calls.clear()
    resumed = cut(catalog, tmp_path / "cut", settings(), runtime=runtime)
    assert 4 <= len(CountingCutter.calls) <= 4 + 2 * 4  # the rest, and a chunk at most
    assert resumed.digest == cut(catalog, tmp_path / "whole", settings(), runtime=NO_CACHE).digest


def test_workers_cut_the_same(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images", 3)
    digests = [
        cut(catalog, tmp_path / str(n), CutSettings("grabcut"), runtime=Runtime(cache=None, workers=n)).digest
        for n in (1, 2)
    ]
    assert digests[0] == digests[1]


def test_bad_masks_are_left_out_counted_and_named(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images", 5)
    Image.new("RGB", (64, 48), GREEN).save(catalog.paths[0])
    Image.new("RGB", (64, 48), RED).save(catalog.paths[1])
    Image.fromarray(picture(disc(48, 64, 0.05), RED, GREEN, 0, 0)).save(catalog.paths[2])
    catalog.paths[3].write_bytes(b"no image")
    masked = cut(catalog, tmp_path / "cut", settings(), runtime=NO_CACHE)
    assert masked.items == catalog.items[4:]
    assert dict(masked.record.dropped) == {"empty": 1, "full": 1, "image unreadable": 1, "small": 1}
    reasons = {skipped["item"]: skipped["reason"] for skipped in masked.record.skipped}
    expected = ["mask empty", "mask full", "mask small", "image unreadable"]
    assert [reasons[item] for item in catalog.items[:4]] == expected
    message = "none of 4 images has a good mask: 1 empty, 1 full, 1 image unreadable, 1 small"
    with pytest.raises(InsufficientData, match=message):
        cut(catalog.filter([True] * 4 + [False]), tmp_path / "none", settings(), runtime=NO_CACHE)


def test_images_of_other_classes_are_kept_without_a_mask(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images", 4)
    masked = cut(catalog, tmp_path / "cut", settings(), labels=["class1"], runtime=NO_CACHE)
    assert masked.items == catalog.items
    assert [mask is not None for mask in masked.table.column(MASK).to_pylist()] == [False, True, False, True]
    assert len(CountingCutter.calls) == 2 * 2


def test_masks_of_others_are_read_from_a_folder(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images", 7)
    masks = tmp_path / "masks"
    for number, item in enumerate(catalog.items):
        (masks / item).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(true_mask(number)).save(masks / item)
    (masks / catalog.items[0]).unlink()
    Image.new("L", (64, 48), 0).save(masks / catalog.items[1])
    Image.new("L", (64, 48), 255).save(masks / catalog.items[2])
    (masks / catalog.items[3]).write_bytes(b"no image")
    (masks / catalog.items[4]).rename((masks / catalog.items[4]).with_suffix(".gif.png"))
    Image.fromarray(true_mask(4)).save((masks / catalog.items[4]).with_suffix(".bmp"))
    masked = cut(catalog, tmp_path / "cut", CutSettings(masks=masks), runtime=NO_CACHE)
    assert masked.items == catalog.items[4:]
    assert dict(masked.record.dropped) == {"empty": 1, "full": 1, "missing": 1, "unreadable": 1}
    assert masked.record.notes["cutter"] == {"masks": "masks"}
    for number, mask in zip((4, 5, 6), masked.table.column(MASK).to_pylist(), strict=True):
        saved = np.asarray(open_image(tmp_path / "cut" / mask).convert("L")) > 127
        np.testing.assert_array_equal(saved, true_mask(number))


def test_a_flat_folder_of_masks_does_for_names_that_are_unique(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images", 3)
    names = ["class0/0.png", "class1/0.png", "class0/2.png"]
    catalog = Catalog(catalog.table.set_column(0, "item", pa.array(names)), catalog.root)
    (tmp_path / "masks").mkdir()
    for number in (0, 2):
        Image.fromarray(true_mask(number)).save(tmp_path / "masks" / f"{number}.png")
    masked = cut(catalog, tmp_path / "cut", CutSettings(masks=tmp_path / "masks"), runtime=NO_CACHE)
    assert masked.items == ["class0/2.png"]
    assert dict(masked.record.dropped) == {"missing": 2}


def test_a_folder_of_masks_gives_the_same_masks_on_any_file_system(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images", 3)
    names = ["birds/bird_v1.2", "birds/bird_v1.3", "other.jpg"]
    catalog = Catalog(catalog.table.set_column(0, "item", pa.array(names)), catalog.root)
    folder = tmp_path / "masks"
    for number, name in enumerate(("birds/bird_v1.2.png", "birds/bird_v1.3.PNG", "other.tiff")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(true_mask(number)).save(folder / name)
    Image.fromarray(true_mask(4)).save(folder / "birds" / "bird_v1.png")  # of no item
    (folder / "other").mkdir()  # neither folders nor files that are no images are masks
    (folder / "other.txt").write_text("no mask")
    (folder / "other.json").write_text("{}")
    masked = cut(catalog, tmp_path / "cut", CutSettings(masks=folder), runtime=NO_CACHE)
    assert masked.items == names
    for number, mask in enumerate(masked.table.column(MASK).to_pylist()):
        saved = np.asarray(open_image(tmp_path / "cut" / mask).convert("L")) > 127
        np.testing.assert_array_equal(saved, true_mask(number))
    Image.fromarray(true_mask(0)).save(folder / "other.png")
    with pytest.raises(InputError, match=r"several masks for item 'other\.jpg', other\.png and other\.tiff: keep one"):
        cut(catalog, tmp_path / "cut", CutSettings(masks=folder), runtime=NO_CACHE)


def save_masks(folder: Path, catalog: Catalog, *masks: Image.Image) -> Path:
    """A folder of masks, named as the items are."""
    for item, mask in zip(catalog.items, masks, strict=True):
        (folder / item).parent.mkdir(parents=True, exist_ok=True)
        mask.save(folder / item)
    return folder


def test_masks_of_another_size_are_taken_and_of_another_shape_left_out(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images", 4)
    sizes = [(48, 64), (24, 32), (96, 128), (64, 48)]
    masks = save_masks(tmp_path / "masks", catalog, *(Image.fromarray(disc(*size)) for size in sizes))
    masked = cut(catalog, tmp_path / "cut", CutSettings(masks=masks), runtime=NO_CACHE)
    assert masked.items == catalog.items[:3]
    assert dict(masked.record.dropped) == {"of another shape": 1}
    assert masked.record.skipped == ({"item": "class1/3.png", "label": "class1", "reason": "mask of another shape"},)
    both = with_changes(masked, [(masked.item_column, pa.repeat("only-foreground", 3))])
    assert [open_image(file).size for file in item_files(both)[3:]] == [(64, 48)] * 3
    with pytest.raises(InsufficientData, match="none of 1 image has a good mask: 1 of another shape"):
        cut(catalog.filter([False] * 3 + [True]), tmp_path / "none", CutSettings(masks=masks), runtime=NO_CACHE)
    with pytest.raises(InputError, match=r"masks: folder .*nowhere does not exist"):
        cut(catalog, tmp_path / "cut", CutSettings(masks=tmp_path / "nowhere"), runtime=NO_CACHE)


def test_masks_of_labels_and_in_alpha_are_read(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images", 3)
    zero_or_one = Image.fromarray(true_mask(0).astype(np.uint8))
    labels = Image.fromarray(3 * true_mask(1).astype(np.uint8), "P")
    labels.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0])
    alpha = Image.new("RGBA", (64, 48), "white")
    alpha.putalpha(Image.fromarray(true_mask(2)).convert("L"))
    masks = save_masks(tmp_path / "masks", catalog, zero_or_one, labels, alpha)
    masked = cut(catalog, tmp_path / "cut", CutSettings(masks=masks), runtime=NO_CACHE)
    assert masked.items == catalog.items
    for number, mask in enumerate(masked.table.column(MASK).to_pylist()):
        saved = np.asarray(open_image(tmp_path / "cut" / mask).convert("L")) > 127
        np.testing.assert_array_equal(saved, true_mask(number))


def test_masks_of_a_folder_are_held_against_the_boxes_and_agree_with_nothing(tmp_path: Path) -> None:
    """Nobody has cut them, so that there is no mask of the mirrored image."""
    catalog = draw(tmp_path / "images", 2, **boxes((24, 0, 40, 48), (0, 0, 20, 48)))
    masks = save_masks(tmp_path / "masks", catalog, *(Image.fromarray(disc(48, 64, 0.25, 0.8)) for _ in range(2)))
    masked = cut(catalog, tmp_path / "cut", CutSettings(masks=masks), runtime=NO_CACHE)
    assert dict(masked.record.dropped) == {"fills little of its box": 1}
    assert masked.items == catalog.items[:1]
    assert masked.table.column("mask_agreement").to_pylist() == [None]
    assert masked.table.column("mask_box_area")[0].as_py() == pytest.approx(disc(48, 64, 0.25, 0.8)[:, 24:].mean())


def boxes(*rows: tuple[float | None, ...]) -> dict[str, pa.Array]:
    """Columns of boxes: left, top, width and height in pixels."""
    names = ("box_x", "box_y", "box_width", "box_height")
    return {name: pa.array(values, pa.float64()) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


def test_boxes_become_shares_of_the_image(tmp_path: Path) -> None:
    columns = boxes((16, 12, 32, 24), (None, None, None, None))
    masked = cut(draw(tmp_path / "images", 2, **columns), tmp_path / "cut", settings(), runtime=NO_CACHE)
    assert [masked.table.column(name).to_pylist() for name in BOX] == [
        [0.25, None],
        [0.25, None],
        [0.75, None],
        [0.75, None],
    ]
    assert CountingCutter.calls == [
        (0.25, 0.25, 0.75, 0.75),
        (0.25, 0.25, 0.75, 0.75),
        None,
        None,
    ]


def test_boxes_of_larger_images_are_scaled(tmp_path: Path) -> None:
    """They were drawn in images of 640 pixels."""
    columns = boxes((160, 120, 320, 240), (160, 120, 480, 360))
    catalog = draw(tmp_path / "images", 2, **columns)
    cut(catalog, tmp_path / "cut", settings(box_side=640), runtime=NO_CACHE)
    assert CountingCutter.calls[0] == pytest.approx((0.25, 0.25, 0.75, 0.75))
    assert CountingCutter.calls[2] == pytest.approx((0.25, 0.25, 1, 1))


def as_cub(catalog: Catalog, *sizes: tuple[int, int]) -> Catalog:
    """The catalog, read by the layout of CUB, with files of these sizes."""
    for path, size in zip(catalog.paths, sizes, strict=True):
        with Image.open(path) as image:
            image.resize(size).save(path)
    return Catalog(catalog.table, catalog.root, replace(catalog.record, layout=Maker("cub", "cub")))


def test_published_images_of_cub_that_are_smaller_than_most_have_the_boxes_as_they_are(tmp_path: Path) -> None:
    columns = boxes((125, 75, 250, 225), (100, 75, 200, 150))
    cut(as_cub(draw(tmp_path, 2, **columns), (500, 375), (400, 300)), tmp_path / "cut", settings(), runtime=NO_CACHE)
    assert CountingCutter.calls[0] == pytest.approx((0.25, 0.2, 0.75, 0.8))
    assert CountingCutter.calls[2] == pytest.approx((0.25, 0.25, 0.75, 0.75))


def test_boxes_of_cub_are_scaled_if_its_images_were(tmp_path: Path) -> None:
    columns = boxes((125, 75, 250, 225), (75, 125, 225, 250))
    catalog = as_cub(draw(tmp_path, 2, **columns), (200, 150), (96, 128))
    cut(catalog, tmp_path / "cut", settings(), runtime=NO_CACHE)
    assert CountingCutter.calls[0] == pytest.approx((0.25, 0.2, 0.75, 0.8))
    assert CountingCutter.calls[2] == pytest.approx((0.2, 0.25, 0.8, 0.75))


def test_boxes_outside_of_the_image_are_refused_with_a_hint(tmp_path: Path) -> None:
    for number, row in enumerate([(40, 10, 30, 20), (-9, 0, 20, 20), (0, 0, 0, 20), (0, 30, 20, 30)]):
        catalog = draw(tmp_path / str(number), 2, **boxes((16, 12, 32, 24), row))
        with pytest.raises(InputError, match=r"the box of item 'class1/1\.png' .* of 64 x 48 pixels: .*set box_side"):
            cut(catalog, tmp_path / "cut", settings(), runtime=NO_CACHE)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e308, None])
@pytest.mark.parametrize("place", range(4))
def test_boxes_that_are_no_numbers_are_refused_by_name(tmp_path: Path, value: float | None, place: int) -> None:
    row: list[float | None] = [16, 12, 32, 24]
    row[place] = value
    catalog = draw(tmp_path / "images", 2, **boxes((16, 12, 32, 24), tuple(row)))
    with pytest.raises(InputError, match=r"the box of item 'class1/1\.png' .*(expected four empty values|box_side)"):
        cut(catalog, tmp_path / "cut", settings(), runtime=NO_CACHE)


def test_columns_of_boxes_come_together(tmp_path: Path) -> None:
    columns = boxes((16, 12, 32, 24), (16, 12, 32, 24))
    catalog = draw(tmp_path / "images", 2, **{name: columns[name] for name in ("box_x", "box_y")})
    with pytest.raises(InputError, match="it has box_x, box_y and lacks box_width, box_height"):
        cut(catalog, tmp_path / "cut", settings(), runtime=NO_CACHE)
    with pytest.raises(InputError, match="column 'box_x': expected numbers, found string"):
        cut(
            draw(tmp_path / "images", 2, **{**columns, "box_x": ["a", "b"]}),
            tmp_path / "cut",
            settings(),
            runtime=NO_CACHE,
        )


def test_boxes_of_turned_photos_are_those_of_the_upright_image(tmp_path: Path) -> None:
    catalog = draw(tmp_path / "images", 1, **boxes((12, 8, 24, 48)))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn clockwise: the file has 64 x 48 pixels, the image 48 x 64
    Image.new("RGB", (64, 48), RED).save(catalog.paths[0], "JPEG", exif=exif)
    with pytest.raises(InsufficientData, match="1 full"):
        cut(catalog, tmp_path / "cut", settings(), runtime=NO_CACHE)
    assert CountingCutter.calls[0] == pytest.approx((0.25, 0.125, 0.75, 0.875))


@pytest.mark.parametrize("has_boxes", [True, False])
def test_grabcut_without_any_box_says_so_once(
    tmp_path: Path, has_boxes: bool, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [(8, 8, 48, 32) if has_boxes else (None,) * 4, (None,) * 4]
    catalog = draw(tmp_path / "images", 2, **boxes(*rows))
    with caplog.at_level(logging.INFO, "shotproof"):
        cut(catalog, tmp_path / "cut", CutSettings("grabcut(iterations=1)"), runtime=NO_CACHE)
        cut(catalog, tmp_path / "cut", settings(), runtime=NO_CACHE)  # which needs none
    assert caplog.text.count("no boxes (columns box_x, box_y, box_width, box_height)") == (not has_boxes)


def test_sounds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cut: expected images, found sounds"):
        cut(draw_clips(tmp_path, 1), tmp_path / "cut", runtime=NO_CACHE)
