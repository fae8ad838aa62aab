"""CIFAR-FS: CIFAR-100, its classes divided at random."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.class_folders import class_folders
from shotproof.catalog.layouts.published_splits import splits_of
from shotproof.core.errors import InputError
from shotproof.core.files import read_text

SPLITS = ("train", "val", "test")
IMAGES = "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009 (images)"
LICENSE = "not stated; published for research"


@dataclass(frozen=True)
class CifarFsLayout(Layout):
    """`data/CLASS/` and `splits/bertinetto/train.txt`, `val.txt` and `test.txt`, one class per line, as published."""

    dataset = "CIFAR-FS"
    about = "data/CLASS/ beside splits/bertinetto/train.txt, val.txt and test.txt"
    license = LICENSE
    citation = "Bertinetto et al., Meta-learning with Differentiable Closed-form Solvers, ICLR 2019 (split); " + IMAGES

    def read(self, root: Path) -> Catalog:
        """The images of the classes that the three files list."""
        folder = root / "splits" / "bertinetto"
        split_of: dict[str, str] = {}
        for split in SPLITS:
            path = folder / f"{split}.txt"
            for label in read_text(path, str(path)).split():
                if label in split_of:
                    raise InputError(f"{path}: class '{label}' is also in {split_of[label]}.txt")
                split_of[label] = split
        columns, ignored = class_folders(root, "data")
        columns["split"] = splits_of(columns["label"], split_of, folder)
        return sorted_catalog(columns, root, ignored_files=ignored)
