"""Where networks and methods run. PyTorch is imported by the functions: to import this module costs nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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
