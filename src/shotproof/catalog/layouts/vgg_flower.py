"""The 102 flowers of Oxford, as Meta-Dataset divides them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

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
from shotproof.core.errors import InputError, first_line
from shotproof.core.files import require_file
from shotproof.core.options import option


@dataclass(frozen=True)
class VggFlowerLayout(Layout):
    """`jpg/image_00001.jpg` and so on, `imagelabels.mat`, and Meta-Dataset's `vgg_flower_splits.json`.

    Labels are as the split spells them: `090.canna lily`, or `090` where it has numbers only.
    """

    dataset = "VGG Flower"
    about = "jpg/ and imagelabels.mat of the 102 flowers, and Meta-Dataset's vgg_flower_splits.json"
    license = "not stated; published for research"
    citation = (
        "Nilsback and Zisserman, Automated Flower Classification over a Large Number of Classes, ICVGIP 2008; "
        f"{SPLIT_CITATION}"
    )

    split_file: Path | None = option(None, SPLIT_FILE, path=True)

    def read(self, root: Path) -> Catalog:
        """The images that have a label."""
        from scipy.io import loadmat

        path = split_file(root, self.split_file, "vgg_flower_splits.json")
        listing = root / "imagelabels.mat"
        require_file(listing, str(listing))
        try:
            numbers = np.asarray(loadmat(listing)["labels"]).ravel().astype(int)
        except Exception as error:  # SciPy raises whatever a damaged file leads it to
            raise InputError(f"{listing} cannot be read as MATLAB's file with labels: {first_line(error)}") from error
        split_of: dict[str, str] = {}
        spelled: dict[int, str] = {}
        for label, split in read_class_lists(path).items():
            number = label.partition(".")[0]
            if not number.isdecimal() or len(number) > 9:
                raise InputError(f"{path}: expected classes that begin with their number, found '{label}'")
            spelled[int(number)] = label if "." in label else f"{int(number):03}"
            split_of[spelled[int(number)]] = split
        labels = [spelled.get(int(number), f"{number:03}") for number in numbers]
        items = [f"jpg/image_{place:05}.jpg" for place in range(1, len(numbers) + 1)]
        require_files(root, items, listing, first_line=1)
        columns = {"item": items, "label": labels, "split": splits_of(labels, split_of, path)}
        return checked(sorted_catalog(columns, root), path, 16, 1_425)
