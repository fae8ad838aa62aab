"""Global random generators of a process, seeded for custom code and restored afterwards.

Shotproof draws by counter (`core/draws.py`), never from these generators. Custom code may use them; its results must
then depend on the task's seed alone, not on earlier draws, the process, or the order of tasks.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

_lock = threading.RLock()


class SharedGenerators:
    """Global generators of `random`, NumPy and PyTorch, reserved by `shared_generators`."""

    def __init__(self) -> None:
        self._seeded: list[Any] = []

    def seed(self, seed: int) -> None:
        """Seed all generators, 0 <= seed < 2**31."""
        import torch

        random.seed(seed)
        np.random.seed(seed)
        # Not torch.manual_seed: it is slow if there is a GPU that has not been used yet.
        torch.default_generator.manual_seed(seed)
        if _gpus_in_use():
            torch.cuda.manual_seed_all(seed)
        self._seeded = _states()

    def drawn_from(self) -> bool:
        """Return whether anything was drawn since the generators were seeded."""
        return not _is_equal(self._seeded, _states())


@contextlib.contextmanager
def shared_generators() -> Iterator[SharedGenerators]:
    """Reserve the shared generators for one thread, and restore their states afterwards.

    Example:
        >>> with shared_generators() as generators:
        ...     generators.seed(7)
        ...     first = random.random()
        ...     generators.seed(7)
        ...     first == random.random()
        True
    """
    with _lock:
        before = _states()
        try:
            yield SharedGenerators()
        finally:
            _restore(before)


def _gpus_in_use() -> bool:
    import torch

    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def _states() -> list[Any]:
    import torch

    gpu_states = torch.cuda.get_rng_state_all() if _gpus_in_use() else []
    return [random.getstate(), np.random.get_state(), torch.get_rng_state(), *gpu_states]


def _restore(states: list[Any]) -> None:
    import torch

    python_state, numpy_state, torch_state, *gpu_states = states
    random.setstate(python_state)
    np.random.set_state(numpy_state)
    torch.set_rng_state(torch_state)
    for device, state in enumerate(gpu_states):
        torch.cuda.set_rng_state(state, device)


def _is_equal(first: Any, second: Any) -> bool:
    """Return whether two states, nested tuples of numbers and arrays, are equal."""
    import torch

    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(_is_equal, first, second))
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    return bool(np.array_equal(first, second))
