"""NICO (class folders with context folders in them) and NICO++ (context folders with class folders in them)."""

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
    """NICO: `[superclass/]class/context/image`; NICO++: `context/class/image`, whatever lies above.

    Which of the two it is, NICO's superclasses or NICO++'s contexts tell by their names; `version` says it instead.
    Images at other depths, such as NICO++'s test images without a label, are left out and counted. The split is `all`.
    """

    about = "NICO (class/context folders, also below superclasses) or NICO++ (context/class folders)"
    citation = (
        "He, Shen and Cui, Towards Non-I.I.D. Image Classification, Pattern Recognition 2021 (NICO); "
        "Zhang et al., NICO++: Towards Better Benchmarking for Domain Generalization, CVPR 2023"
    )

    example = "nico(version='nico++')"

    version: str | None = option(None, "which of the two; None: as the folders' names tell", choices=tuple(VERSIONS))

    def read(self, root: Path) -> Catalog:
        """Return the items, each with its class as label and its context."""
        paths, ignored, _ = item_paths(root)
        folders = [path.split("/")[:-1] for path in paths]
        version = self.version or _version(root, folders)
        # As deep as class and context are, counted from the image: what is above them differs.
        depth = 3 if version == "nico" and {names[0].lower() for names in folders if names} <= SUPERCLASSES else 2
        kept = [row for row, names in enumerate(folders) if len(names) >= depth]
        if not kept:
            raise InputError(f"{root} holds no image {depth} folders deep, as {version} has them")
        pairs = [folders[row][-2:] for row in kept]
        columns = {
            "item": [paths[row] for row in kept],
            "label": [pair[0] if version == "nico" else pair[1] for pair in pairs],
            "context": [pair[1] if version == "nico" else pair[0] for pair in pairs],
        }
        catalog = sorted_catalog(columns, root, version=version, ignored_files=ignored + len(paths) - len(kept))
        return replace(catalog, record=replace(catalog.record, name=VERSIONS[version]))


def _version(root: Path, folders: list[list[str]]) -> str:
    """Which of the two lies here, by the names of its folders."""
    if {names[0].lower() for names in folders if names} <= SUPERCLASSES:
        return "nico"
    if {names[-2] for names in folders if len(names) >= 2} & DOMAINS:
        return "nico++"
    raise InputError(
        f"{root}: neither NICO's superclasses (animal, vehicle) nor contexts of NICO++ ({', '.join(sorted(DOMAINS))}) "
        "were found above the classes: say which with version='nico' (class/context) or 'nico++' (context/class)"
    )
