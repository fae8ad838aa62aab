"""The contact sheet: what was cut out, what was left out and why, readable without seeing the pictures."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.masks.cut_images import CutImage, CutSettings, find_masks
from shotproof.masks.mask_quality import MaskThresholds
from shotproof.report.pages.contact_sheet import MAX_KEPT, MAX_LEFT_OUT, write_contact_sheet
from tests.drawn_layers import draw_masked

SCRIPT = "<script>window.broken = true</script>"


def masks_of(catalog: Catalog, **thresholds: float) -> list[CutImage]:
    return find_masks(catalog, CutSettings(masks=catalog.root / "masks", thresholds=MaskThresholds(**thresholds)))


def write(path: Path, catalog: Catalog, results: list[CutImage]) -> str:
    write_contact_sheet(path, catalog, results)
    return path.read_text(encoding="utf-8")


def test_the_page_shows_what_was_kept_and_why_others_were_not(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=2)
    (tmp_path / "masks" / "0-1.png").unlink()
    results = masks_of(catalog)
    results[2] = replace(results[2], failure="small")
    (tmp_path / "1-1.png").write_bytes(b"not an image")
    results[3] = CutImage(failure="image unreadable")
    page = write(tmp_path / "sheet.html", catalog, results)
    assert "5 of 8 images have a good mask." in page
    for reason in ("image unreadable", "mask missing", "mask small"):
        assert f"Left out: {reason}, 1 image<" in page
    alternatives = [unescape(text) for text in re.findall(r'<img [^>]*alt="([^"]*)"', page)]
    assert alternatives.count("foreground of 0-0.png") == alternatives.count("background of 0-0.png") == 1
    assert "0-1.png, without a mask" in alternatives
    assert any(text.startswith("1-0.png with the outline") for text in alternatives)
    assert len(alternatives) == 3 * 5 + 2
    assert "cannot be read" in page
    assert re.search(
        r"area \d+%, 1 piece, border 0%, background \d+%<", page
    )  # no cutter made the masks, so nothing could disagree


def test_the_page_is_one_file_without_scripts(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=1)
    page = write(tmp_path / "sheet.html", catalog, masks_of(catalog))
    assert "<script" not in page
    assert "script-src &#39;none&#39;" in page
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(source.startswith(("data:image/jpeg;base64,", "#")) for source in sources)
    targets = {source[1:] for source in sources if source.startswith("#")}
    assert targets <= set(re.findall(r'id="([^"]*)"', page))


def test_names_are_no_markup(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=1)
    items = [f'{SCRIPT}"{number}' for number in range(len(catalog))]
    renamed = Catalog(catalog.table.set_column(0, "item", pa.array(items)), tmp_path)
    results = masks_of(catalog)
    results[0] = replace(results[0], failure="small")
    named = Catalog(renamed.table, tmp_path, replace(renamed.record, name=SCRIPT))
    page = write(tmp_path / "sheet.html", named, results)
    assert "<script" not in page
    assert 'alt="&lt;script&gt;' in page


def test_a_large_catalog_is_sampled_evenly(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, classes=1, items=2)
    table = pa.concat_tables([catalog.table] * 80)
    names = [f"{number:03d}" for number in range(len(table))]
    large = Catalog(table.set_column(0, "item", pa.array(names)), tmp_path)
    kept = masks_of(catalog)[0]
    results = [kept if number < 120 else replace(kept, failure="small") for number in range(160)]
    page = write(tmp_path / "sheet.html", large, results)
    shown = sorted(set(re.findall(r'alt="foreground of (\d+)"', page)))
    assert len(shown) == MAX_KEPT
    assert {shown[0], shown[-1]} == {"000", "119"}
    assert len(re.findall(r'alt="\d+ with the outline', page)) == MAX_KEPT + MAX_LEFT_OUT
    assert "20 of them, spread evenly over the catalog." in page


def test_images_that_were_not_cut_are_not_shown(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, items=1)
    results = find_masks(catalog, CutSettings(masks=tmp_path / "masks"), labels=["class0"])
    page = write(tmp_path / "sheet.html", catalog, results)
    assert "1 of 1 image have" not in page
    assert "The one image has a good mask." in page
    assert "1-0.png" not in page
