"""What happens in a worker of a Ray cluster: it fetches the work once, then does block after block of inputs."""

from __future__ import annotations

import io
import pickle
import signal
import threading
from collections.abc import Callable
from typing import Any

from shotproof.core.errors import InputError, ShotproofError
from shotproof.core.runtime.carried import Failure, compute_in_threads, unpack
from shotproof.core.runtime.worker import become_worker
from shotproof.version import __version__

MOST_WORKS = 2  # that are kept: maps may go on side by side

_asked_to_stop = threading.Event()
_works: dict[str, Callable[[Any], Any]] = {}  # by Ray's reference, the last used one at the end


def do_block(work: list[Any], block: bytes, threads: int, version: str, asked_from: str) -> bytes:
    """Do a block of inputs.

    Args:
        work: Ray's reference to the packed work.
        block: The inputs, pickled.
        threads: In how many PyTorch computes an operation.
        version: Of Shotproof, where the work comes from.
        asked_from: The machine where it comes from.

    Returns:
        The outputs as far as they got, and the failure that ended them, pickled.
    """
    import cloudpickle

    become_worker()
    if threading.current_thread() is threading.main_thread():
        # Ray cancels by an interrupt, which may come in the middle of an import: what is half imported stays broken.
        signal.signal(signal.SIGINT, lambda *_: _asked_to_stop.set())
    outputs: list[Any] = []
    failure = None
    _asked_to_stop.clear()
    try:
        loaded = _load(work[0], version)
        compute_in_threads(threads)
        for value in pickle.loads(block):
            if _asked_to_stop.is_set():
                break
            outputs.append(_placed(loaded(value), asked_from))
    except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
        failure = Failure.of(_placed(error, asked_from))
    try:
        done: bytes = cloudpickle.dumps((outputs, failure))
    except Exception as error:  # noqa: BLE001 - an output of somebody else's: anything may go wrong
        done = pickle.dumps(([], Failure.of(ShotproofError(f"an output cannot be pickled: {error}"))))
    return done


def _load(reference: Any, version: str) -> Callable[[Any], Any]:
    import ray

    if version != __version__:
        raise InputError(f"this machine has shotproof {__version__}, expected {version} as where the work comes from")
    key = reference.hex()
    found = _works.pop(key, None)
    if found is None:
        while len(_works) >= MOST_WORKS:
            del _works[next(iter(_works))]
        found = unpack(io.BytesIO(ray.get(reference)))
    _works[key] = found
    return found


def _placed(given: Any, asked_from: str) -> Any:
    """What it is, but of an error of this package, on another machine, the message begins with the machine."""
    import ray

    if not isinstance(given, ShotproofError) or ray.get_runtime_context().get_node_id() == asked_from:
        return given
    return given.with_prefix(f"on the machine {ray.util.get_node_ip_address()}: ")
