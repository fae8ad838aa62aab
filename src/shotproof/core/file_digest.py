"""The digest of a file's content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from shotproof.core.files import check_regular, open_file

LARGEST_DIGESTED = 2**40  # bytes


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal, without reading all of it into memory.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger than LARGEST_DIGESTED.
    """
    check_regular(path, LARGEST_DIGESTED)
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
