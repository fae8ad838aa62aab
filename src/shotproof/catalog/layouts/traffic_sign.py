"""The German traffic signs, as Meta-Dataset uses them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.class_folders import class_folders
from shotproof.catalog.layouts.published_splits import SPLIT_CITATION, checked


@dataclass(frozen=True)
class TrafficSignLayout(Layout):
    """`Final_Training/Images/00000/` to `00042/` of GTSRB; all classes are for testing, as in Meta-Dataset.

    `source` is the track: 30 frames of one sign.
    """

    dataset = "Traffic Signs"
    about = "Final_Training/Images/ of GTSRB, all 43 classes for testing as in Meta-Dataset"
    license = "not stated; published for research"
    citation = (
        "Stallkamp et al., The German Traffic Sign Recognition Benchmark, IJCNN 2011; "
        f"{SPLIT_CITATION.replace('(split)', '(all classes for testing)')}"
    )

    def read(self, root: Path) -> Catalog:
        """The images of all signs."""
        columns, ignored = class_folders(root, "Final_Training/Images")
        tracks = [item.rpartition("/")[2].partition("_")[0] for item in columns["item"]]
        columns["source"] = [f"{label}/{track}" for label, track in zip(columns["label"], tracks, strict=True)]
        columns["split"] = ["test"] * len(tracks)
        return checked(sorted_catalog(columns, root, ignored_files=ignored), None, 43, 39_209)
