"""Class folders, or split folders with class folders in them."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.item_paths import EXTENSIONS, item_paths
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.printable import printable
from shotproof.core.storage.places import shown

logger = logging.getLogger("shotproof")

IMAGES = "images"
SHOWN = 5  # names in a warning


@dataclass(frozen=True)
class FolderLayout(Layout):
    """Class folders, or split folders with class folders in them; what lies deeper belongs to the class.

    The depth tells which: where no first-level folder holds an item directly, the first level is the split;
    `split_folders` says it instead. A level at which every folder is called `images` is passed over: it is neither a
    split nor a class. Hidden files and other extensions are left out and counted. Folders without items and items that
    lie beside the folders are left out as well, with a warning that names them.
    """

    about = "class folders, or split folders with class folders in them"
    example = "folder(split_folders=False)"

    extensions: str | tuple[str, ...] = option(EXTENSIONS, "how the names of items end")
    split_folders: bool | None = option(None, "whether the first level is the split; None: as the depth tells")

    def read(self, root: Path) -> Catalog:
        """Return the items below `root`."""
        extensions = (self.extensions,) if isinstance(self.extensions, str) else self.extensions
        paths, ignored, empty = item_paths(root, extensions)
        in_folders = [path for path in paths if "/" in path]
        loose = [path for path in paths if "/" not in path] if in_folders else []  # else there are no classes at all
        paths = in_folders or paths
        folders = _without_images([path.split("/")[:-1] for path in paths])
        above_label = int(self._has_split_folders(root, paths, folders))
        columns = {
            "item": paths,
            "label": [names[above_label] for names in folders],
            "split": [names[0] if above_label else "all" for names in folders],
        }
        return sorted_catalog(columns, root, ignored_files=ignored, **_left_out(root, empty, loose))

    def _has_split_folders(self, root: Path, paths: Sequence[str], folders: Sequence[list[str]]) -> bool:
        """Return whether the first level is the split; a tree that can be read neither way is an error."""
        loose = [path for path, names in zip(paths, folders, strict=True) if not names]
        if loose:
            raise InputError(f"{root} holds '{min(loose)}' directly: expected a folder for each class")
        if self.split_folders is False:
            return False
        high = [path for path, names in zip(paths, folders, strict=True) if len(names) == 1]
        if high and self.split_folders:
            raise InputError(f"{root}: '{min(high)}' is in a split folder, but in no class folder")
        deep = {names[0] for names in folders} - {names[0] for names in folders if len(names) == 1}
        if high and deep:
            raise InputError(
                f"{root} mixes depths: '{min(high)}' is in a first-level folder, but all files of '{min(deep)}' are "
                "deeper: expected class folders, or split folders with class folders in them"
            )
        return not high


def _left_out(root: Path, empty: list[str], loose: Sequence[str]) -> dict[str, list[str]]:
    """Folders without items, and items in no folder, if there are any; a warning names them."""
    found = {"folders_without_items": empty, "items_without_folder": sorted(loose)}
    why = {"folders_without_items": "they hold no item", "items_without_folder": "they lie in no class folder"}
    for what, names in found.items():
        if names:
            more = f", ... ({len(names):,} in all)" if len(names) > SHOWN else ""
            place = shown(os.path.normpath(root))  # as users name it, and not from an experiment's folder
            _warn_once(f"{place}: left out, as {why[what]}: {printable(', '.join(names[:SHOWN]))}{more}")
    return {what: names for what, names in found.items() if names}


@functools.cache
def _warn_once(message: str) -> None:
    """Warn, but not each time that a command reads the same folder."""
    logger.warning("%s", message)


def _without_images(folders: list[list[str]]) -> list[list[str]]:
    """Return the folders above each item, without a level that is `images` for every item, unless no other is left."""
    for level in range(min(map(len, folders))):
        if all(names[level].lower() == IMAGES and len(names) > 1 for names in folders):
            return [names[:level] + names[level + 1 :] for names in folders]
    return folders
