"""Where Shotproof keeps what it need not compute again."""

from __future__ import annotations

import os
from pathlib import Path


def default_cache() -> Path:
    """The folder of the cache: $SHOTPROOF_CACHE, else shotproof/ in $XDG_CACHE_HOME, else in ~/.cache.

    Returns:
        The folder, which need not exist yet.

    Example:
        >>> os.environ["SHOTPROOF_CACHE"] = "/data/cache"
        >>> default_cache().as_posix()
        '/data/cache'
        >>> del os.environ["SHOTPROOF_CACHE"]
    """
    if chosen := os.environ.get("SHOTPROOF_CACHE"):
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "shotproof"
