"""Search for the items' files below a folder."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from shotproof.core.errors import InputError
from shotproof.core.storage.files import is_folder, names_below
from shotproof.core.storage.places import split_archive_path, url_of
from shotproof.media.clip import SOUND_EXTENSIONS
from shotproof.media.images import IMAGE_EXTENSIONS

EXTENSIONS = (*IMAGE_EXTENSIONS, *SOUND_EXTENSIONS)
_SPLITS = re.compile(r"(?:^|[^a-z])(train|training|val|valid|validation|dev|test)(?=$|[^a-z])", re.IGNORECASE)


class ItemPaths(NamedTuple):
    """Files of the items below a folder.

    paths: relative paths, with `/`
    others: number of other files, including hidden ones
    without_items: the outermost folders that hold no item at any depth, sorted; empty for a URL or an archive, which
        list files alone
    """

    paths: list[str]
    others: int
    without_items: list[str]


def item_paths(root: Path, extensions: Iterable[str] = EXTENSIONS) -> ItemPaths:
    """Find the items' files below a folder, from one listing of each folder.

    Args:
        root: the folder
        extensions: extensions of the items' files, in upper or lower case, with or without the dot

    Raises:
        InputError: there is no item, or a link is circular.
    """
    if not is_folder(root):
        raise InputError(f"{root} is not a folder")
    suffixes = tuple(f".{extension.lower().lstrip('.')}" for extension in extensions)
    entries = list(_walk(root))
    files = [path for path in entries if not path.endswith("/")]
    paths = [path for path in files if _is_item(path, suffixes)]
    if not paths:
        raise InputError(f"{root} has no file that ends with {', '.join(suffixes)} ({len(files)} others ignored)")
    with_items = {""}
    for folder in {path.rpartition("/")[0] for path in paths}:
        parts = folder.split("/")
        with_items.update("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    empty = (path[:-1] for path in entries if path.endswith("/") and path[:-1] not in with_items)
    outermost = sorted(folder for folder in empty if folder.rpartition("/")[0] in with_items)
    return ItemPaths(paths, len(files) - len(paths), outermost)


def split_in_name(name: str) -> str | None:
    """Return the split that occurs as a word in a file's name, if any.

    Example:
        >>> split_in_name("data/train-00000-of-00005.parquet"), split_in_name("birds-000012.tar")
        ('train', None)
    """
    splits = _SPLITS.findall(name)
    return splits[-1].lower() if splits else None


def unreadable_path(path: str | os.PathLike[str], error: OSError) -> InputError:
    """Build the error for a path that cannot be read; it says if the path is a link to itself."""
    if error.errno == errno.ELOOP:
        return InputError(f"{os.fspath(path)} is a link that leads back to itself: remove it")
    return InputError(f"{os.fspath(path)} cannot be read: {error.strerror or error}")


def _is_item(path: str, suffixes: tuple[str, ...]) -> bool:
    return path.lower().endswith(suffixes) and not any(name.startswith(".") for name in path.split("/"))


def _walk(folder: Path, prefix: str = "", above: frozenset[tuple[int, int]] = frozenset()) -> Iterator[str]:
    """List the files and folders below a folder as relative paths; those of folders end with `/`.

    A hidden folder counts as a file: it is listed, but not entered.
    """
    if url_of(folder) or split_archive_path(folder):
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
            is_visible_folder = entry.is_dir() and not entry.name.startswith(".")
        except OSError as error:
            raise unreadable_path(entry.path, error) from error
        if is_visible_folder:
            yield f"{relative}/"
            yield from _walk(folder / entry.name, f"{relative}/", above | {here})
        else:
            yield relative
