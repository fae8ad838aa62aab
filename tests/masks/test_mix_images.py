"""Images whose foregrounds are put on backgrounds of other classes, as a mapping names them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import with_changes
from shotproof.catalog.item_files import item_files
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.runtime.runtime import Runtime
from shotproof.masks.mix import expected_mixtures, mix
from shotproof.masks.mix_images import ImageMixSettings, mix_images
from shotproof.media.images import open_image
from shotproof.sounds.mapping import PairMapping
from shotproof.sounds.mix import MixSettings
from shotproof.tasks.sampler import sample
from tests.drawn_clips import draw_clips
from tests.drawn_layers import COLORS, GROUNDS, draw_masked

MAPPING = PairMapping(
    {"class0": ("class2",), "class1": ("class3",)},
    {"class0": ("class3",), "class1": ("class2",)},
    {"class0": "test", "class1": "test"},
)
ALONE = Runtime(cache=None, workers=1)


def make(catalog: Catalog, folder: Path, **settings: object) -> Catalog:
    return mix_images(catalog, MAPPING, folder, ImageMixSettings(**settings), runtime=ALONE)  # type: ignore[arg-type]


def with_masks_of(catalog: Catalog, *labels: str) -> Catalog:
    """The catalog with the masks of some classes alone."""
    masks = [
        mask if label in labels else None
        for mask, label in zip(catalog.table["mask"].to_pylist(), catalog.table["label"].to_pylist(), strict=True)
    ]
    table = catalog.table.drop_columns(["mask"]).append_column("mask", pa.array(masks, pa.string()))
    return Catalog(table, catalog.root)


def pixels_of(catalog: Catalog) -> list[np.ndarray]:
    return [np.asarray(open_image(path)).astype(int) for path in catalog.paths]


def test_each_foreground_is_on_each_of_its_backgrounds(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=3)
    mixed = make(catalog, tmp_path / "mixed")
    rows = mixed.table.to_pylist()
    assert [row["context"] for row in rows].count("class2") == 6
    assert len(rows) == 2 * 2 * 3
    pairings = {(row["label"], row["context"], row["pairing"]) for row in rows}
    assert pairings == {
        ("class0", "class2", "pair"),
        ("class1", "class3", "pair"),
        ("class0", "class3", "hard"),
        ("class1", "class2", "hard"),
    }
    assert {row["split"] for row in rows} == {"test"}
    for row, pixels in zip(rows, pixels_of(mixed), strict=True):
        label, context = int(row["label"][-1]), int(row["context"][-1])
        mask = np.asarray(Image.open(tmp_path / "masks" / row["source"]))
        assert row["plate"].startswith(str(context))
        assert np.abs(pixels[24, mask[24].nonzero()[0].mean().astype(int)] - COLORS[label]).max() <= 2
        # The background has been filled in where its own foreground was.
        assert np.abs(pixels[:4].mean((0, 1)) - GROUNDS[context]).max() < 8
    assert mixed.medium == "image"
    assert Catalog.read(tmp_path / "mixed" / "catalog.parquet").digest == mixed.digest
    # Their foregrounds are where they were, so that the mixtures can be taken apart as well.
    assert [path.exists() for path in (mixed.root / row["mask"] for row in rows)] == [True] * len(rows)


def test_clean_ones_are_on_gray_and_fewer_can_be_asked_for(tmp_path: Path) -> None:
    mixed = make(draw_masked(tmp_path, items=3), tmp_path / "mixed", clean=True, per_background=1)
    rows = mixed.table.to_pylist()
    assert sorted(row["context"] for row in rows) == ["class2"] * 2 + ["class3"] * 2 + ["clean"] * 6
    clean = [pixels for row, pixels in zip(rows, pixels_of(mixed), strict=True) if row["context"] == "clean"]
    assert all((pixels[:3] == 128).all() for pixels in clean)
    assert mixed.record.clean_value == "clean"
    assert mixed.record.mix == {"seed": 0, "per_background": 1, "clean": True}


def test_a_background_needs_no_mask_and_is_shown_whole(tmp_path: Path) -> None:
    catalog = with_masks_of(draw_masked(tmp_path, items=2), "class0", "class1")
    mixed = make(catalog, tmp_path / "mixed")
    row = next(row for row in mixed.table.to_pylist() if row["source"] == "0-0.png")
    pixels = np.asarray(Image.open(mixed.root / row["path"])).astype(int)
    plate = np.asarray(Image.open(tmp_path / row["plate"])).astype(int)
    mask = np.asarray(Image.open(tmp_path / "masks" / "0-0.png"))
    far = ~np.asarray(Image.fromarray(mask).convert("L").resize((64, 48))).astype(bool)
    far[:, 8:-8] = False
    assert (pixels[far] == plate[far]).all()


def test_the_catalog_is_known_before(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=3)
    settings = ImageMixSettings(clean=True, seed=4)
    expected = expected_mixtures(catalog, MAPPING, tmp_path / "mixed", settings)
    assert not (tmp_path / "mixed").exists()
    assert all(path.exists() for path in expected.paths)
    assert expected.digest == mix(catalog, MAPPING, tmp_path / "mixed", settings, runtime=ALONE).digest


def test_an_interrupted_call_goes_on_and_other_settings_are_refused(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path / "raw", items=2)
    mixed = make(catalog, tmp_path / "mixed")
    content = [path.read_bytes() for path in mixed.paths]
    times = [path.stat().st_mtime_ns for path in mixed.paths]
    mixed.paths[0].unlink()
    again = make(catalog, tmp_path / "mixed")
    assert [path.read_bytes() for path in again.paths] == content
    assert [path.stat().st_mtime_ns for path in again.paths][1:] == times[1:]
    with pytest.raises(InputError, match="holds mixtures with other settings: seed was 0 and is now 1"):
        make(catalog, tmp_path / "mixed", seed=1)
    mask = tmp_path / "raw" / "masks" / "0-0.png"
    Image.fromarray(~np.asarray(Image.open(mask))).save(mask)
    with pytest.raises(InputError, match="other settings: images was"):
        make(catalog, tmp_path / "mixed")


def test_what_has_no_mask_or_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=3)
    masks = catalog.table["mask"].to_pylist()
    masks[0] = ""
    table = catalog.table.set_column(catalog.table.column_names.index("mask"), "mask", pa.array(masks))
    (tmp_path / "0-1.png").unlink()
    (tmp_path / "0-2.png").write_bytes((tmp_path / "0-2.png").read_bytes()[:60])
    mixed = make(Catalog(table, tmp_path), tmp_path / "mixed")
    assert list(mixed.record.skipped) == [
        {"item": "0-0.png", "label": "class0", "reason": "no mask"},
        {"item": "0-1.png", "label": "class0", "reason": "missing or unreadable"},
    ]
    assert mixed.record.dropped == {"unreadable": 2}
    assert set(mixed.table["label"].to_pylist()) == {"class1"}
    with pytest.raises(InputError, match=r"none of the 3 images of 'class0' can be used, e\.g\. 0-0\.png: no mask"):
        make(with_masks_of(catalog, "class1"), tmp_path / "none")
    for item in range(3):
        (tmp_path / f"1-{item}.png").write_bytes(b"not an image")
    with pytest.raises(InsufficientData, match="no mixture can be made: 8 unreadable"):
        make(Catalog(table, tmp_path), tmp_path / "unreadable")


def test_masks_that_tell_nothing_are_left_out_and_named(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=3)
    for name, value in (("0-0", 0), ("2-1", 255)):
        Image.new("L", (64, 48), value).save(tmp_path / "masks" / f"{name}.png")
    mixed = make(catalog, tmp_path / "mixed")
    assert list(mixed.record.skipped) == [
        {"item": "0-0.png", "label": "class0", "reason": "mask is empty"},
        {"item": "2-1.png", "label": "class2", "reason": "mask is full: it shows no background"},
    ]
    assert not {"0-0.png"} & set(mixed.table["source"].to_pylist())
    assert not {"2-1.png"} & set(mixed.table["plate"].to_pylist())
    for item in (1, 2):
        Image.new("L", (64, 48), 0).save(tmp_path / "masks" / f"0-{item}.png")
    with pytest.raises(InputError, match=r"none of the 3 images of 'class0' can be used, e\.g\. 0-0\.png: mask is emp"):
        make(catalog, tmp_path / "none")


def test_the_mapping_and_the_settings_fit_the_catalog(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path / "raw", items=2)
    with pytest.raises(InputError, match="no image has the foreground 'class9': did you mean"):
        mix(catalog, PairMapping({"class9": ("class2",)}, {}, {}), tmp_path / "out", runtime=ALONE)
    with pytest.raises(InputError, match="mask, and no image has one"):
        make(Catalog(catalog.table.drop_columns(["mask"]), catalog.root), tmp_path / "out")
    with pytest.raises(InputError, match=r"images, .*expected sp\.masks\.ImageMixSettings"):
        mix(catalog, MAPPING, tmp_path / "out", MixSettings(dial=2))
    with pytest.raises(InputError, match=r"does not hold images: expected sp\.sounds\.MixSettings"):
        mix(draw_clips(tmp_path / "sounds", 1), MAPPING, tmp_path / "out", ImageMixSettings())
    with pytest.raises(InputError, match="per_background: expected a whole number"):
        ImageMixSettings(per_background=0)
    assert not (tmp_path / "out").exists()


def test_tasks_are_drawn_by_background(tmp_path: Path) -> None:
    mixed = make(draw_masked(tmp_path, items=6), tmp_path / "mixed", clean=True)
    for name in ("iid", "ood", "hard-ood", "clean"):
        tasks = sample(mixed, name, way=2, shot=1, query=1, tasks=5)
        assert len(tasks) == 5
        assert tasks.record.medium == "image"


def test_mixtures_are_taken_apart_by_the_same_masks(tmp_path: Path) -> None:
    mixed = make(draw_masked(tmp_path, items=2), tmp_path / "mixed")
    changed = with_changes(mixed, [(pa.array(mixed.items[:1]), pa.array(["only-foreground"]))])
    pixels = np.asarray(open_image(item_files(changed)[-1])).astype(int)
    assert (pixels[:3] == 128).all()
    assert np.abs(pixels[24, 32] - COLORS[0]).max() <= 2
