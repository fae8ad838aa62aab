"""FGVC-Aircraft, as Meta-Dataset divides it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, require_files, sorted_catalog
from shotproof.catalog.layouts.published_splits import (
    SPLIT_CITATION,
    SPLIT_FILE,
    checked,
    read_class_lists,
    split_file,
    splits_of,
)
from shotproof.core.errors import InputError
from shotproof.core.files import read_text
from shotproof.core.options import option

BOX = ("box_x", "box_y", "box_width", "box_height")


@dataclass(frozen=True)
class AircraftLayout(Layout):
    """`data/` of FGVC-Aircraft: images, `images_variant_trainval.txt`, `images_variant_test.txt`, `images_box.txt`.

    Labels are the variants; boxes become columns as in `cub`. Meta-Dataset crops images to their boxes, which takes
    away a strip of 20 pixels with the photographer's name; here images are whole.
    """

    dataset = "Aircraft"
    about = "the data folder of FGVC-Aircraft, with boxes, and Meta-Dataset's aircraft_splits.json"
    license = "non-commercial research"
    citation = f"Maji et al., Fine-Grained Visual Classification of Aircraft, arXiv 1306.5151, 2013; {SPLIT_CITATION}"

    split_file: Path | None = option(None, SPLIT_FILE, path=True)

    def read(self, root: Path) -> Catalog:
        """The images that the two listings name."""
        path = split_file(root, self.split_file, "aircraft_splits.json")
        variants: dict[str, str] = {}
        for name in ("images_variant_trainval.txt", "images_variant_test.txt"):
            listing = root / "data" / name
            lines = _lines(listing)
            for number, line in enumerate(lines, 1):
                image, space, variant = line.partition(" ")
                if not space or image in variants:
                    raise InputError(
                        f"{listing}, line {number}: expected an image, once, and its variant, found '{line}'"
                    )
                variants[image] = variant
            listed = [f"data/images/{line.partition(' ')[0]}.jpg" for line in lines]
            require_files(root, listed, listing, first_line=1)
        boxes = _boxes(root / "data" / "images_box.txt", variants)
        columns = {
            "item": [f"data/images/{image}.jpg" for image in variants],
            "label": list(variants.values()),
            "split": splits_of(variants.values(), read_class_lists(path), path),
            **{name: [boxes[image][place] for image in variants] for place, name in enumerate(BOX)},
        }
        return checked(sorted_catalog(columns, root), path, 15, 1_500)


def _lines(path: Path) -> list[str]:
    return read_text(path, str(path)).splitlines()


def _boxes(path: Path, images: dict[str, str]) -> dict[str, tuple[int, int, int, int]]:
    """{image: x, y, width, height} of lines `image xmin ymin xmax ymax`, whose ends are inside, from 1."""
    boxes: dict[str, tuple[int, int, int, int]] = {}
    for number, line in enumerate(_lines(path), 1):
        fields = line.split()
        if len(fields) != 5 or not all(field.isdecimal() for field in fields[1:]):
            raise InputError(f"{path}, line {number}: expected an image and four whole numbers, found '{line}'")
        left, top, right, bottom = map(int, fields[1:])
        boxes[fields[0]] = (left - 1, top - 1, right - left + 1, bottom - top + 1)
    missing = next((image for image in images if image not in boxes), None)
    if missing is not None:
        raise InputError(f"{path} lacks the box of image {missing}")
    return boxes
