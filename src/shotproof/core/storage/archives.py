"""Zip archives from untrusted sources, checked before anything is unpacked; and reproducible writing of archives."""

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

LARGEST_UNPACKED = 2**34  # total bytes of all members
MOST_MEMBERS = 10_000
_CHUNK_SIZE = 2**20
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # modification time of every member: the earliest that zip can store
_REGULAR = stat.S_IFREG | 0o644
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\:]")  # includes separators and drive letters of other systems


@dataclass(frozen=True)
class Archive:
    """Open archive whose members have been checked: regular files below one folder, of plausible size."""

    subject: str
    file: zipfile.ZipFile
    members: Mapping[str, zipfile.ZipInfo]

    def read(self, name: str, largest: int) -> bytes:
        """Return the content of a member. Raise InputError if it has more than `largest` bytes."""
        if self.members[name].file_size > largest:
            raise InputError(
                f"{self.subject}, '{name}': expected at most {largest:,} bytes, found {self.members[name].file_size:,}"
            )
        return b"".join(self._chunks(name))

    def sha256(self, name: str) -> str:
        """Compute the SHA-256 of a member's content, in hexadecimal."""
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
        remaining = member.file_size
        try:
            with self.file.open(member) as file:
                while chunk := file.read(_CHUNK_SIZE):
                    remaining -= len(chunk)
                    yield chunk
        except BROKEN as error:
            raise InputError(f"{self.subject}, '{name}' is damaged: {first_line(error)}") from error
        if remaining:
            raise InputError(f"{self.subject}, '{name}' is damaged: {remaining:,} bytes are missing")


@contextlib.contextmanager
def open_archive(path: Path, subject: str) -> Iterator[Archive]:
    """Open a zip archive. Reject one that would write outside its folder or fill the disk.

    Args:
        path: the archive
        subject: the kind of file and its path, for messages

    Raises:
        InputError: the file is not a zip archive, or a member is not a regular file below the folder, occurs twice, is
            encrypted, or unpacks to far more than its compressed size; the message names the member.
    """
    require_file(path, subject, LARGEST_UNPACKED)
    try:
        opened = zipfile.ZipFile(path)
    except BROKEN as error:
        raise InputError(f"{subject} is not a readable zip archive: {first_line(error)}") from error
    with opened as file:
        members = file.infolist()
        if len(members) > MOST_MEMBERS:
            raise InputError(f"{subject}: expected at most {MOST_MEMBERS:,} files, found {len(members):,}")
        for member in members:
            reason = _find_problem(member)
            if reason:
                raise InputError(f"{subject}, {member.orig_filename[:100]!r}: {reason}")
        _check_members(members, path.stat().st_size, subject)
        yield Archive(subject, file, {member.filename: member for member in members})


def write_archive(path: Path, contents: Mapping[str, bytes]) -> None:
    """Write a zip archive atomically. Members are sorted, uncompressed and undated: same contents, same bytes."""
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as file:
        for name, content in sorted(contents.items()):
            member = zipfile.ZipInfo(name, _EARLIEST)
            member.external_attr, member.create_system = _REGULAR << 16, 3  # as on Unix, wherever it is written
            file.writestr(member, content)


def unsafe_path(name: str) -> str | None:
    """Describe why an untrusted path may lead out of its folder; None if it cannot.

    Example:
        >>> unsafe_path("images/jay.png"), unsafe_path("../jay.png")
        (None, 'expected a path inside its folder')
    """
    if _UNSAFE.search(name):
        return "expected a path of plain characters, separated by /"
    if name.startswith("/") or any(part in ("", ".", "..") for part in name.split("/")):
        return "expected a path inside its folder"
    try:
        check_path(name)
    except OSError as error:
        return str(error.strerror)
    return None


def _find_problem(member: zipfile.ZipInfo) -> str | None:
    unsafe = unsafe_path(member.orig_filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    if unsafe:
        return unsafe
    if kind not in (0, stat.S_IFREG):
        return f"expected a regular file, found {'a symbolic link' if kind == stat.S_IFLNK else 'a special file'}"
    if member.flag_bits & 1:
        return "is encrypted; expected an unencrypted archive"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "expected compression method stored or deflated"
    if member.file_size > max(SMALL, MOST_UNPACKED * member.compress_size):
        return (
            f"unpacks to {member.file_size:,} bytes; expected at most {MOST_UNPACKED} times its "
            f"{member.compress_size:,} bytes in the archive"
        )
    return None


def _check_members(members: list[zipfile.ZipInfo], size: int, subject: str) -> None:
    """Reject names that are the same file on some systems, files that are also folders, and excessive total size."""
    names: set[str] = set()
    for member in members:
        name = _normalize(member.filename)
        if name in names:
            raise InputError(f"{subject}, {member.filename!r}: occurs twice")
        names.add(name)
    for member in members:
        parents = _normalize(member.filename).split("/")[:-1]
        if any("/".join(parents[: depth + 1]) in names for depth in range(len(parents))):
            raise InputError(f"{subject}, {member.filename!r}: its folder is also a file")
    if sum(member.compress_size for member in members) > size:
        raise InputError(f"{subject}: its members overlap")
    unpacked = sum(member.file_size for member in members)
    if unpacked > LARGEST_UNPACKED:
        raise InputError(f"{subject}: unpacks to {unpacked:,} bytes; expected at most {LARGEST_UNPACKED:,}")


def _normalize(name: str) -> str:
    """Normalize a name as file systems do that ignore case and Unicode composition."""
    return unicodedata.normalize("NFC", name).casefold()
