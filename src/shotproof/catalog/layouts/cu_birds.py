"""Caltech-UCSD Birds 200-2011, as Meta-Dataset divides it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout
from shotproof.catalog.layouts.cub import CubLayout
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
class CuBirdsLayout(Layout):
    """The official CUB_200_2011 folder with Meta-Dataset's split, `cu_birds_splits.json`; columns as in `cub`."""

    dataset = "CU Birds"
    about = "the official CUB_200_2011 folder with Meta-Dataset's cu_birds_splits.json"
    license = CubLayout.license
    citation = f"{CubLayout.citation}; {SPLIT_CITATION}"

    split_file: Path | None = option(None, SPLIT_FILE, path=True)

    def read(self, root: Path) -> Catalog:
        """The items that `images.txt` lists."""
        path = split_file(root, self.split_file, "cu_birds_splits.json")
        birds = CubLayout().read(root)
        splits = splits_of(birds.table.column("label").to_pylist(), read_class_lists(path), path)
        place = birds.table.column_names.index("split")
        table = birds.table.set_column(place, "split", pa.array(splits, pa.string()))
        return checked(Catalog(table, birds.root, birds.record), path, 30, 1_770)
