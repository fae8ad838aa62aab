"""Where networks and methods run: devices, threads, memory. PyTorch is imported by the functions that use it."""

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
    """The device of this name, able to compute in `dtype`.

    Args:
        name: As PyTorch spells it, e.g. `cpu` or `cuda:1`; None is a GPU if there is one, else the CPU.
        dtype: What is computed on it; None is float32.

    Returns:
        The device, checked by a small array on it.

    Raises:
        InputError: There is no such device, or it does not know this type.

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
    """The devices that share the work on tasks, which is in float64.

    Args:
        name: As PyTorch spells it; `cuda` and None are all GPUs that there are.

    Returns:
        At least one device.

    Raises:
        InputError: There is no such device, or it does not know float64.

    Example:
        >>> choose_devices("cpu")
        [device(type='cpu')]
    """
    import torch

    device = choose_device(name, torch.float64)  # which MPS, for one, does not have
    every = name in (None, "cuda") and device.type == "cuda"
    return [torch.device("cuda", index) for index in range(torch.cuda.device_count())] if every else [device]


@contextlib.contextmanager
def one_thread_per_operation() -> Iterator[None]:
    """Within it PyTorch computes each operation in the thread that asks for it, as threads that start in it do.

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


@contextlib.contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """So many threads, each of which computes its operations by itself.

    Operations that several threads share make them wait for each other at every one, for long on a busy machine, and
    their results would depend on the number of threads.

    Args:
        count: how many

    Returns:
        The pool. Its threads are waited for where the block ends well; otherwise they end by themselves.
    """
    with one_thread_per_operation(), _pool(count) as pool:
        yield pool


@contextlib.contextmanager
def background_thread() -> Iterator[ThreadPoolExecutor]:
    """A thread that computes as this one does, while this one waits for it and so answers Ctrl-C at once.

    Python answers Ctrl-C between steps of its own, and a gradient of seconds is one step.

    Returns:
        The pool of one thread, as `threads` gives it.
    """
    with _pool(1) as pool:
        yield pool


@contextlib.contextmanager
def _pool(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads whose operations use as many threads as those of this one."""
    import torch

    pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(torch.get_num_threads(),))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
