"""miniImageNet as three CSV files beside a folder of images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, read_listing, require_files, sorted_catalog
from shotproof.core.tables import require_unique

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class MiniImageNetLayout(Layout):
    """`train.csv`, `val.csv` and `test.csv` (columns filename, label) and the folder `images`."""

    dataset = "miniImageNet"
    about = "train.csv, val.csv and test.csv (filename, label) beside an images folder"
    license = "ImageNet terms of access: non-commercial research and education"
    citation = (
        "Vinyals et al., Matching Networks for One Shot Learning, NeurIPS 2016 (data set); "
        "Ravi and Larochelle, Optimization as a Model for Few-Shot Learning, ICLR 2017 (split)"
    )

    def read(self, root: Path) -> Catalog:
        """The items that the three files list."""
        table = pa.concat_tables([_read_split(root, split) for split in SPLITS])
        require_unique(table.column("item"), f"column 'filename' of {', '.join(f'{s}.csv' for s in SPLITS)} in {root}")
        return sorted_catalog({name: table.column(name) for name in table.column_names}, root)


def _read_split(root: Path, split: str) -> pa.Table:
    path = root / f"{split}.csv"
    table = read_listing(path, {"filename": "filename", "label": "label"})
    items = pc.binary_join_element_wise("images", table.column("filename"), "/")
    require_files(root, items.to_pylist(), path, first_line=2)
    splits = pa.array([split] * table.num_rows, pa.string())
    return pa.table({"item": items, "label": table.column("label"), "split": splits})
