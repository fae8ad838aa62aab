"""ObjectNet: things in unusual places, from unusual sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.class_folders import class_folders
from shotproof.core.errors import InputError
from shotproof.core.files import read_json
from shotproof.core.plain_values import typed


@dataclass(frozen=True)
class ObjectNetLayout(Layout):
    """`images/CLASS/` and, where it is there, `mappings/folder_to_objectnet_label.json` for the classes' names.

    All classes are for testing. Rotations, backgrounds and viewpoints of single images are not published. Images keep
    their red border of one pixel.
    """

    dataset = "ObjectNet"
    about = "images/CLASS/ and mappings/folder_to_objectnet_label.json; for testing alone"
    license = "CC BY 4.0, with the conditions that nothing is trained on it and that copies keep their red border"
    citation = (
        "Barbu et al., ObjectNet: A Large-Scale Bias-Controlled Dataset for Pushing the Limits of Object Recognition "
        "Models, NeurIPS 2019"
    )

    def read(self, root: Path) -> Catalog:
        """The images of all classes."""
        columns, ignored = class_folders(root, "images")
        labels = columns["label"]
        columns["split"] = ["test"] * len(labels)
        mapping = root / "mappings" / "folder_to_objectnet_label.json"
        if mapping.is_file():
            names = typed(read_json(mapping, str(mapping)), Mapping[str, str], str(mapping)) or {}
            unknown = next((label for label in labels if label not in names), None)
            if unknown is not None:
                raise InputError(f"{mapping} has no name for the folder '{unknown}'")
            columns["name"] = [names[label] for label in labels]
        return sorted_catalog(columns, root, ignored_files=ignored)
