"""MS COCO as Meta-Dataset uses it: every annotated object is an image of its own, cut out of the picture it is in.

python -m shotproof.catalog.layouts.mscoco FOLDER    # cuts the objects out, once
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shotproof.catalog.layouts.published import SPLIT_CITATION, Columns, SplitFileLayout
from shotproof.core.errors import InputError
from shotproof.core.storage.files import field, is_folder, is_regular, names_below, read_json
from shotproof.media.images import open_image

LISTING = "instances_train2017.json"
IMAGES, CROPS = "train2017", "crops"
SCALE = 1.2  # of boxes, as in Meta-Dataset


class MsCocoLayout(SplitFileLayout):
    """`instances_train2017.json`, in the folder or in `annotations/`, and `crops/ANNOTATION.jpg`.

    The crops are those of Meta-Dataset, boxes enlarged by 1.2; `python -m shotproof.catalog.layouts.mscoco FOLDER`
    cuts them out of `train2017/`. `source` is the picture, `objects` the number of annotated objects in it. Split by
    Meta-Dataset's `mscoco_splits.json`. Objects without a crop, which is empty, are left out and counted.
    """

    dataset = "MS COCO"
    about = "crops of the objects that instances_train2017.json annotates, and Meta-Dataset's mscoco_splits.json"
    license = "annotations CC BY 4.0; images under Flickr's terms of use"
    citation = f"Lin et al., Microsoft COCO: Common Objects in Context, ECCV 2014; {SPLIT_CITATION}"
    split_name = "mscoco_splits.json"
    test_size = (40, 151_545)

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the crops of all objects."""
        names, annotations = _objects(root)
        if not is_folder(root / CROPS):
            raise InputError(
                f"{root / CROPS} does not exist: python -m shotproof.catalog.layouts.mscoco {root} cuts the objects out"
            )
        objects = Counter(annotation["image_id"] for annotation in annotations)
        crops = set(names_below(root / CROPS))
        cut = [annotation for annotation in annotations if f"{annotation['id']}.jpg" in crops]
        columns = {
            "item": [f"{CROPS}/{one['id']}.jpg" for one in cut],
            "label": [names[one["category_id"]] for one in cut],
            "source": [f"{one['image_id']:012}" for one in cut],
            "objects": [objects[one["image_id"]] for one in cut],
        }
        return columns, {"without_crop": len(annotations) - len(cut)}


def write_crops(root: Path) -> int:
    """Cut every annotated object out of its picture into `crops/`; returns how many.

    Boxes are enlarged and rounded as in Meta-Dataset; what is there already is kept.
    """
    _, annotations = _objects(root)
    (root / CROPS).mkdir(exist_ok=True)
    written = 0
    for one in sorted(annotations, key=lambda one: one["image_id"]):
        target = root / CROPS / f"{one['id']}.jpg"
        if target.exists():
            continue
        picture = open_image(root / IMAGES / f"{one['image_id']:012}.jpg")
        box = crop_box(one["bbox"], picture.size)
        if box[0] < box[2] and box[1] < box[3]:
            picture.crop(box).save(target, format="JPEG")
            written += 1
    return written


def crop_box(box: Sequence[float], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of a box [x, y, width, height], enlarged around its middle, within the picture.

    Example:
        >>> crop_box([10.0, 20.0, 31.0, 41.0], (100, 60))
        (6, 15, 45, 60)
    """
    x, y, width, height = box
    x, y = x - 0.5 * width * (SCALE - 1), y - 0.5 * height * (SCALE - 1)
    # COCO counts from the middle of pixels, crops from their corners.
    left, top = max(round(x - 0.5), 0), max(round(y - 0.5), 0)
    right, bottom = round(x + width * SCALE - 0.5) + 1, round(y + height * SCALE - 0.5) + 1
    return left, top, min(right, size[0]), min(bottom, size[1])


def _objects(root: Path) -> tuple[dict[int, str], list[dict[str, Any]]]:
    """{category: name}, and the annotations."""
    listing = root / LISTING if is_regular(root / LISTING) else root / "annotations" / LISTING
    content = read_json(listing, f"COCO's listing of objects {listing}")
    try:
        names = {field(one, "id", int): field(one, "name", str) for one in field(content, "categories", list)}
        annotations = field(content, "annotations", list)
        for one in annotations:
            numbers = [field(one, name, int) for name in ("id", "image_id", "category_id")]
            box = field(one, "bbox", list)
            if numbers[-1] not in names or len(box) != 4 or not all(type(side) in (int, float) for side in box):
                raise TypeError("a category that is not there, or a box of another kind")
    except (KeyError, TypeError) as error:
        raise InputError(f"{listing}: expected categories and annotations, as COCO has them") from error
    return names, annotations


if __name__ == "__main__":
    write_crops(Path(sys.argv[1]))
