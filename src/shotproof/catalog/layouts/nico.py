"""Layouts of NICO (context folders in class folders) and NICO++ (class folders in context folders)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.item_paths import item_paths
from shotproof.core.errors import InputError
from shotproof.core.options import option

VERSIONS = {"nico": "NICO", "nico++": "NICO++"}
SUPERCLASSES = {"animal", "animals", "vehicle", "vehicles"}
DOMAINS = {"autumn", "dim", "grass", "outdoor", "rock", "water"}  # the contexts of NICO++ that are public


@dataclass(frozen=True)
class NicoLayout(Layout):
    """NICO: `[superclass/]class/context/image`; NICO++: `context/class/image`, below any folders.

    The version is recognized by the names of NICO's superclasses or NICO++'s contexts, or given by `version`. Images at
    other depths, such as NICO++'s test images without a label, are left out and counted. The split is `all`.
    """

    about = "NICO (class/context folders, also below superclasses) or NICO++ (context/class folders)"
    citation = (
        "He, Shen and Cui, Towards Non-I.I.D. Image Classification, Pattern Recognition 2021 (NICO); "
        "Zhang et al., NICO++: Towards Better Benchmarking for Domain Generalization, CVPR 2023"
    )

    example = "nico(version='nico++')"

    version: str | None = option(None, "version; None: recognized by the names of folders", choices=tuple(VERSIONS))

    def read(self, root: Path) -> Catalog:
        """Read the items, each with its class as label and its context."""
        paths, ignored, _ = item_paths(root)
        folders = [path.split("/")[:-1] for path in paths]
        version = self.version or _determine_version(root, folders)
        # Class and context are the last two folders above the image; what is above them varies.
        depth = 3 if version == "nico" and {names[0].lower() for names in folders if names} <= SUPERCLASSES else 2
        rows = [row for row, names in enumerate(folders) if len(names) >= depth]
        if not rows:
            raise InputError(f"{root} has no image {depth} folders deep, as expected of {version}")
        pairs = [folders[row][-2:] for row in rows]
        columns = {
            "item": [paths[row] for row in rows],
            "label": [pair[0] if version == "nico" else pair[1] for pair in pairs],
            "context": [pair[1] if version == "nico" else pair[0] for pair in pairs],
        }
        catalog = sorted_catalog(columns, root, version=version, ignored_files=ignored + len(paths) - len(rows))
        return replace(catalog, record=replace(catalog.record, name=VERSIONS[version]))


def _determine_version(root: Path, folders: list[list[str]]) -> str:
    """Determine the version by the names of the folders."""
    if {names[0].lower() for names in folders if names} <= SUPERCLASSES:
        return "nico"
    if {names[-2] for names in folders if len(names) >= 2} & DOMAINS:
        return "nico++"
    raise InputError(
        f"{root}: neither NICO's superclasses (animal, vehicle) nor contexts of NICO++ ({', '.join(sorted(DOMAINS))}) "
        "were found above the classes: set version='nico' (class/context) or version='nico++' (context/class)"
    )
