"""Work on its way to workers: pickled once for all of them, together with the state that it leans on."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import IO, Any

from shotproof.core.errors import InputError, first_line
from shotproof.core.runtime.carried import carried_states


class CannotTravel(InputError):
    """Work that cannot be pickled, so that it can be done in this process only."""


def pack(work: Callable[[Any], Any], file: IO[bytes], *, elsewhere: bool = False) -> None:
    """Write the carried states and the work.

    Args:
        work: A function or a method of an object.
        file: Where to.
        elsewhere: Whether workers may be on other machines.

    Raises:
        CannotTravel: It cannot be pickled.
    """
    import cloudpickle

    try:
        cloudpickle.dump(carried_states(elsewhere=elsewhere), file)
        cloudpickle.dump(work, file)
    except (pickle.PicklingError, TypeError, AttributeError, NotImplementedError, RecursionError) as error:
        reason = f"{first_line(error)}; expected what can be pickled, or workers=1"
        raise CannotTravel(f"this work cannot be sent to worker processes: {reason}") from error


def unpack(file: IO[bytes]) -> Callable[[Any], Any]:
    """The work, after the states that it leans on were restored in this process."""
    for set_state, state in pickle.load(file):
        set_state(state)
    work: Callable[[Any], Any] = pickle.load(file)
    return work


def compute_in_threads(count: int) -> None:
    """Have PyTorch, where it is loaded, compute an operation in so many threads."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)
