"""UrbanSound8K: urban sounds in its published layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, read_listing, require_files, sorted_catalog

COLUMNS = {"slice_file_name": "file", "fold": "fold", "class": "label", "fsID": "source", "salience": "salience"}


@dataclass(frozen=True)
class UrbanSound8KLayout(Layout):
    """`metadata/UrbanSound8K.csv` (slice_file_name, fold, class, fsID, salience) and the folders `audio/fold1` to 10.

    `source` is the recording (fsID) that a slice was cut from; `salience` is 1 for foreground, 2 for background. The
    folds divide every class, and few-shot splits divide the classes: the split is `all` (`splits` assigns others).
    """

    dataset = "UrbanSound8K"
    about = "metadata/UrbanSound8K.csv beside audio/fold1 to audio/fold10"
    license = "CC BY-NC 3.0"
    citation = "Salamon, Jacoby and Bello, A Dataset and Taxonomy for Urban Sound Research, ACM Multimedia 2014"

    def read(self, root: Path) -> Catalog:
        """The slices that the listing names."""
        listing = root / "metadata" / "UrbanSound8K.csv"
        table = read_listing(listing, COLUMNS)
        folders = pc.binary_join_element_wise("audio/fold", table.column("fold"), "")
        items = pc.binary_join_element_wise(folders, table.column("file"), "/")
        require_files(root, items.to_pylist(), listing, first_line=2)
        columns = {name: table.column(name) for name in ("label", "source", "fold", "salience")}
        return sorted_catalog({"item": items, **columns}, root)
