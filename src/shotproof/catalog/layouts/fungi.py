"""FGVCx Fungi, as Meta-Dataset divides it."""

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
from shotproof.core.files import field, read_json
from shotproof.core.options import option


@dataclass(frozen=True)
class FungiLayout(Layout):
    """`train.json` and `val.json` of the FGVCx challenge, the images they name, and `fungi_splits.json`.

    Labels are `0015.Agaricus moelleri`, as Meta-Dataset spells them: some species have two numbers.
    """

    dataset = "Fungi"
    about = "train.json and val.json of FGVCx Fungi with their images, and Meta-Dataset's fungi_splits.json"
    license = "terms of the FGVCx Fungi challenge, for research"
    citation = f"Schroeder and Cui, FGVCx Fungi Classification Challenge, 2018; {SPLIT_CITATION}"

    split_file: Path | None = option(None, SPLIT_FILE, path=True)

    def read(self, root: Path) -> Catalog:
        """The images of both listings."""
        path = split_file(root, self.split_file, "fungi_splits.json")
        items: list[str] = []
        labels: list[str] = []
        for name in ("train.json", "val.json"):
            listing = root / name
            content = read_json(listing, f"the listing of the images {listing}")
            try:
                categories, annotations, images = (
                    field(content, part, list) for part in ("categories", "annotations", "images")
                )
                names = {one["id"]: f"{field(one, 'id', int):04}.{field(one, 'name', str)}" for one in categories}
                category = {field(one, "image_id", int): field(one, "category_id", int) for one in annotations}
                files = {field(one, "id", int): field(one, "file_name", str) for one in images}
                labels += [names[category[image]] for image in files]
            except (KeyError, TypeError) as error:
                raise InputError(
                    f"{listing}: expected images, annotations and categories as COCO has them, one annotation per "
                    f"image; found none for {error}"
                ) from error
            require_files(root, list(files.values()), listing, first_line=1)
            items += files.values()
        columns = {"item": items, "label": labels, "split": splits_of(labels, read_class_lists(path), path)}
        return checked(sorted_catalog(columns, root), path, 200, 13_463)
