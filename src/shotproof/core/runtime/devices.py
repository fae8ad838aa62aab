"""Devices, threads and memory that networks and methods use. PyTorch is imported only by the functions that need it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from shotproof.core.errors import InputError, first_line

if TYPE_CHECKING:
    import torch


def choose_device(name: str | None, dtype: torch.dtype | None = None) -> torch.device:
    """Choose a device by name, and check that it supports `dtype`.

    Args:
        name: as in PyTorch, e.g. `cpu` or `cuda:1`; None for a GPU if there is one, otherwise the CPU
        dtype: the type of numbers to compute with; None for float32

    Returns:
        The device, checked by allocating an empty tensor on it.

    Raises:
        InputError: there is no such device, or it does not support this type.

    Example:
        >>> choose_device("cpu")
        device(type='cpu')
    """
    import torch

    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, dtype=dtype or torch.float32, device=device)
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        reason = first_line(error)
        raise InputError(f"device '{name}' cannot be used, expected e.g. cpu, cuda or cuda:1: {reason}") from error
    return device


def choose_devices(name: str | None) -> list[torch.device]:
    """Choose the devices that share the computations on tasks, which are in float64.

    Args:
        name: as in PyTorch; `cuda` and None stand for all available GPUs

    Returns:
        At least one device.

    Raises:
        InputError: there is no such device, or it does not support float64.

    Example:
        >>> choose_devices("cpu")
        [device(type='cpu')]
    """
    import torch

    device = choose_device(name, torch.float64)  # which MPS does not support
    use_all = name in (None, "cuda") and device.type == "cuda"
    return [torch.device("cuda", index) for index in range(torch.cuda.device_count())] if use_all else [device]


@contextlib.contextmanager
def one_thread_per_operation() -> Iterator[None]:
    """Make PyTorch compute each operation in the calling thread, also in threads started in the block.

    Example:
        >>> import torch
        >>> with one_thread_per_operation():
        ...     torch.get_num_threads()
        1
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # parameters of glibc's mallopt
_MAX_INT = 2**31 - 1


@functools.cache
def keep_freed_memory() -> None:
    """Make glibc's allocator keep freed memory in this process instead of returning it to the system.

    By default, glibc returns every large block and requests it again, page by page, at the next step. On small virtual
    machines, training and adapting a convolutional network then take several times as long, and so does evaluating
    centroids on tasks of 1,000 classes. Nothing is changed if the environment configures the allocator (MALLOC_...).
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc: Windows, macOS, musl
        return
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, _MAX_INT)


@contextlib.contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Create a pool of threads that each compute their operations alone.

    If threads shared an operation, they would wait for each other at every one, long on a busy machine, and results
    would depend on the number of threads.

    Args:
        count: the number of threads

    Returns:
        The pool. Its threads are joined if the block succeeds; otherwise they are left to end on their own.
    """
    with one_thread_per_operation(), _pool(count) as pool:
        yield pool


@contextlib.contextmanager
def background_thread() -> Iterator[ThreadPoolExecutor]:
    """Create a thread for long computations, so that the calling thread can respond to Ctrl-C while it waits.

    Python handles Ctrl-C only between its own instructions, and computing a gradient, which may take seconds, is one.

    Returns:
        A pool of one thread, as from `threads`.
    """
    with _pool(1) as pool:
        yield pool


@contextlib.contextmanager
def _pool(count: int) -> Iterator[ThreadPoolExecutor]:
    """Create a pool whose threads have the same PyTorch thread count as the calling thread."""
    import torch

    pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(torch.get_num_threads(),))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
