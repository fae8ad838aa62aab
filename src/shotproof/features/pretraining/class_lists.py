"""Lists of the classes that pretrained networks were trained on, and the labels that have the same names.

`imagenet.txt` has the 1,000 classes of ILSVRC 2012 in their order, one per line, each with its common names.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from importlib import resources

from shotproof.core.errors import UnknownName

IMAGENET = "imagenet"
TITLES = {IMAGENET: "ImageNet"}  # readable name of each list
_NUMBER = re.compile(r"^\d+[\W_]+")  # of a folder: `101.White_Pelican`
_BETWEEN = re.compile(r"[\s_\-]+")


def check_list(name: str) -> str:
    """Return the name of a list. Raise UnknownName if there is no such list."""
    if name not in TITLES:
        raise UnknownName("list of classes that an encoder was trained on", name, TITLES)
    return name


def shared_names(labels: Collection[str], name: str) -> list[str]:
    """Find the labels that are names of classes of a list.

    Case, underscores, dashes, a leading number and a plural s are ignored.

    Args:
        labels: labels of a catalog
        name: name of the list

    Returns:
        One name for each such label, as spelled in the list, in the order of the labels.

    Example:
        >>> shared_names(["014.Indigo_Bunting", "047.American_Goldfinch", "Hammers"], IMAGENET)
        ['indigo bunting', 'hammer']
    """
    names = _read_names(check_list(name))
    return [names[key] for label in labels if (key := _key(label)) in names]


@cache
def _read_names(name: str) -> dict[str, str]:
    """Map the key of each name of a list to the name as spelled in the list."""
    lines = (resources.files(__package__) / f"{name}.txt").read_text("utf-8").splitlines()
    return {_key(part): part for line in lines for part in line.split(", ")}


def _key(name: str) -> str:
    """Return the form in which names are compared."""
    key = _BETWEEN.sub(" ", _NUMBER.sub("", name)).strip().casefold()
    return key[:-1] if key.endswith("s") and not key.endswith("ss") else key
