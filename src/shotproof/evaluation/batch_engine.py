"""Evaluation in batches, shared by the threads of a CPU or by devices; a batch is halved if memory runs out."""

from __future__ import annotations

import contextlib
import functools
import math
import queue
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError
from shotproof.core.runtime.devices import choose_devices, keep_freed_memory, threads
from shotproof.core.runtime.runtime import Runtime, current_runtime
from shotproof.evaluation.batches import Batch, TaskArrays
from shotproof.evaluation.item_tensors import ItemTensors
from shotproof.evaluation.scoring import Gathered, tasks_at_a_time
from shotproof.learners.method import Method

Predicted = npt.NDArray[np.int16]


@dataclass(frozen=True)
class Evaluation:
    """Evaluation of all methods on a range of tasks, on the current runtime's devices; engines send it to machines."""

    arrays: TaskArrays
    methods: Sequence[Method]
    seeds: IntArray
    chunk: int | None

    def __call__(self, tasks: range) -> tuple[Predicted, list[list[str]]]:
        """Predict the labels of a range of tasks, as `predict_tasks` does."""
        return predict_tasks(self.arrays, self.methods, self.seeds, self._items, current_runtime(), self.chunk, tasks)

    @functools.cached_property
    def _items(self) -> list[ItemTensors]:
        """Load the items onto each device, once for all ranges."""
        devices = choose_devices(current_runtime().device)
        return items_on(devices, self.arrays, self.methods)


def items_on(devices: Sequence[torch.device], arrays: TaskArrays, methods: Sequence[Method]) -> list[ItemTensors]:
    """Load the items onto each device, and compute what the methods share."""
    by_device = {device: ItemTensors(arrays, device) for device in devices}
    for items in by_device.values():
        items.prepare(methods)
    return [by_device[device] for device in devices]


def predict_tasks(
    arrays: TaskArrays,
    methods: Sequence[Method],
    seeds: IntArray,
    items: Sequence[ItemTensors],
    runtime: Runtime,
    chunk: int | None = None,
    tasks: range | None = None,
) -> tuple[Predicted, list[list[str]]]:
    """Predict the label of each query with each method, and collect the warnings of each method.

    Args:
        arrays: tasks, and the features of their items
        methods: methods to evaluate
        seeds: seeds for methods that draw, [tasks]
        items: items on each device that shares the batches; a CPU shares them among as many threads as PyTorch would
            use for one operation, because single operations are too small to be shared
        runtime: threads and progress
        chunk: tasks per batch (default: by memory)
        tasks: range of tasks (default: all)

    Returns:
        The labels, [methods, queries of these tasks], and a list of warnings per method.
    """
    tasks = range(len(arrays.way)) if tasks is None else tasks
    first, stop = arrays.query.first[[tasks.start, tasks.stop]]
    workers = _workers(items, methods, runtime.workers)

    def size(shape: IntArray, count: int) -> int:
        """Divide the tasks into equal batches, as many for each worker."""
        most = tasks_at_a_time(shape, workers[0], list(methods))
        return chunk or math.ceil(count / (len(workers) * math.ceil(count / (most * len(workers)))))

    batches = arrays.batches_of(tasks, size)
    workers = workers[: len(batches)]
    if any(tensors.device.type == "cpu" for tensors in items):
        keep_freed_memory()
    predicted = np.empty((len(methods), stop - first), dtype=np.int16)
    warned: dict[tuple[int, int], list[str]] = {}
    waiting: queue.SimpleQueue[tuple[int, Batch]] = queue.SimpleQueue()
    for numbered_batch in enumerate(batches):
        waiting.put(numbered_batch)
    stopped = threading.Event()

    with runtime.progress_bar("evaluating", len(tasks) * len(methods)) as advance, _catch_warnings() as pop_warnings:

        def work(items: ItemTensors) -> None:
            """Process batches until none is left; each writes its own part of the predictions."""
            with contextlib.suppress(queue.Empty):
                while not stopped.is_set():
                    number, batch = waiting.get_nowait()
                    gathered = Gathered(items, arrays, batch, seeds)  # once for all methods
                    for index, method in enumerate(methods):
                        for part, labels in _predict_batch(method, gathered, batch):
                            predicted[index, part.query - first] = labels
                        warned[index, number] = pop_warnings()
                        advance(len(batch.tasks))

        if len(workers) == 1:
            work(workers[0])
        else:
            with threads(len(workers)) as pool:
                try:
                    for future in as_completed([pool.submit(work, worker) for worker in workers]):
                        future.result()
                finally:
                    stopped.set()  # after an error or Ctrl-C, the other threads stop at their next batch
    by_batch = [[warned[index, number] for number in range(len(batches))] for index in range(len(methods))]
    return predicted, [[message for messages in batches for message in messages] for batches in by_batch]


def _workers(items: Sequence[ItemTensors], methods: Sequence[Method], threads: int | None) -> list[ItemTensors]:
    """List the items that each thread works on: one thread per GPU or CPU core, a single one for ordered methods."""
    if any(method.in_order for method in methods):
        return [items[0]]
    only_cpu = len(items) == 1 and items[0].device.type == "cpu"
    return [*items] * ((threads or torch.get_num_threads()) if only_cpu else 1)


def _predict_batch(method: Method, gathered: Gathered, batch: Batch) -> Iterator[tuple[Batch, npt.NDArray[Any]]]:
    """Predict the labels [B, m] of the queries of a batch, or of parts of it that fit into memory."""

    def labels(part: Batch) -> npt.NDArray[Any]:
        answers: npt.NDArray[Any] = (gathered if part is batch else gathered.of(part)).labels(method).cpu().numpy()
        return answers

    rows = f"{batch.support.shape[1]} support and {batch.query.shape[1]} query rows"
    description = f"method '{method}': one {batch.way}-way task with {rows}"
    return split_to_fit(batch, labels, gathered.items.device, description, "smaller features or smaller tasks")


def split_to_fit(
    batch: Batch,
    predict: Callable[[Batch], npt.NDArray[Any]],
    device: torch.device,
    description: str,
    advice: str,
) -> Iterator[tuple[Batch, npt.NDArray[Any]]]:
    """Predict the labels of a batch of tasks, halving it until the parts fit into memory.

    Args:
        batch: tasks
        predict: function that returns the labels [B, m] of the queries of some tasks
        device: device whose memory limits the batch
        description: description of one task, for messages
        advice: what the user can try, other than another device

    Raises:
        InputError: a single task does not fit.
    """
    count = len(batch.tasks)
    try:
        labels = predict(batch)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        if count == 1:
            raise InputError(
                f"{description} does not fit into the memory of {device}: use another device, {advice}"
            ) from error
    else:
        yield batch, labels
        return
    # Outside the handler, because the error keeps the large tensors alive.
    if device.type == "cuda":
        torch.cuda.empty_cache()
    for half in (slice(0, count // 2), slice(count // 2, count)):
        yield from split_to_fit(batch.part(half), predict, device, description, advice)


def out_of_memory(error: Exception) -> bool:
    """Return whether an error says that memory ran out; on a CPU, PyTorch says so only in its message."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)


@contextlib.contextmanager
def _catch_warnings() -> Iterator[Callable[[], list[str]]]:
    """Record warnings; the yielded function returns the first lines of those of its own thread, and clears them."""
    local = threading.local()

    def record(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        line = f"{category.__name__}: {message}".strip().splitlines()[0]
        vars(local).setdefault("messages", []).append(line)

    def pop_warnings() -> list[str]:
        messages: list[str] = vars(local).pop("messages", [])
        return messages

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = record
        yield pop_warnings
