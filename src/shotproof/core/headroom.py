"""Memory that has to be free before a file is read or written: Arrow and others do not survive where it runs out."""

from __future__ import annotations

import mmap

HEADROOM = 48 * 2**20  # bytes: the stacks of a few threads, and a library's buffers for a small file


def require_headroom() -> None:
    """Ask the system for some memory, and give it back untouched.

    Raises:
        MemoryError: there is too little. Libraries would abort the process, or wait for ever for a thread of theirs.
    """
    try:
        mmap.mmap(-1, HEADROOM).close()
    except OSError as error:
        raise MemoryError(f"less than {HEADROOM:,} bytes of memory are left") from error
