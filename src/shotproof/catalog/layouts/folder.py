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
from shotproof.core.storage.places import format_path

logger = logging.getLogger("shotproof")

IMAGES = "images"
MOST_LISTED = 5  # names in a warning


@dataclass(frozen=True)
class FolderLayout(Layout):
    """Class folders, or split folders with class folders in them; deeper folders belong to the class.

    The depth decides: if no first-level folder holds an item directly, the first level is the split, unless
    `split_folders` says otherwise. A level at which every folder is called `images` is skipped: it is neither a split
    nor a class. Hidden files and other extensions are left out and counted. Folders without items, and items that are
    not in a folder, are left out as well, with a warning that names them.
    """

    about = "class folders, or split folders with class folders in them"
    example = "folder(split_folders=False)"

    extensions: str | tuple[str, ...] = option(EXTENSIONS, "extensions of the items' files")
    split_folders: bool | None = option(None, "whether the first level is the split; None: the depth decides")

    def read(self, root: Path) -> Catalog:
        """Read the items below `root`."""
        extensions = (self.extensions,) if isinstance(self.extensions, str) else self.extensions
        paths, ignored, empty = item_paths(root, extensions)
        in_folders = [path for path in paths if "/" in path]
        loose = [path for path in paths if "/" not in path] if in_folders else []  # otherwise there are no classes
        paths = in_folders or paths
        folders = _drop_images_level([path.split("/")[:-1] for path in paths])
        label_level = int(self._has_split_folders(root, paths, folders))
        columns = {
            "item": paths,
            "label": [names[label_level] for names in folders],
            "split": [names[0] if label_level else "all" for names in folders],
        }
        return sorted_catalog(columns, root, ignored_files=ignored, **_note_left_out(root, empty, loose))

    def _has_split_folders(self, root: Path, paths: Sequence[str], folders: Sequence[list[str]]) -> bool:
        """Return whether the first level is the split. A tree that fits neither form is an error."""
        loose = [path for path, names in zip(paths, folders, strict=True) if not names]
        if loose:
            raise InputError(f"{root} contains '{min(loose)}' directly: expected a folder for each class")
        if self.split_folders is False:
            return False
        high = [path for path, names in zip(paths, folders, strict=True) if len(names) == 1]
        if high and self.split_folders:
            raise InputError(f"{root}: '{min(high)}' is in a split folder, but not in a class folder")
        deep = {names[0] for names in folders} - {names[0] for names in folders if len(names) == 1}
        if high and deep:
            raise InputError(
                f"{root} mixes depths: '{min(high)}' is directly in a first-level folder, but all files of "
                f"'{min(deep)}' are deeper: expected class folders, or split folders with class folders in them"
            )
        return not high


def _note_left_out(root: Path, empty: list[str], loose: Sequence[str]) -> dict[str, list[str]]:
    """Warn of folders without items, and of items outside folders, and return them for the record if there are any."""
    left_out = {"folders_without_items": empty, "items_without_folder": sorted(loose)}
    reasons = {"folders_without_items": "folders without items", "items_without_folder": "files in no class folder"}
    for kind, names in left_out.items():
        if names:
            more = f", ... ({len(names):,} in all)" if len(names) > MOST_LISTED else ""
            folder = format_path(os.path.normpath(root))  # as the user wrote it
            _warn_once(f"{folder}: left out {reasons[kind]}: {printable(', '.join(names[:MOST_LISTED]))}{more}")
    return {kind: names for kind, names in left_out.items() if names}


@functools.cache
def _warn_once(message: str) -> None:
    """Log a warning once, even if a command reads the same folder several times."""
    logger.warning("%s", message)


def _drop_images_level(folders: list[list[str]]) -> list[list[str]]:
    """Drop the level of folders that is `images` for every item, unless it is the only one."""
    for level in range(min(map(len, folders))):
        if all(names[level].lower() == IMAGES and len(names) > 1 for names in folders):
            return [names[:level] + names[level + 1 :] for names in folders]
    return folders
