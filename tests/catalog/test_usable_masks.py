from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from shotproof.catalog.catalog import MASK, Catalog
from shotproof.catalog.usable_masks import unusable_masks, with_usable_masks
from shotproof.core.errors import UnreadableItem
from shotproof.core.runtime.runtime import Runtime
from tests.drawn_clips import draw_clips
from tests.drawn_images import draw_catalog
from tests.drawn_layers import draw_masked

NO_CACHE = Runtime(cache=None, workers=1)


def damaged(folder: Path) -> Catalog:
    """Eight images: five masks that cannot be used in a way each, one that can, one image with none, one unreadable."""
    catalog = draw_masked(folder, classes=2, items=4)
    masks = folder / "masks"
    (masks / "0-0.png").unlink()
    (masks / "0-1.png").write_bytes((masks / "0-1.png").read_bytes()[:50])
    Image.new("L", (48, 64), 255).save(masks / "0-2.png")
    Image.new("L", (64, 48), 0).save(masks / "0-3.png")
    Image.new("L", (64, 48), 255).save(masks / "1-0.png")
    (folder / "1-3.png").write_bytes(b"no image")
    names = catalog.table.column(MASK).to_pylist()
    names[6] = None
    return Catalog(catalog.table.set_column(catalog.table.column_names.index(MASK), MASK, pa.array(names)), folder)


@pytest.mark.parametrize("workers", [1, 2])
def test_each_way_not_to_be_usable_is_told_with_the_file(tmp_path: Path, workers: int) -> None:
    unusable = unusable_masks(damaged(tmp_path), runtime=Runtime(cache=None, workers=workers))
    reasons = {item: mask.reason.replace(f"{tmp_path}/", "") for item, mask in unusable.items()}
    assert list(reasons) == ["0-0.png", "0-1.png", "0-2.png", "0-3.png", "1-0.png"]
    assert reasons["0-0.png"] == "mask masks/0-0.png does not exist"
    assert reasons["0-1.png"].startswith("mask masks/0-1.png cannot be read: ")
    assert reasons["0-2.png"] == "mask masks/0-2.png has 48 x 64 pixels, which is not the shape of 0-2.png (64 x 48)"
    assert reasons["0-3.png"] == "mask masks/0-3.png is empty"
    assert reasons["1-0.png"] == "mask masks/1-0.png is full: it shows no background"
    assert unusable["0-3.png"].file == tmp_path / "masks" / "0-3.png"


def test_images_with_unusable_masks_are_refused_or_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    catalog = damaged(tmp_path)
    with pytest.raises(UnreadableItem, match=r"5 masks of 8 images cannot be used: .*0-0\.png does not.*--skip-bad"):
        with_usable_masks(catalog, runtime=NO_CACHE)
    with caplog.at_level(logging.WARNING, "shotproof"):
        kept = with_usable_masks(catalog, "skip", runtime=NO_CACHE)
    assert kept.items == catalog.items[5:]
    assert kept.digest != catalog.digest
    assert "5 masks of 8 images cannot be used" in caplog.text
    assert with_usable_masks(kept, runtime=NO_CACHE) is kept
    with pytest.raises(UnreadableItem, match="4 masks of 4 images cannot be used"):
        with_usable_masks(catalog.filter(np.arange(8) < 4), "skip", runtime=NO_CACHE)


def test_a_mask_of_several_images_is_named_once_and_long_lists_are_cut(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, classes=3, items=5)
    index = catalog.table.column_names.index(MASK)
    shared = Catalog(catalog.table.set_column(index, MASK, pa.array(["masks/none.png"] * 15)), tmp_path)
    with pytest.raises(UnreadableItem) as caught:
        with_usable_masks(shared, runtime=NO_CACHE)
    assert str(caught.value).count("none.png") == 1
    names = [f"masks/none{number}.png" for number in range(15)]
    with pytest.raises(UnreadableItem, match=r"none9\.png does not exist and 5 more; repair"):
        with_usable_masks(Catalog(catalog.table.set_column(index, MASK, pa.array(names)), tmp_path), runtime=NO_CACHE)


def test_catalogs_without_masks_have_no_unusable_ones(tmp_path: Path) -> None:
    for catalog in (draw_catalog(tmp_path / "images", 2), draw_clips(tmp_path / "sounds", 1)):
        assert unusable_masks(catalog, runtime=NO_CACHE) == {}
        assert with_usable_masks(catalog, runtime=NO_CACHE) is catalog
