"""The items' files below a folder."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from shotproof.core.errors import InputError
from shotproof.core.storage.files import is_folder, names_below
from shotproof.core.storage.places import in_archive, url_of
from shotproof.media.clip import SOUND_EXTENSIONS
from shotproof.media.images import IMAGE_EXTENSIONS

EXTENSIONS = (*IMAGE_EXTENSIONS, *SOUND_EXTENSIONS)
_SPLITS = re.compile(r"(?:^|[^a-z])(train|training|val|valid|validation|dev|test)(?=$|[^a-z])", re.IGNORECASE)


class ItemPaths(NamedTuple):
    """The items' files below a folder.

    paths: relative, with `/`
    others: how many other files there are; hidden files are others
    without_items: the folders that hold no item at any depth, sorted; of those within each other, the outermost; none
        of a folder at a URL or in an archive, where there are files alone
    """

    paths: list[str]
    others: int
    without_items: list[str]


def item_paths(root: Path, extensions: Iterable[str] = EXTENSIONS) -> ItemPaths:
    """Find the items' files below a folder, from one listing of each folder.

    Args:
        root: the folder
        extensions: how the names of items end, in any case, with or without the dot

    Raises:
        InputError: there is no item, or a link leads in a circle.
    """
    if not is_folder(root):
        raise InputError(f"{root} is not a folder")
    suffixes = tuple(f".{extension.lower().lstrip('.')}" for extension in extensions)
    found = list(_below(root))
    files = [path for path in found if not path.endswith("/")]
    paths = [path for path in files if _is_item(path, suffixes)]
    if not paths:
        raise InputError(f"{root} holds no file that ends in {', '.join(suffixes)} ({len(files)} others ignored)")
    holding = {""}
    for folder in {path.rpartition("/")[0] for path in paths}:
        parts = folder.split("/")
        holding.update("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    empty = (path[:-1] for path in found if path.endswith("/") and path[:-1] not in holding)
    outermost = sorted(folder for folder in empty if folder.rpartition("/")[0] in holding)
    return ItemPaths(paths, len(files) - len(paths), outermost)


def split_in_name(name: str) -> str | None:
    """Return the split that a file's name has in it as a word; None where it has none.

    Example:
        >>> split_in_name("data/train-00000-of-00005.parquet"), split_in_name("birds-000012.tar")
        ('train', None)
    """
    found = _SPLITS.findall(name)
    return found[-1].lower() if found else None


def unreadable_path(path: str | os.PathLike[str], error: OSError) -> InputError:
    """What to say of a path that the system refuses; a link that leads to itself is told as such."""
    if error.errno == errno.ELOOP:
        return InputError(f"{os.fspath(path)} is a link that leads back to itself: remove it")
    return InputError(f"{os.fspath(path)} cannot be read: {error.strerror or error}")


def _is_item(path: str, suffixes: tuple[str, ...]) -> bool:
    return path.lower().endswith(suffixes) and not any(name.startswith(".") for name in path.split("/"))


def _below(folder: Path, prefix: str = "", above: frozenset[tuple[int, int]] = frozenset()) -> Iterator[str]:
    """List what is below a folder, as relative paths with `/`, also at the end of a folder's.

    A hidden folder is one entry, not entered, and counts as a file.
    """
    if url_of(folder) or in_archive(folder):
        yield from names_below(folder)
        return
    try:
        status = folder.stat()
        entries = list(os.scandir(folder))
    except OSError as error:
        raise unreadable_path(folder, error) from error
    here = (status.st_dev, status.st_ino)
    if here in above:
        raise InputError(f"{folder} is a link to a folder that contains it: remove it")
    for entry in entries:
        relative = prefix + entry.name
        try:
            relative.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"the name of {os.fsencode(entry.path)!r} is not UTF-8: rename it") from error
        try:
            enter = entry.is_dir() and not entry.name.startswith(".")
        except OSError as error:
            raise unreadable_path(entry.path, error) from error
        if enter:
            yield f"{relative}/"
            yield from _below(folder / entry.name, f"{relative}/", above | {here})
        else:
            yield relative
