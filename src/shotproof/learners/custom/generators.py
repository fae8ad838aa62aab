"""The random generators that all code of a process shares, seeded for somebody's own code and left as they were.

Shotproof draws by counter (`core/draws.py`) and never from these. Code of somebody's own may: then what it answers must
depend on the task's seed alone, not on what was drawn before it, in which process and in which order.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

_one_at_a_time = threading.RLock()


class SharedGenerators:
    """The generators of `random`, NumPy and PyTorch, while `shared_generators` has them."""

    def __init__(self) -> None:
        self._seeded: list[Any] = []

    def seed(self, seed: int) -> None:
        """Start all of them from a seed, 0 <= seed < 2**31."""
        import torch

        random.seed(seed)
        np.random.seed(seed)
        # Not torch.manual_seed: it is slow where there is a GPU that nobody has used yet.
        torch.default_generator.manual_seed(seed)
        if _gpus_in_use():
            torch.cuda.manual_seed_all(seed)
        self._seeded = _states()

    def drawn_from(self) -> bool:
        """Whether anything was drawn since they were seeded."""
        return not _same(self._seeded, _states())


@contextlib.contextmanager
def shared_generators() -> Iterator[SharedGenerators]:
    """Have the shared generators to oneself, for one thread at a time; their states are restored afterwards.

    Example:
        >>> with shared_generators() as generators:
        ...     generators.seed(7)
        ...     first = random.random()
        ...     generators.seed(7)
        ...     first == random.random()
        True
    """
    with _one_at_a_time:
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

    on_gpus = torch.cuda.get_rng_state_all() if _gpus_in_use() else []
    return [random.getstate(), np.random.get_state(), torch.get_rng_state(), *on_gpus]


def _restore(states: list[Any]) -> None:
    import torch

    of_python, of_numpy, of_torch, *on_gpus = states
    random.setstate(of_python)
    np.random.set_state(of_numpy)
    torch.set_rng_state(of_torch)
    for device, state in enumerate(on_gpus):
        torch.cuda.set_rng_state(state, device)


def _same(some: Any, others: Any) -> bool:
    """Whether two states, nested tuples of numbers and arrays, are equal."""
    import torch

    if isinstance(some, tuple | list):
        return len(some) == len(others) and all(map(_same, some, others))
    if isinstance(some, torch.Tensor):
        return torch.equal(some, others)
    return bool(np.array_equal(some, others))
