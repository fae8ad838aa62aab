"""ESC-50: environmental sounds in its published layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, read_listing, require_files, sorted_catalog


@dataclass(frozen=True)
class Esc50Layout(Layout):
    """`meta/esc50.csv` (filename, fold, category, src_file) and the folder `audio`.

    The label is the category, `source` the recording that a clip was cut from, `fold` the published fold. The folds
    divide every class, and few-shot splits divide the classes: the split is `all` (`splits` assigns others).
    """

    dataset = "ESC-50"
    about = "meta/esc50.csv beside an audio folder"
    license = "CC BY-NC 3.0; the clips' own licenses and authors are listed in its LICENSE file"
    citation = "Piczak, ESC: Dataset for Environmental Sound Classification, ACM Multimedia 2015"

    def read(self, root: Path) -> Catalog:
        """The clips that the listing names."""
        listing = root / "meta" / "esc50.csv"
        table = read_listing(listing, {"filename": "file", "category": "label", "src_file": "source", "fold": "fold"})
        items = pc.binary_join_element_wise("audio", table.column("file"), "/")
        require_files(root, items.to_pylist(), listing, first_line=2)
        columns = {name: table.column(name) for name in ("label", "source", "fold")}
        return sorted_catalog({"item": items, **columns}, root)
