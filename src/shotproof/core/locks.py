"""Locks that the system lets go when their process ends, however it ends; nothing is left that says `locked`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from shotproof.core.errors import InputError, WriteFailed

if sys.platform != "win32":
    import fcntl


def try_lock(handle: int) -> bool:
    """Lock an open file or folder; False where another process, or another handle of this one, holds it.

    Where a file system knows no locks, everybody gets them.
    """
    if sys.platform != "win32":
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
    return True


@contextlib.contextmanager
def sole_use(folder: Path) -> Iterator[None]:
    """Have a folder, made where it is not there, to oneself; the lock is on the folder itself, and no file of it.

    Raises:
        InputError: another process has it.
        WriteFailed: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY) if sys.platform != "win32" else None
    except OSError as error:
        raise WriteFailed(f"cannot write {folder}: {error.strerror or error}") from error
    try:
        if handle is not None and not try_lock(handle):
            raise InputError(f"{folder}: another run is at work in this folder: wait for it, or choose another folder")
        yield
    finally:
        if handle is not None:
            os.close(handle)
