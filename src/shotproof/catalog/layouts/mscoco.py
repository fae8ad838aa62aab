"""Layout of MS COCO as Meta-Dataset uses it: the crop of each annotated object is an image.

python -m shotproof.catalog.layouts.mscoco FOLDER    # crops the objects, once
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
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

    The crops are those of Meta-Dataset, with boxes enlarged by 1.2; `python -m shotproof.catalog.layouts.mscoco FOLDER`
    cuts them out of `train2017/`. `source` is the picture, `objects` the number of annotated objects in it. The split
    is Meta-Dataset's `mscoco_splits.json`. Objects whose crop is empty are left out and counted.
    """

    dataset = "MS COCO"
    about = "crops of the objects that instances_train2017.json annotates, and Meta-Dataset's mscoco_splits.json"
    license = "annotations CC BY 4.0; images under Flickr's terms of use"
    citation = f"Lin et al., Microsoft COCO: Common Objects in Context, ECCV 2014; {SPLIT_CITATION}"
    split_name = "mscoco_splits.json"
    test_size = (40, 151_545)

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the crops of all objects."""
        names, annotations = _read_objects(root)
        if not is_folder(root / CROPS):
            raise InputError(
                f"{root / CROPS} does not exist: python -m shotproof.catalog.layouts.mscoco {root} crops the objects"
            )
        objects = Counter(annotation["image_id"] for annotation in annotations)
        crops = set(names_below(root / CROPS))
        cropped = [annotation for annotation in annotations if f"{annotation['id']}.jpg" in crops]
        columns = {
            "item": [f"{CROPS}/{annotation['id']}.jpg" for annotation in cropped],
            "label": [names[annotation["category_id"]] for annotation in cropped],
            "source": [f"{annotation['image_id']:012}" for annotation in cropped],
            "objects": [objects[annotation["image_id"]] for annotation in cropped],
        }
        return columns, {"without_crop": len(annotations) - len(cropped)}


def write_crops(root: Path) -> int:
    """Write the crop of each annotated object to `crops/`; return the number of crops.

    Boxes are enlarged and rounded as in Meta-Dataset; existing files are kept.
    """
    _, annotations = _read_objects(root)
    (root / CROPS).mkdir(exist_ok=True)
    written = 0
    for annotation in sorted(annotations, key=itemgetter("image_id")):
        target = root / CROPS / f"{annotation['id']}.jpg"
        if target.exists():
            continue
        picture = open_image(root / IMAGES / f"{annotation['image_id']:012}.jpg")
        box = crop_box(annotation["bbox"], picture.size)
        if box[0] < box[2] and box[1] < box[3]:
            picture.crop(box).save(target, format="JPEG")
            written += 1
    return written


def crop_box(box: Sequence[float], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Enlarge a box [x, y, width, height] around its center, within the picture; return left, top, right and bottom.

    Example:
        >>> crop_box([10.0, 20.0, 31.0, 41.0], (100, 60))
        (6, 15, 45, 60)
    """
    x, y, width, height = box
    x, y = x - 0.5 * width * (SCALE - 1), y - 0.5 * height * (SCALE - 1)
    # COCO measures from the centers of pixels, crops from their corners.
    left, top = max(round(x - 0.5), 0), max(round(y - 0.5), 0)
    right, bottom = round(x + width * SCALE - 0.5) + 1, round(y + height * SCALE - 0.5) + 1
    return left, top, min(right, size[0]), min(bottom, size[1])


def _read_objects(root: Path) -> tuple[dict[int, str], list[dict[str, Any]]]:
    """Read {category: name}, and the annotations."""
    listing = root / LISTING if is_regular(root / LISTING) else root / "annotations" / LISTING
    content = read_json(listing, f"COCO's listing of objects {listing}")
    try:
        categories = field(content, "categories", list)
        names = {field(category, "id", int): field(category, "name", str) for category in categories}
        annotations = field(content, "annotations", list)
        for annotation in annotations:
            numbers = [field(annotation, name, int) for name in ("id", "image_id", "category_id")]
            box = field(annotation, "bbox", list)
            if numbers[-1] not in names or len(box) != 4 or not all(type(side) in (int, float) for side in box):
                raise TypeError("unknown category, or malformed box")
    except (KeyError, TypeError) as error:
        raise InputError(f"{listing}: expected categories and annotations in COCO's format") from error
    return names, annotations


if __name__ == "__main__":
    write_crops(Path(sys.argv[1]))
