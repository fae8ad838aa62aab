"""Worker side of the Ray engine: it fetches the function once, then processes one block of inputs after another."""

from __future__ import annotations

import io
import pickle
import signal
import threading
from collections.abc import Callable
from typing import Any

from shotproof.core.errors import InputError, ShotproofError
from shotproof.core.runtime.shared_state import Failure, compute_in_threads, unpack
from shotproof.core.runtime.worker import become_worker
from shotproof.version import __version__

MOST_WORKS = 2  # functions that are kept, as maps may run concurrently

_stop_requested = threading.Event()
_works: dict[str, Callable[[Any], Any]] = {}  # by Ray's reference, the most recently used last


def do_block(work: list[Any], block: bytes, threads: int, version: str, origin: str) -> bytes:
    """Apply the function to a block of inputs.

    Args:
        work: Ray's reference to the packed function
        block: the inputs, pickled
        threads: the number of threads that PyTorch uses for an operation
        version: the version of Shotproof on the machine that sent the block
        origin: the node id of the machine that sent the block

    Returns:
        The outputs so far, and the failure that ended the block, if any; pickled.
    """
    import cloudpickle

    become_worker()
    if threading.current_thread() is threading.main_thread():
        # Ray cancels with an interrupt, which may hit an import, and a half-imported module stays broken.
        signal.signal(signal.SIGINT, lambda *_: _stop_requested.set())
    outputs: list[Any] = []
    failure = None
    _stop_requested.clear()
    try:
        function = _load(work[0], version)
        compute_in_threads(threads)
        for value in pickle.loads(block):
            if _stop_requested.is_set():
                break
            outputs.append(_name_machine(function(value), origin))
    except BaseException as error:  # noqa: BLE001 - raised again by the process that waits for the result
        failure = Failure.of(_name_machine(error, origin))
    try:
        result: bytes = cloudpickle.dumps((outputs, failure))
    except Exception as error:  # noqa: BLE001 - a foreign output may raise anything
        result = pickle.dumps(([], Failure.of(ShotproofError(f"an output cannot be pickled: {error}"))))
    return result


def _load(reference: Any, version: str) -> Callable[[Any], Any]:
    import ray

    if version != __version__:
        raise InputError(
            f"this machine has shotproof {__version__}, expected {version}, the version that sent the work"
        )
    key = reference.hex()
    function = _works.pop(key, None)
    if function is None:
        while len(_works) >= MOST_WORKS:
            del _works[next(iter(_works))]
        function = unpack(io.BytesIO(ray.get(reference)))
    _works[key] = function
    return function


def _name_machine(output: Any, origin: str) -> Any:
    """Return an output unchanged, or an error of this package from another machine with that machine in its message."""
    import ray

    if not isinstance(output, ShotproofError) or ray.get_runtime_context().get_node_id() == origin:
        return output
    return output.with_prefix(f"on the machine {ray.util.get_node_ip_address()}: ")
