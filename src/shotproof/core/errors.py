"""Every error that Shotproof raises on purpose.

ShotproofError            shown to a user as one line, exit status 2
├── InputError            what was given cannot be used: a file, a column, a value
│   ├── UnknownName       a name that is not registered, with the nearest one that is
│   ├── MissingExtra      an optional dependency is not installed
│   ├── UnreadableItem    one item's file cannot be decoded
│   ├── Mismatch          files that were not made from the same data
│   └── InsufficientData  the data cannot give the tasks that were asked for
├── TrainingFailed        training cannot go on; the last checkpoint is kept
└── WriteFailed           an output could not be written; nothing half-written is left

Interrupted               Ctrl-C ended work that knows what it keeps; it is a KeyboardInterrupt

An InputError is a ValueError too, so that code which knows nothing of Shotproof can catch it.
"""

from __future__ import annotations

import contextlib
import copy
import difflib
import errno
from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeVar

from shotproof.core.printable import told

E = TypeVar("E", bound="ShotproofError")


class ShotproofError(Exception):
    """An error with a message for the user; the command line prints it without a traceback."""

    def __str__(self) -> str:
        return told(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), str(self)), vars(self)  # as it is, whatever its class takes to make one

    def placed(self, place: str) -> Self:
        """The same error, with where it happened before its message."""
        error = copy.copy(self)
        error.args = (f"{place}{self}",)
        return error


class InputError(ShotproofError, ValueError):
    """What was given cannot be used."""


class UnknownName(InputError):
    """A name that is not one of the known ones."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown {what} '{name}'{did_you_mean(name, known)}")


class MissingExtra(InputError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra that is not installed: pip install shotproof[{extra}]")


class UnreadableItem(InputError):
    """The file of one item cannot be read as what it should be."""


class Mismatch(InputError):
    """Files that were not made from the same data."""


class InsufficientData(InputError):
    """The data cannot give the tasks that were asked for."""


class TrainingFailed(ShotproofError):
    """Training cannot go on: its loss is no number, or memory is too small."""


class WriteFailed(ShotproofError):
    """An output could not be written."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended work; the message says what is kept, and what the same command does next."""


@contextlib.contextmanager
def placed(place: str) -> Iterator[None]:
    """Tell errors within it with this before their message."""
    try:
        yield
    except InputError as error:
        raise error.placed(place) from error


def _restored(kind: type[E], message: str) -> E:
    error = kind.__new__(kind)
    error.args = (message,)
    return error


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, and the list of all (at most 12)."""
    options = sorted(known)
    lowered = {option.lower(): option for option in options}
    near = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)
    hint = f": did you mean '{lowered[near[0]]}'?" if near else ""
    if not options:
        return hint
    listed = ", ".join(options[:12]) + (f", ... ({len(options)} in all)" if len(options) > 12 else "")
    return f"{hint} (known: {listed})"


def is_want_of_memory(error: BaseException) -> bool:
    """Whether an error, or what it comes from, says that memory ran out.

    PyTorch, threads and libraries that are loaded say it in words.
    """
    words = (
        "DefaultCPUAllocator",
        "could not create a primitive",  # oneDNN
        "can't start new thread",
        "Cannot allocate memory",
        "failed to map segment",
    )
    if isinstance(error, MemoryError) or any(word in str(error) for word in words):
        return True
    return error.__cause__ is not None and is_want_of_memory(error.__cause__)


def refused_by_system(error: BaseException) -> str | None:
    """Say which file the system lets nobody write or read: a full or read-only disk, permissions; None if it is none.

    Example:
        >>> refused_by_system(OSError(errno.EROFS, "Read-only file system", "out"))
        'cannot write or read out: Read-only file system'
    """
    refusals = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EIO, errno.ENAMETOOLONG)
    if not isinstance(error, OSError) or error.errno not in refusals:
        return None
    return f"cannot write or read {error.filename or 'a file'}: {error.strerror}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its kind where it has none."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
