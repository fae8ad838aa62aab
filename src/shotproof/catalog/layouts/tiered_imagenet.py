"""tieredImageNet as split folders with class folders in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout
from shotproof.catalog.layouts.folder import FolderLayout
from shotproof.core.errors import InputError, did_you_mean

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class TieredImageNetLayout(Layout):
    """`train`, `val` and `test`, each with one folder per class (ImageNet's synset names)."""

    dataset = "tieredImageNet"
    about = "train, val and test folders with class folders in them"
    license = "ImageNet terms of access: non-commercial research and education"
    citation = (
        "Ren et al., Meta-Learning for Semi-Supervised Few-Shot Classification, ICLR 2018 (split); "
        "Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015 (images)"
    )

    def read(self, root: Path) -> Catalog:
        """The items of the three splits."""
        catalog = FolderLayout(split_folders=True).read(root)
        for split in sorted(set(SPLITS) - set(catalog.splits)):
            raise InputError(f"{root} has no images below '{split}'{did_you_mean(split, catalog.splits)}")
        for split in sorted(set(catalog.splits) - set(SPLITS)):
            raise InputError(f"{root}: '{split}' is not a split of tieredImageNet{did_you_mean(split, SPLITS)}")
        return catalog
