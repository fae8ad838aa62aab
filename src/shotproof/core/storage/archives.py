"""Zip archives, which may be anything: what they claim is checked before anything is unpacked; and written, so that the
same files give the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import stat
import unicodedata
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shotproof.core.errors import InputError, first_line
from shotproof.core.storage.files import check_path, require_file
from shotproof.core.storage.numpy_files import BROKEN, MOST_UNPACKED, SMALL
from shotproof.core.storage.whole_files import whole_file

LARGEST_UNPACKED = 2**34  # bytes of all members together
MOST_MEMBERS = 10_000
_AT_A_TIME = 2**20
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the time of every member: zip knows none before it
_REGULAR = stat.S_IFREG | 0o644
_STRANGE = re.compile(r"[\x00-\x1f\x7f\\:]")  # also separators and drives of other systems


@dataclass(frozen=True)
class Archive:
    """An archive that is open, its members by name: regular files below one folder, of sizes that can be."""

    what: str
    file: zipfile.ZipFile
    members: Mapping[str, zipfile.ZipInfo]

    def read(self, name: str, largest: int) -> bytes:
        """All of a member that has at most so many bytes."""
        if self.members[name].file_size > largest:
            raise InputError(
                f"{self.what}, '{name}': expected at most {largest:,} bytes, found {self.members[name].file_size:,}"
            )
        return b"".join(self._chunks(name))

    def sha256(self, name: str) -> str:
        """Of a member's content, in hexadecimal."""
        digest = hashlib.sha256()
        for chunk in self._chunks(name):
            digest.update(chunk)
        return digest.hexdigest()

    def unpack(self, folder: Path) -> None:
        """Write all members below a folder."""
        for name in self.members:
            with whole_file(folder / name) as temporary, temporary.open("wb") as file:
                for chunk in self._chunks(name):
                    file.write(chunk)

    def _chunks(self, name: str) -> Iterator[bytes]:
        member = self.members[name]
        left = member.file_size
        try:
            with self.file.open(member) as file:
                while chunk := file.read(_AT_A_TIME):
                    left -= len(chunk)
                    yield chunk
        except BROKEN as error:
            raise InputError(f"{self.what}, '{name}' is damaged: {first_line(error)}") from error
        if left:
            raise InputError(f"{self.what}, '{name}' is damaged: {left:,} bytes are missing")


@contextlib.contextmanager
def open_archive(path: Path, what: str) -> Iterator[Archive]:
    """Open a zip archive, and refuse one that would write outside of its folder or fill the disk.

    Args:
        path: of the archive
        what: the kind of file and its path, for messages

    Raises:
        InputError: it is no zip archive, or a member is not a regular file below the folder, is there twice, is
            encrypted, or unpacks to far more than its size; the message names it.
    """
    require_file(path, what, LARGEST_UNPACKED)
    try:
        opened = zipfile.ZipFile(path)
    except BROKEN as error:
        raise InputError(f"{what} is not readable as zip: {first_line(error)}") from error
    with opened as file:
        members = file.infolist()
        if len(members) > MOST_MEMBERS:
            raise InputError(f"{what}: expected at most {MOST_MEMBERS:,} files, found {len(members):,}")
        for member in members:
            reason = _wrong_with(member)
            if reason:
                raise InputError(f"{what}, {member.orig_filename[:100]!r}: {reason}")
        _check_together(members, path.stat().st_size, what)
        yield Archive(what, file, {member.filename: member for member in members})


def write_archive(path: Path, contents: Mapping[str, bytes]) -> None:
    """Write a zip archive, whole or not at all; sorted, not compressed and without times: bytes are the same."""
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as file:
        for name, content in sorted(contents.items()):
            member = zipfile.ZipInfo(name, _EARLIEST)
            member.external_attr, member.create_system = _REGULAR << 16, 3  # as on Unix, wherever it is written
            file.writestr(member, content)


def unsafe_path(name: str) -> str | None:
    """Why a path that a stranger gave might lead out of the folder that it starts from; None where it cannot.

    Example:
        >>> unsafe_path("images/jay.png"), unsafe_path("../jay.png")
        (None, 'expected a path below its folder')
    """
    if _STRANGE.search(name):
        return "expected a path of plain characters, separated by /"
    if name.startswith("/") or any(part in ("", ".", "..") for part in name.split("/")):
        return "expected a path below its folder"
    try:
        check_path(name)
    except OSError as error:
        return str(error.strerror)
    return None


def _wrong_with(member: zipfile.ZipInfo) -> str | None:
    unsafe = unsafe_path(member.orig_filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    if unsafe:
        return unsafe
    if kind not in (0, stat.S_IFREG):
        return f"expected a regular file, found {'a symbolic link' if kind == stat.S_IFLNK else 'something else'}"
    if member.flag_bits & 1:
        return "it is encrypted"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "expected it to be stored or deflated"
    if member.file_size > max(SMALL, MOST_UNPACKED * member.compress_size):
        return (
            f"expected at most {MOST_UNPACKED} times its {member.compress_size:,} bytes in the archive, it unpacks to "
            f"{member.file_size:,}"
        )
    return None


def _check_together(members: list[zipfile.ZipInfo], size: int, what: str) -> None:
    """Refuse names that would be one file on some systems, a file that is a folder as well, and too much in all."""
    known: set[str] = set()
    for member in members:
        name = _folded(member.filename)
        if name in known:
            raise InputError(f"{what}, {member.filename!r}: it is there twice")
        known.add(name)
    for member in members:
        parents = _folded(member.filename).split("/")[:-1]
        if any("/".join(parents[: depth + 1]) in known for depth in range(len(parents))):
            raise InputError(f"{what}, {member.filename!r}: its folder is a file as well")
    if sum(member.compress_size for member in members) > size:
        raise InputError(f"{what}: its files overlap")
    unpacked = sum(member.file_size for member in members)
    if unpacked > LARGEST_UNPACKED:
        raise InputError(f"{what}: expected at most {LARGEST_UNPACKED:,} bytes in all, it unpacks to {unpacked:,}")


def _folded(name: str) -> str:
    """As systems see it that tell neither capitals nor ways to write an accent apart."""
    return unicodedata.normalize("NFC", name).casefold()
