"""What lies at a place on disk or at a URL: found and opened. Archives are looked into in `item_archives.py`."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import IO

from shotproof.core.places import Found, url_of

_KINDS = {
    stat.S_ISREG: "file",
    stat.S_ISDIR: "folder",
    stat.S_ISCHR: "device",
    stat.S_ISBLK: "device",
    stat.S_ISFIFO: "pipe",
    stat.S_ISSOCK: "socket",
}


def find(path: Path) -> Found:
    """What is there.

    Raises:
        OSError: nothing is, or the system or the store does not tell.
    """
    url = url_of(path)
    if url is not None:
        from shotproof.core import object_stores  # which needs Arrow

        return object_stores.find(url)
    status = path.stat()
    kind = next((name for test, name in _KINDS.items() if test(status.st_mode)), "something else")
    return Found(kind, status.st_size, status.st_mtime_ns)


def open_file(path: Path) -> IO[bytes]:
    """The file, to be read from any place; OSError where it cannot."""
    url = url_of(path)
    if url is None:
        return path.open("rb")
    from shotproof.core import object_stores

    return object_stores.open_url(url)
