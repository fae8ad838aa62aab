"""All methods on all tasks, batch by batch: by a CPU's threads or by devices, in halves where memory runs out."""

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
    """All methods on a range of the tasks, on the devices of the current runtime: what an engine sends to a machine."""

    arrays: TaskArrays
    methods: Sequence[Method]
    seeds: IntArray
    chunk: int | None

    def __call__(self, tasks: range) -> tuple[Predicted, list[list[str]]]:
        """As `predict_tasks`."""
        return predict_tasks(self.arrays, self.methods, self.seeds, self._items, current_runtime(), self.chunk, tasks)

    @functools.cached_property
    def _items(self) -> list[ItemTensors]:
        """Made once for all ranges."""
        devices = choose_devices(current_runtime().device)
        return items_on(devices, self.arrays, self.methods)


def items_on(devices: Sequence[torch.device], arrays: TaskArrays, methods: Sequence[Method]) -> list[ItemTensors]:
    """The items on each device, with what methods share of them."""
    made = {device: ItemTensors(arrays, device) for device in devices}
    for items in made.values():
        items.prepare(methods)
    return [made[device] for device in devices]


def predict_tasks(
    arrays: TaskArrays,
    methods: Sequence[Method],
    seeds: IntArray,
    items: Sequence[ItemTensors],
    runtime: Runtime,
    chunk: int | None = None,
    tasks: range | None = None,
) -> tuple[Predicted, list[list[str]]]:
    """The label that each method gives to each query, and what each method warned of.

    Args:
        arrays: the tasks, and the features of their items
        methods: what to evaluate
        seeds: for methods that draw, [tasks]
        items: on each device that shares the batches; on a CPU as many threads do as PyTorch would use for one
            operation, which is too small to be shared
        runtime: threads and progress
        chunk: tasks per batch (default: by memory)
        tasks: which ones (default: all)

    Returns:
        The labels, [methods, queries of these tasks], and a list of messages per method.
    """
    tasks = range(len(arrays.way)) if tasks is None else tasks
    first, stop = arrays.query.first[[tasks.start, tasks.stop]]
    workers = _workers(items, methods, runtime.workers)

    def size(shape: IntArray, count: int) -> int:
        """Equal parts, as many for each worker."""
        most = tasks_at_a_time(shape, workers[0], list(methods))
        return chunk or math.ceil(count / (len(workers) * math.ceil(count / (most * len(workers)))))

    batches = arrays.batches_of(tasks, size)
    workers = workers[: len(batches)]
    if any(one.device.type == "cpu" for one in items):
        keep_freed_memory()
    predicted = np.empty((len(methods), stop - first), dtype=np.int16)
    warned: dict[tuple[int, int], list[str]] = {}
    waiting: queue.SimpleQueue[tuple[int, Batch]] = queue.SimpleQueue()
    for numbered in enumerate(batches):
        waiting.put(numbered)
    stopped = threading.Event()

    with runtime.progress_bar("evaluating", len(tasks) * len(methods)) as advance, _heard_warnings() as heard:

        def work(items: ItemTensors) -> None:
            """Take batches until none is left; each writes its own part of the predictions."""
            with contextlib.suppress(queue.Empty):
                while not stopped.is_set():
                    number, batch = waiting.get_nowait()
                    gathered = Gathered(items, arrays, batch, seeds)  # once for all methods
                    for index, method in enumerate(methods):
                        for part, labels in _answers(method, gathered, batch):
                            predicted[index, part.query - first] = labels
                        warned[index, number] = heard()
                        advance(len(batch.tasks))

        if len(workers) == 1:
            work(workers[0])
        else:
            with threads(len(workers)) as pool:
                try:
                    for done in as_completed([pool.submit(work, each) for each in workers]):
                        done.result()
                finally:
                    stopped.set()  # after an error, or where the user breaks off, the others stop at their next batch
    in_order = [[warned[index, number] for number in range(len(batches))] for index in range(len(methods))]
    return predicted, [[message for messages in each for message in messages] for each in in_order]


def _workers(items: Sequence[ItemTensors], methods: Sequence[Method], threads: int | None) -> list[ItemTensors]:
    """The items of each thread: one for each GPU, on a CPU one for each core; one in all for methods in order."""
    if any(method.in_order for method in methods):
        return [items[0]]
    alone = len(items) == 1 and items[0].device.type == "cpu"
    return [*items] * ((threads or torch.get_num_threads()) if alone else 1)


def _answers(method: Method, gathered: Gathered, batch: Batch) -> Iterator[tuple[Batch, npt.NDArray[Any]]]:
    """The labels [B, m] of the queries of a batch, or of parts of it that fit into memory."""

    def labels(part: Batch) -> npt.NDArray[Any]:
        answers: npt.NDArray[Any] = (gathered if part is batch else gathered.of(part)).labels(method).cpu().numpy()
        return answers

    rows = f"{batch.support.shape[1]} support and {batch.query.shape[1]} query rows"
    what = f"method '{method}': one task of {batch.way} ways, {rows}"
    return fitting(batch, labels, gathered.items.device, what, "smaller features or smaller tasks")


def fitting(
    batch: Batch,
    answer: Callable[[Batch], npt.NDArray[Any]],
    device: torch.device,
    what: str,
    instead: str,
) -> Iterator[tuple[Batch, npt.NDArray[Any]]]:
    """Answer a batch of tasks, or halves of it as small as memory needs.

    Args:
        batch: the tasks
        answer: gives the labels [B, m] of the queries of some of them
        device: whose memory it is
        what: names one task, for messages
        instead: what the user may do, beside taking another device

    Raises:
        InputError: one task does not fit.
    """
    count = len(batch.tasks)
    try:
        labels = answer(batch)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        if count == 1:
            raise InputError(
                f"{what} does not fit into the memory of {device}: use another device, {instead}"
            ) from error
    else:
        yield batch, labels
        return
    # Outside the handler: the error holds on to what did not fit.
    if device.type == "cuda":
        torch.cuda.empty_cache()
    for half in (slice(0, count // 2), slice(count // 2, count)):
        yield from fitting(batch.part(half), answer, device, what, instead)


def out_of_memory(error: Exception) -> bool:
    """Whether memory was too small; on a CPU PyTorch says so in words only."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)


@contextlib.contextmanager
def _heard_warnings() -> Iterator[Callable[[], list[str]]]:
    """Give a function that tells, and forgets, the first lines of what its own thread was warned of."""
    of_thread = threading.local()

    def hear(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        line = f"{category.__name__}: {message}".strip().splitlines()[0]
        vars(of_thread).setdefault("messages", []).append(line)

    def tell() -> list[str]:
        messages: list[str] = vars(of_thread).pop("messages", [])
        return messages

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = hear
        yield tell
