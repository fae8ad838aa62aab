"""All methods on all tasks, batch by batch: by a CPU's threads or by devices, in halves where memory runs out."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from shotproof.devices import one_thread_an_operation
from shotproof.errors import InputError
from shotproof.evaluation.batches import Batch, TaskArrays
from shotproof.evaluation.items import Items
from shotproof.evaluation.scoring import Gathered, tasks_at_a_time
from shotproof.methods.method import Method
from shotproof.progress import progress

Predicted = npt.NDArray[np.int16]


def predict_tasks(
    arrays: TaskArrays,
    methods: Sequence[Method],
    seeds: npt.NDArray[np.int64],
    devices: Sequence[torch.device],
    chunk: int | None = None,
) -> tuple[Predicted, list[list[str]]]:
    """The label that each method gives to each query, [methods, queries], and what each method warned of.

    `seeds` [tasks] are for methods that draw. Batches of `chunk` tasks (default: by memory) are shared by the devices,
    and on a CPU by as many threads as PyTorch would use for one operation: these are too small to be shared.
    """
    shared = {device: Items(arrays, device) for device in devices}
    for items in shared.values():
        items.prepare(methods)
    workers = [shared[device] for device in _workers(devices, methods)]
    batches: list[Batch] = []
    for shape, members in arrays.by_shape():
        # Equal parts, as many for each worker.
        most = tasks_at_a_time(shape, workers[0], list(methods))
        parts = len(workers) * math.ceil(len(members) / (most * len(workers)))
        batches += arrays.batches(members, chunk or math.ceil(len(members) / parts))
    workers = workers[: len(batches)]
    _keep_freed_memory()
    predicted = np.empty((len(methods), len(arrays.query.slot)), dtype=np.int16)
    warned: dict[tuple[int, int], list[str]] = {}
    waiting: queue.SimpleQueue[tuple[int, Batch]] = queue.SimpleQueue()
    for numbered in enumerate(batches):
        waiting.put(numbered)
    stopped = threading.Event()

    with progress("evaluate", len(arrays.way) * len(methods)) as advance, _heard_warnings() as heard:

        def work(items: Items) -> None:
            """Take batches until none is left; each writes its own part of the predictions."""
            with contextlib.suppress(queue.Empty):
                while not stopped.is_set():
                    number, batch = waiting.get_nowait()
                    gathered = Gathered(items, arrays, batch, seeds)  # once for all methods
                    for index, method in enumerate(methods):
                        for part, labels in _answers(method, gathered, batch):
                            predicted[index, part.query] = labels
                        warned[index, number] = heard()
                        advance(len(batch.tasks))

        if len(workers) == 1:
            work(workers[0])
        else:
            with one_thread_an_operation(), ThreadPoolExecutor(len(workers)) as threads:
                try:
                    for done in as_completed([threads.submit(work, each) for each in workers]):
                        done.result()
                finally:
                    stopped.set()  # after an error, or where the user breaks off, the others stop at their next batch
    in_order = [[warned[index, number] for number in range(len(batches))] for index in range(len(methods))]
    return predicted, [[message for messages in each for message in messages] for each in in_order]


def _keep_freed_memory() -> None:
    """Let the next arrays have the memory of the last ones.

    The GNU C library gives freed memory back to the system, and takes it again page by page, which is a fifth of the
    time of some heads, unless a larger piece was freed before, of at most 32 MB: free one.
    """
    torch.empty(2**25 - 2**16, dtype=torch.uint8)


def _workers(devices: Sequence[torch.device], methods: Sequence[Method]) -> list[torch.device]:
    """The device of each thread: one for each GPU, on a CPU one for each core; one in all for methods in order."""
    if any(method.in_order for method in methods):
        return [devices[0]]
    alone = len(devices) == 1 and devices[0].type == "cpu"
    return [*devices] * (torch.get_num_threads() if alone else 1)


def _answers(method: Method, gathered: Gathered, batch: Batch) -> Iterator[tuple[Batch, npt.NDArray[Any]]]:
    """The batch, or halves of it as small as memory needs, with the labels [B, m] of its queries."""
    tasks = len(batch.tasks)
    try:
        labels = gathered.labels(method).cpu().numpy()
    except (RuntimeError, MemoryError) as error:
        if not _out_of_memory(error):
            raise
        if tasks == 1:
            rows = f"{batch.support.shape[1]} support and {batch.query.shape[1]} query rows"
            raise InputError(
                f"method '{method.name}': one task of {batch.way} ways, {rows} does not fit into the memory of "
                f"{gathered.items.device}: use another device (--device), smaller features or smaller tasks"
            ) from error
    else:
        yield batch, labels
        return
    # Outside the handler: the error holds on to what did not fit.
    if gathered.items.device.type == "cuda":
        torch.cuda.empty_cache()
    for half in (slice(0, tasks // 2), slice(tasks // 2, tasks)):
        part = Batch(batch.tasks[half], batch.way, batch.support[half], batch.query[half])
        yield from _answers(method, gathered.of(part), part)


def _out_of_memory(error: Exception) -> bool:
    """Whether memory was too small; on a CPU PyTorch says so in words only."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)


@contextlib.contextmanager
def _heard_warnings() -> Iterator[Callable[[], list[str]]]:
    """Give a function that tells, and forgets, the first lines of what its own thread was warned of."""
    of_thread = threading.local()

    def hear(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        line = f"{category.__name__}: {message}".strip().splitlines()[0]
        of_thread.messages = [*getattr(of_thread, "messages", []), line]

    def tell() -> list[str]:
        messages: list[str] = getattr(of_thread, "messages", [])
        of_thread.messages = []
        return messages

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = hear
        yield tell
