"""NICO (class folders with context folders in them) and NICO++ (context folders with class folders in them)."""

from __future__ import annotations

from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.folder import FolderLayout
from shotproof.catalog.layout import sorted_catalog
from shotproof.errors import InputError, UnknownName

VERSIONS = ("nico", "nico++")
SUPERCLASSES = {"animal", "animals", "vehicle", "vehicles"}
DOMAINS = {"autumn", "dim", "grass", "outdoor", "rock", "water"}  # the contexts of NICO++ that are public


class NicoLayout(FolderLayout):
    """NICO: `[superclass/]class/context/image`; NICO++: `context/class/image`, whatever lies above.

    Which of the two it is, NICO's superclasses or NICO++'s contexts tell by their names; `version` says it instead.
    Images at other depths, such as NICO++'s test images without a label, are left out and counted. The split is `all`.
    """

    about = "NICO (class/context folders, also below superclasses) or NICO++ (context/class folders)"
    citation = (
        "He, Shen and Cui, Towards Non-I.I.D. Image Classification, Pattern Recognition 2021 (NICO); "
        "Zhang et al., NICO++: Towards Better Benchmarking for Domain Generalization, CVPR 2023"
    )

    def __init__(self, version: str | None = None) -> None:
        super().__init__()
        if version not in (None, *VERSIONS):
            raise UnknownName("version", str(version), VERSIONS)
        self.version = version

    def read(self, root: Path) -> Catalog:
        """The items, each with its class as label and its context."""
        paths, ignored = self.item_paths(root)
        folders = [path.split("/")[:-1] for path in paths]
        version = self.version or _version(root, folders)
        # As deep as class and context are, counted from the image: what is above them differs.
        depth = 3 if version == "nico" and {names[0].lower() for names in folders if names} <= SUPERCLASSES else 2
        kept = [index for index, names in enumerate(folders) if len(names) >= depth]
        if not kept:
            raise InputError(f"{root} holds no image {depth} folders deep, as {version} has them")
        pairs = [folders[index][-2:] for index in kept]
        columns = {
            "item": [paths[index] for index in kept],
            "label": [pair[0] if version == "nico" else pair[1] for pair in pairs],
            "split": ["all"] * len(kept),
            "context": [pair[1] if version == "nico" else pair[0] for pair in pairs],
        }
        meta = {"version": version, "ignored_files": ignored + len(paths) - len(kept)}
        return sorted_catalog(columns, root, meta)


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
