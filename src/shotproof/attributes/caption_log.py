"""Captions written as they come: one line of JSON a caption, so that an interrupted run loses no caption.

The first line says what makes the captions; every further line is `{"item", "digest", "caption"}`, or
`{"item", "digest", "error"}` for an item that could not be captioned. The digest is that of the item's file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from shotproof.errors import InputError, Mismatch, WriteFailed

HEADER = "shotproof captions"


@dataclass(frozen=True)
class Captioned:
    """One item's caption, or the error that kept it from having one; the digest is None where there is no file."""

    item: str
    digest: str | None
    caption: str | None = None
    error: str | None = None


class CaptionLog:
    """The captions made so far, in memory and, where a path is given, in a file that only grows.

    An item counts as captioned only while its file's digest is the same; one with an error is tried again.
    """

    def __init__(self, path: str | Path | None, made_by: Mapping[str, Any]) -> None:
        self._path = Path(path) if path is not None else None
        self._header = _line({HEADER: dict(made_by)})
        self._captions: dict[str, tuple[str | None, str]] = {}
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            end = self._read(self._path)
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("r+b" if self._path.exists() else "w+b")
                # What follows the last whole line was being written when the run before was killed.
                self._file.truncate(end)
                self._file.seek(end)
            except OSError as error:
                raise self._cannot_write(error) from error
            if end == 0:
                self._write(self._header)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            # Every append was flushed; what is still unwritten is what a full disk refused, and that was reported.
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def caption(self, item: str, digest: str | None) -> str | None:
        """The caption of an item whose file has this digest; None if it has to be made."""
        known_digest, caption = self._captions.get(item, (None, ""))
        return caption if digest is not None and digest == known_digest else None

    def append(self, rows: Iterable[Captioned]) -> None:
        """Add captions and errors; they are on their way to the disk when this returns."""
        lines = b""
        for row in rows:
            outcome = {"error": row.error} if row.caption is None else {"caption": row.caption}
            lines += _line({"item": row.item, "digest": row.digest, **outcome})
            self._keep(row.item, row.digest, row.caption)
        self._write(lines)

    def _keep(self, item: str, digest: str | None, caption: str | None) -> None:
        if caption is not None:
            self._captions[item] = (digest, caption)

    def _write(self, data: bytes) -> None:
        if self._file is None:
            return
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise self._cannot_write(error) from error

    def _read(self, path: Path) -> int:
        """Take in the captions of an earlier run; returns where its last whole line ends."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise InputError(f"caption log {path} cannot be read: {error.strerror}") from error
        if self._header.startswith(content):  # empty, or killed while writing the header
            return len(content) if content == self._header else 0
        end = content.rfind(b"\n") + 1
        lines = content[:end].split(b"\n")[:-1]
        self._check_header(lines[0] if lines else b"")
        for number, line in enumerate(lines[1:], start=2):
            row = _parse(line)
            if row is None or not isinstance(row.get("item"), str):
                raise InputError(f"caption log {path}, line {number}: expected an object with an item; remove the line")
            caption = row.get("caption")
            self._keep(row["item"], row.get("digest"), caption if isinstance(caption, str) else None)
        return end

    def _check_header(self, line: bytes) -> None:
        ours = json.loads(self._header)[HEADER]
        theirs = (_parse(line) or {}).get(HEADER)
        if not isinstance(theirs, dict):
            raise InputError(f"{self._path} is no caption log: it is left as it is, name another file to resume from")
        differing = [key for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key)]
        if differing:
            what = ", ".join(f"{key} {theirs.get(key)!r} and not {ours.get(key)!r}" for key in differing)
            raise Mismatch(f"the captions in {self._path} were made with {what}: name another file, or remove this one")

    def _cannot_write(self, error: OSError) -> WriteFailed:
        return WriteFailed(f"cannot write caption log {self._path}: {error.strerror or error}")


def file_digest(path: Path) -> str | None:
    """A digest of a file's content; None if the file cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except OSError:
        return None


def _line(value: Mapping[str, Any]) -> bytes:
    # ASCII: whatever the caption, a line break in the file ends a line of JSON, and nothing else does.
    return json.dumps(value, sort_keys=True).encode("ascii") + b"\n"


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
