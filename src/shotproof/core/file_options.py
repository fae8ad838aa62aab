"""Options that are files, or the objects read from them, spelled with the beginning of their digests."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

from shotproof.core.errors import InputError, Mismatch, error_prefix
from shotproof.core.options import Component, Option
from shotproof.core.plain_values import kinds_of
from shotproof.core.storage.files import is_folder, names_below, path_exists

DIGEST_MARK = "@"
SPELLED_DIGITS = 8  # of a digest


class FileOptions(Component):
    """Component with options such as `base: Path | Features`: a file, or an object of the class that reads it.

    The spelling has the beginning of each object's digest, `center(base='base.parquet@1f2e3d4c')`, so that results with
    another base set are those of another classifier. If such a spelling is read, the digest is checked.
    """

    def content(self, name: str) -> Any:
        """Return the object of an option: itself, or as read from its file; None if the option is not set.

        Raises:
            Mismatch: the file does not have the digest with which it is spelled.
            InputError: the file cannot be read.
        """
        if name not in self._contents:
            option = next(option for option in self.options() if option.name == name)
            self._contents[name] = self._read(option)
        return self._contents[name]

    def recorded_value(self, option: Option) -> Any:
        """Return the name of a file or object with the beginning of its digest; the value of any other option."""
        value = getattr(self, option.name)
        if value is None or _content_class(option) is None:
            return value
        content = self.content(option.name)
        name = _split(value)[0].name if isinstance(value, Path) else _name_of(content)
        return f"{name}{DIGEST_MARK}{content.digest[:SPELLED_DIGITS]}"

    def located(self, folders: Sequence[Path]) -> Self:
        """Find files that records name without their folders: below these folders, by name and digest.

        Files that exist where they are named, or that are not found, stay as they are.
        """
        located = {}
        for option in self.options():
            value, reader = getattr(self, option.name), _content_class(option)
            if not isinstance(value, Path) or reader is None:
                continue
            file, prefix = _split(value)
            if not prefix or path_exists(file):
                continue
            same_name = (folder / name for folder in folders for name in sorted(_names_below(folder)))
            for candidate in (path for path in same_name if path.name == file.name):
                with contextlib.suppress(InputError):  # another kind of file
                    if reader.read(candidate).digest.startswith(prefix):
                        located[option.name] = candidate.with_name(f"{candidate.name}{DIGEST_MARK}{prefix}")
                        break
        located_component: Self = replace(cast("Any", self), **located)
        return located_component

    def _read(self, option: Option) -> Any:
        """Read the file of an option, and check its digest if it is spelled with one."""
        value = getattr(self, option.name)
        if not isinstance(value, Path):
            return value
        file, prefix = _split(value)
        with error_prefix(f"{self._title}: {option.name}: "):
            content = _content_class(option).read(file)
        if not content.digest.startswith(prefix):
            raise Mismatch(f"{self._title}: {file} has the digest {content.digest}, not {prefix}...")
        return content

    @functools.cached_property
    def _contents(self) -> dict[str, Any]:
        """Return the objects that were read so far, by option."""
        return {}


def _content_class(option: Option) -> Any:
    """Return the class that reads the file of an option; None if its value is not such a file."""
    kinds = kinds_of(option.kind)
    readers = [kind for kind in kinds if kind is not Path and hasattr(kind, "read") and hasattr(kind, "digest")]
    return readers[0] if Path in kinds and readers else None


def _split(path: Path) -> tuple[Path, str]:
    """Split `base.parquet@1f2e3d4c` into the file and the beginning of its digest, which is empty without one."""
    file, mark, prefix = path.name.rpartition(DIGEST_MARK)
    return (path.with_name(file), prefix) if mark and file and not path_exists(path) else (path, "")


def _names_below(folder: Path) -> Iterable[str]:
    return names_below(folder) if is_folder(folder) else ()


def _name_of(content: Any) -> str:
    """Return the name of an object in memory: its own, that of its record, or that of its class."""
    return getattr(content, "name", "") or content.record.name or type(content).__name__.lower()
