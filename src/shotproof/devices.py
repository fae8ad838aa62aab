"""Where networks and methods run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from shotproof.errors import InputError, first_line


def choose_device(name: str | None, dtype: torch.dtype = torch.float32) -> torch.device:
    """The device of this name, able to compute in `dtype`; None is a GPU if there is one, else the CPU."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, dtype=dtype, device=device)
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        reason = first_line(error)
        raise InputError(f"device '{name}' cannot be used, expected e.g. cpu, cuda or cuda:1: {reason}") from error
    return device


def choose_devices(name: str | None) -> list[torch.device]:
    """The devices that share the work on tasks, which is in float64: `cuda` and None are all GPUs that there are."""
    device = choose_device(name, torch.float64)  # which MPS, for one, does not have
    every = name in (None, "cuda") and device.type == "cuda"
    return [torch.device("cuda", index) for index in range(torch.cuda.device_count())] if every else [device]


@contextlib.contextmanager
def one_thread_an_operation() -> Iterator[None]:
    """Within it PyTorch computes each operation in the thread that asks for it, as threads that start in it do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
