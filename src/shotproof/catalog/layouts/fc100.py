"""FC100: CIFAR-100, divided by superclasses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout
from shotproof.catalog.layouts.cifar_fs import IMAGES, LICENSE, SPLITS
from shotproof.catalog.layouts.folder import FolderLayout
from shotproof.core.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Fc100Layout(Layout):
    """`train`, `val` and `test` with class folders in them, which carry the published split by superclasses."""

    dataset = "FC100"
    about = "train, val and test folders with class folders in them"
    license = LICENSE
    citation = (
        "Oreshkin et al., TADAM: Task Dependent Adaptive Metric for Improved Few-Shot Learning, NeurIPS 2018 (split); "
        + IMAGES
    )

    def read(self, root: Path) -> Catalog:
        """The images of the three splits."""
        catalog = FolderLayout(split_folders=True).read(root)
        for split in sorted(set(SPLITS) ^ set(catalog.splits)):
            known = catalog.splits if split in SPLITS else SPLITS
            raise InputError(
                f"{root}: expected the folders train, val and test, see '{split}'{did_you_mean(split, known)}"
            )
        return catalog
