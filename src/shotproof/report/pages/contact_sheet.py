"""Contact sheet of masks: what was cut out of images, to be looked at, and what was left out and why."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

from shotproof.catalog.catalog import Catalog
from shotproof.changes.layers import ImageLayers
from shotproof.core.errors import UnreadableItem
from shotproof.core.runtime.runtime import current_runtime
from shotproof.core.storage.whole_files import write_text
from shotproof.masks.cut_images import CutImage
from shotproof.report.pages.album import data_uri, jpeg, shrunk
from shotproof.report.pages.render import render

MAX_KEPT, MAX_LEFT_OUT = 100, 20  # images shown: of those that are kept, and of each reason
SIDE = 128
OUTLINE = (255, 0, 140)  # rare in photographs


@dataclass(frozen=True)
class Picture:
    """Embedded image with its alternative text."""

    source: str
    width: int
    height: int
    about: str


@dataclass(frozen=True)
class ShownCut:
    """Item on the sheet; without pictures if its file cannot be read. measures: those of its mask, in words."""

    item: str
    pictures: list[Picture]
    measures: str


@dataclass(frozen=True)
class LeftOut:
    """Reason why images are left out, their number, and those that are shown."""

    name: str
    count: int
    cuts: list[ShownCut]


def write_contact_sheet(path: Path, catalog: Catalog, results: Sequence[CutImage]) -> None:
    """Write the page: images that are kept, taken apart, and images that are left out, by reason.

    Args:
        path: HTML file to write
        catalog: images that were cut
        results: their masks, [n]; an image with neither a mask nor a failure was not cut, and is not shown
    """
    kept = [row for row, result in enumerate(results) if result.failure is None and result.png]
    rows_by_reason: dict[str, list[int]] = {}
    for row, result in enumerate(results):
        if result.failure is not None:
            rows_by_reason.setdefault(result.reason, []).append(row)
    shown = {"": _spread(kept, MAX_KEPT)}
    shown |= {reason: _spread(rows, MAX_LEFT_OUT) for reason, rows in sorted(rows_by_reason.items())}
    cuts: dict[str, list[ShownCut]] = {}
    with current_runtime().progress_bar("thumbnails", sum(map(len, shown.values()))) as advance:
        for reason, rows in shown.items():
            cuts[reason] = []
            for row in rows:
                cuts[reason].append(_show(catalog.items[row], catalog.paths[row], results[row]))
                advance(1)
    name = catalog.record.name
    context = {
        "title": f"Foregrounds of {name}" if name else "Foregrounds",
        "medium": "image",
        "n_images": len(kept) + sum(map(len, rows_by_reason.values())),
        "n_kept": len(kept),
        "kept": cuts.pop(""),
        "reasons": [LeftOut(reason, len(rows_by_reason[reason]), of_reason) for reason, of_reason in cuts.items()],
    }
    write_text(path, render("contact_sheet.html", context, has_script=False))


def _spread(rows: Sequence[int], most: int) -> list[int]:
    """Choose at most this many rows, spread evenly."""
    if len(rows) <= most:
        return list(rows)
    return [rows[place] for place in np.linspace(0, len(rows) - 1, most).round().astype(int)]


def _show(item: str, path: Path, result: CutImage) -> ShownCut:
    """Draw an image with the outline of its mask and, if it is kept, its foreground and background alone."""
    try:
        image = shrunk(path, SIDE)
    except UnreadableItem:
        return ShownCut(item, [], "")
    if not result.png:
        return ShownCut(item, [_picture(image, f"{item}, without a mask")], "")
    mask_image = Image.open(io.BytesIO(result.png)).convert("L").resize(image.size, Image.Resampling.BILINEAR)
    mask, pixels = np.asarray(mask_image) > 127, np.asarray(image)
    pictures = [_picture(_outlined(pixels, mask), f"{item} with the outline of its mask")]
    if result.failure is None:
        layers = ImageLayers(pixels, mask, result.box)
        pictures += [
            _picture(Image.fromarray(layers.only_foreground()), f"foreground of {item}"),
            _picture(Image.fromarray(layers.only_background()), f"background of {item}"),
        ]
    return ShownCut(item, pictures, "" if result.failure is None else _describe(result))


def _outlined(pixels: npt.NDArray[np.uint8], mask: npt.NDArray[np.bool_]) -> Image.Image:
    """Draw the outline of a mask on an image."""
    grown = np.asarray(Image.fromarray(mask).convert("L").filter(ImageFilter.MaxFilter(5))) > 0
    return Image.fromarray(np.where((grown & ~mask)[..., None], np.array(OUTLINE, np.uint8), pixels))


def _describe(result: CutImage) -> str:
    """Describe the measures of a mask in words."""
    return "" if result.quality is None else result.quality.words


def _picture(image: Image.Image, about: str) -> Picture:
    return Picture(data_uri("image/jpeg", jpeg(image)), *image.size, about)
