"""Class folders, or split folders with class folders in them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.errors import InputError
from shotproof.images import IMAGE_EXTENSIONS
from shotproof.sounds.clip import SOUND_EXTENSIONS


class FolderLayout(Layout):
    """Class folders, or split folders with class folders in them; what lies deeper belongs to the class.

    The depth tells which: where no first-level folder holds an item directly, the first level is the split;
    `split_folders` says it instead. Hidden files and other extensions are left out and counted.
    """

    about = "class folders, or split folders with class folders in them"

    def __init__(
        self, extensions: Sequence[str] = (*IMAGE_EXTENSIONS, *SOUND_EXTENSIONS), split_folders: bool | None = None
    ) -> None:
        chosen = [extensions] if isinstance(extensions, str) else extensions
        self.suffixes = tuple(f".{extension.lower().lstrip('.')}" for extension in chosen)
        self.split_folders = split_folders

    def read(self, root: Path) -> Catalog:
        """The items below `root`."""
        paths, ignored = self.item_paths(root)
        above_label = int(self._has_split_folders(root, paths))
        folders = [path.split("/", above_label + 1) for path in paths]
        columns = {
            "item": paths,
            "label": [names[above_label] for names in folders],
            "split": [names[0] if above_label else "all" for names in folders],
        }
        return sorted_catalog(columns, root, {"ignored_files": ignored})

    def item_paths(self, root: Path) -> tuple[list[str], int]:
        """The items' files below `root`, as relative paths with `/`, and how many other files there are."""
        if not root.is_dir():
            raise InputError(f"{root} is not a folder")
        files = list(_files_below(root))
        paths = [path for path in files if self._is_item(path)]
        if not paths:
            raise InputError(
                f"{root} holds no file that ends in {', '.join(self.suffixes)} ({len(files)} others ignored)"
            )
        return paths, len(files) - len(paths)

    def _is_item(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        return name.lower().endswith(self.suffixes) and not name.startswith(".")

    def _has_split_folders(self, root: Path, paths: list[str]) -> bool:
        """Whether the first level is the split; a tree that can be read neither way is an error."""
        loose = sorted(path for path in paths if "/" not in path)
        if loose:
            raise InputError(f"{root} holds '{loose[0]}' directly: expected a folder for each class")
        if self.split_folders is False:
            return False
        high = sorted(path for path in paths if path.count("/") == 1)
        if high and self.split_folders:
            raise InputError(f"{root}: '{high[0]}' is in a split folder, but in no class folder")
        deep = {path.split("/")[0] for path in paths} - {path.split("/")[0] for path in high}
        if high and deep:
            raise InputError(
                f"{root} mixes depths: '{high[0]}' is in a first-level folder, but all files of '{min(deep)}' are "
                "deeper: expected class folders, or split folders with class folders in them"
            )
        return not high


def _files_below(folder: Path, prefix: str = "", above: frozenset[tuple[int, int]] = frozenset()) -> Iterator[str]:
    """The files below a folder, as relative paths with `/`; a hidden folder is one entry, not entered."""
    try:
        status = folder.stat()
        entries = list(os.scandir(folder))
    except OSError as error:
        raise InputError(f"cannot list the folder {folder}: {error.strerror or error}") from error
    here = (status.st_dev, status.st_ino)
    if here in above:  # a link to a folder that contains it
        return
    for entry in entries:
        relative = prefix + entry.name
        try:
            relative.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"the name of {os.fsencode(entry.path)!r} is not UTF-8: rename it") from error
        if entry.is_dir() and not entry.name.startswith("."):
            yield from _files_below(folder / entry.name, f"{relative}/", above | {here})
        else:
            yield relative
