"""The Describable Textures, as Meta-Dataset divides them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.class_folders import class_folders
from shotproof.catalog.layouts.published_splits import (
    SPLIT_CITATION,
    SPLIT_FILE,
    checked,
    read_class_lists,
    split_file,
    splits_of,
)
from shotproof.core.options import option


@dataclass(frozen=True)
class DtdLayout(Layout):
    """`images/TEXTURE/` and Meta-Dataset's `dtd_splits.json`."""

    dataset = "DTD"
    about = "images/TEXTURE/ of the Describable Textures, and Meta-Dataset's dtd_splits.json"
    license = "for research"
    citation = f"Cimpoi et al., Describing Textures in the Wild, CVPR 2014; {SPLIT_CITATION}"

    split_file: Path | None = option(None, SPLIT_FILE, path=True)

    def read(self, root: Path) -> Catalog:
        """The images of all textures."""
        path = split_file(root, self.split_file, "dtd_splits.json")
        columns, ignored = class_folders(root, "images")
        columns["split"] = splits_of(columns["label"], read_class_lists(path), path)
        return checked(sorted_catalog(columns, root, ignored_files=ignored), path, 7, 840)
