from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import with_changes
from shotproof.catalog.item_files import BOX, item_files, masked_images, unreadable_files
from shotproof.changes.change import changes
from shotproof.core.errors import InputError
from tests.drawn_clips import draw_clips
from tests.drawn_layers import draw_masked


@pytest.mark.parametrize("gain", [1e308, float("nan")])
def test_a_gain_that_no_sound_can_have_is_refused(gain: float) -> None:
    columns = {"item": ["a"], "path": [""], "label": ["bell"], "split": ["test"], "foreground": ["a.wav"]}
    catalog = Catalog(pa.table({**columns, "background": ["b.wav"], "gain_db": [gain]}))
    with pytest.raises(InputError, match="catalog, column 'gain_db': expected at most 200 dB, found"):
        item_files(catalog)


def with_boxes(folder: Path, *box: float | None, names: tuple[str, ...] = BOX) -> Catalog:
    """Two masked images, of which the second has this box."""
    table = draw_masked(folder, classes=1, items=2).table
    for name, value in zip(names, box, strict=True):
        table = table.append_column(name, pa.array([0.25 if name in BOX[:2] else 0.75, value], pa.float64()))
    return Catalog(table, folder)


def test_boxes_are_read_with_the_masks(tmp_path: Path) -> None:
    images = masked_images(with_boxes(tmp_path, 0.0, 0.1, 0.9, 1.0))
    assert [image and image.box for image in images] == [(0.25, 0.25, 0.75, 0.75), (0.0, 0.1, 0.9, 1.0)]
    second = masked_images(with_boxes(tmp_path, None, None, None, None))[1]
    assert second is not None
    assert second.box is None


@pytest.mark.parametrize(
    ("box", "message"),
    [
        (
            (float("nan"), 0, 1, 1),
            "box_left nan, box_top 0, .* is not four finite numbers: .*expected four empty values",
        ),
        ((0, 0, float("inf"), 1), "box_right inf, box_bottom 1.* is not four finite numbers"),
        ((0, None, 1, 1), "box_top empty, .* is not four finite numbers"),
        ((-0.5, 0, 1, 1), "box_left -0.5, .* not inside its image: expected 0 <= box_left < box_right <= 1 and"),
        ((0, 0, 120, 96), "box_right 120, .* not inside its image"),
        ((0.6, 0, 0.4, 1), "not inside its image"),
        ((0, 0.5, 1, 0.5), "not inside its image"),
    ],
)
def test_boxes_that_are_none_are_refused_by_name(tmp_path: Path, box: tuple[float | None, ...], message: str) -> None:
    catalog = with_boxes(tmp_path, *box)
    with pytest.raises(InputError, match=rf"catalog: the box of item '0-1\.png' \(.*{message}"):
        masked_images(catalog)
    with pytest.raises(InputError, match="the box of item"):
        item_files(with_changes(catalog, [(pa.array(["0-0.png"]), pa.array(["only-background"]))]))
    item_files(with_changes(catalog, [(pa.array(["0-0.png"]), pa.array(["blur"]))]))  # which asks for no box


def test_columns_of_boxes_come_together(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it has box_left, box_top and lacks box_right, box_bottom"):
        masked_images(with_boxes(tmp_path, 0.1, 0.1, names=BOX[:2]))


def test_files_that_failed_are_found_each_once(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, classes=1, items=4)
    both = with_changes(
        catalog, [(catalog.item_column, pa.repeat(name, 4)) for name in ("only-background", "only-foreground", "blur")]
    )
    (tmp_path / "masks" / "0-0.png").unlink()
    Image.new("L", (48, 64), 255).save(tmp_path / "masks" / "0-1.png")
    (tmp_path / "0-2.png").write_bytes(b"no image")
    bad = [item for item in both.items if " @ only" in item and not item.startswith("0-3")]
    found = [path.relative_to(tmp_path).as_posix() for path in unreadable_files(both, [*bad, "0-2.png @ blur"])]
    assert found == ["masks/0-0.png", "masks/0-1.png", "0-2.png"]


def test_parts_of_mixtures_that_failed_are_found(tmp_path: Path) -> None:
    draw_clips(tmp_path, 2)
    parts = {"foreground": ["000.wav"] * 2, "background": ["001.wav", "none.wav"], "gain_db": [0.0] * 2}
    columns = {"item": ["a", "b"], "path": [""] * 2, "label": ["x"] * 2, "split": ["test"] * 2, **parts}
    assert unreadable_files(Catalog(pa.table(columns), tmp_path), ["b"]) == [tmp_path / "none.wav"]


def test_each_spelling_of_a_change_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = draw_masked(tmp_path, classes=2, items=10)
    changed = with_changes(catalog, [(catalog.item_column, pa.repeat(name, 20)) for name in ("blur", "noise")])
    parsed: list[object] = []
    make = changes.make
    monkeypatch.setattr(changes, "make", lambda spec: parsed.append(spec) or make(spec))
    assert len(item_files(changed)) == 60
    assert sorted(map(str, parsed)) == ["blur", "noise"]
