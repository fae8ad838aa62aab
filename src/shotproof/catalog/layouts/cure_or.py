"""CURE-OR: 100 objects in five orientations, before five backgrounds, by five devices, under 18 conditions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.class_folders import item_paths
from shotproof.core.errors import InputError

NAME = re.compile(r"([1-5])_([1-5])_([1-5])_(\d{3})_(\d{2})_([0-5])")
BACKGROUNDS = ("white", "texture living room", "texture kitchen", "3d living room", "3d office")
DEVICES = ("iPhone 6s", "HTC One X", "LG Leon", "Logitech C920", "Nikon D80")
ORIENTATIONS = ("front", "left", "back", "right", "top")
PLAIN = (
    *("none", "resize", "underexposure", "overexposure", "gaussian blur", "contrast", "dirty lens 1", "dirty lens 2"),
    "salt and pepper",
)
CHALLENGES = (*PLAIN, "grayscale", *(f"grayscale {name}" for name in PLAIN[1:]))


@dataclass(frozen=True)
class CureOrLayout(Layout):
    """Files named BACKGROUND_DEVICE_ORIENTATION_OBJECT_CHALLENGE_LEVEL.jpg, in any folders.

    The label is the object (`001` to `100`), `context` the background; `orientation`, `device`, `challenge` and `level`
    are columns. There is no published split of the objects: the split is `all`.
    """

    dataset = "CURE-OR"
    about = "files named BACKGROUND_DEVICE_ORIENTATION_OBJECT_CHALLENGE_LEVEL.jpg, in any folders"
    license = "for research, by request to the publisher (OLIVES, Georgia Institute of Technology)"
    citation = (
        "Temel, Lee and AlRegib, CURE-OR: Challenging Unreal and Real Environments for Object Recognition, ICMLA 2018"
    )

    def read(self, root: Path) -> Catalog:
        """All images."""
        paths, ignored = item_paths(root)
        parts = []
        for path in paths:
            match = NAME.fullmatch(Path(path).stem)
            if match is None or not 1 <= int(match[5]) <= len(CHALLENGES):
                raise InputError(
                    f"{root}: '{path}': expected a name such as 1_3_2_017_05_4.jpg "
                    "(background, device, orientation, object, challenge, level)"
                )
            parts.append(match.groups())
        columns = {
            "item": paths,
            "label": [one[3] for one in parts],
            "context": [BACKGROUNDS[int(one[0]) - 1] for one in parts],
            "orientation": [ORIENTATIONS[int(one[2]) - 1] for one in parts],
            "device": [DEVICES[int(one[1]) - 1] for one in parts],
            "challenge": [CHALLENGES[int(one[4]) - 1] for one in parts],
            "level": [int(one[5]) for one in parts],
        }
        return sorted_catalog(columns, root, ignored_files=ignored)
