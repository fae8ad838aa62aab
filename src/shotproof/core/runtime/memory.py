"""Memory that networks and heads on a CPU free and take again at every step."""

from __future__ import annotations

import ctypes
import functools
import os

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # parameters of glibc's mallopt
_MOST = 2**31 - 1


@functools.cache
def keep_freed_memory() -> None:
    """Have this process keep the memory of large arrays that it frees, where it uses the allocator of glibc.

    By default glibc gives every large block back to the system, and gets it anew, page by page, at the next step: on
    small virtual machines, training and adapting a convolutional network then take several times as long, and so does
    evaluating centroids on tasks of 1,000 classes. Nothing is changed where the environment has settings of the
    allocator (MALLOC_...).
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc: Windows, macOS, musl
        return
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, _MOST)
