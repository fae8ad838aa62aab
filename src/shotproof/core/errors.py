"""Exceptions that Shotproof raises on purpose.

ShotproofError            shown to the user as one line, exit status 2
├── InputError            invalid input: a file, a column, a value
│   ├── UnknownName       a name is not registered; the message has the closest one that is
│   ├── MissingExtra      an optional dependency is not installed
│   ├── UnreadableItem    the file of an item cannot be decoded
│   ├── Mismatch          files were not made from the same data
│   └── InsufficientData  the data is too small for the requested tasks
├── TrainingFailed        training cannot continue; the last checkpoint is kept
└── WriteFailed           an output could not be written; no partial file is left

Interrupted               Ctrl-C stopped work that keeps its progress; a KeyboardInterrupt

An InputError is also a ValueError, so that code that does not know Shotproof can catch it.
"""

from __future__ import annotations

import contextlib
import copy
import difflib
import errno
from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeVar

from shotproof.core.printable import without_credentials

E = TypeVar("E", bound="ShotproofError")


class ShotproofError(Exception):
    """Error with a message for the user; the command line prints it without a traceback."""

    def __str__(self) -> str:
        return without_credentials(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_error, (type(self), str(self)), vars(self)  # bypasses the constructor, whose arguments differ

    def with_prefix(self, prefix: str) -> Self:
        """Return a copy of this error with a prefix, such as the location, before its message."""
        error = copy.copy(self)
        error.args = (f"{prefix}{self}",)
        return error


class InputError(ShotproofError, ValueError):
    """Input that cannot be used: a file, a column or a value."""


class UnknownName(InputError):
    """Name that is not registered."""

    def __init__(self, kind: str, name: str, known_names: Iterable[str], hint: str = "") -> None:
        super().__init__(f"unknown {kind} '{name}'{hint or did_you_mean(name, known_names)}")


class MissingExtra(InputError):
    """Optional dependency that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs an optional dependency that is not installed: pip install shotproof[{extra}]"
        )


class UnreadableItem(InputError):
    """File of an item that cannot be decoded."""


class Mismatch(InputError):
    """Files that were not made from the same data."""


class InsufficientData(InputError):
    """Data that is too small for the requested tasks."""


class TrainingFailed(ShotproofError):
    """Training that cannot continue: its loss is not finite, or memory ran out."""


class WriteFailed(ShotproofError):
    """Output that could not be written."""


class Interrupted(KeyboardInterrupt):
    """Work stopped by Ctrl-C; the message says what is kept and what the same command does next."""


@contextlib.contextmanager
def error_prefix(prefix: str) -> Iterator[None]:
    """Add a prefix to the message of each InputError raised in the block."""
    try:
        yield
    except InputError as error:
        raise error.with_prefix(prefix) from error


def _rebuild_error(error_class: type[E], message: str) -> E:
    error = error_class.__new__(error_class)
    error.args = (message,)
    return error


def did_you_mean(name: str, known_names: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the closest known name and a list of at most 12."""
    candidates = sorted(known_names)
    by_lowercase = {candidate.lower(): candidate for candidate in candidates}
    matches = difflib.get_close_matches(name.lower(), by_lowercase, n=1, cutoff=0.5)
    hint = f": did you mean '{by_lowercase[matches[0]]}'?" if matches else ""
    if not candidates:
        return hint
    listed = ", ".join(candidates[:12]) + (f", ... ({len(candidates)} in all)" if len(candidates) > 12 else "")
    return f"{hint} (known: {listed})"


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error, or one of its causes, means that memory ran out.

    PyTorch, threads and the dynamic loader report it only in the text of their messages.
    """
    phrases = (
        "DefaultCPUAllocator",
        "could not create a primitive",  # oneDNN
        "can't start new thread",
        "Cannot allocate memory",
        "failed to map segment",
    )
    if isinstance(error, MemoryError) or any(phrase in str(error) for phrase in phrases):
        return True
    return error.__cause__ is not None and is_out_of_memory(error.__cause__)


def describe_system_error(error: BaseException) -> str | None:
    """Describe a file error of the system: full or read-only disk, permissions. None for other errors.

    Example:
        >>> describe_system_error(OSError(errno.EROFS, "Read-only file system", "out"))
        'cannot write or read out: Read-only file system'
    """
    codes = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EIO, errno.ENAMETOOLONG)
    if not isinstance(error, OSError) or error.errno not in codes:
        return None
    return f"cannot write or read {error.filename or 'a file'}: {error.strerror}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its class if the message is empty."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
