"""Batches of an epoch: rows of the item store, drawn by counter, so that every epoch can be reproduced on its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
import torch
from torch import Tensor

from shotproof.core import draws
from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError
from shotproof.models.decoded_items import ItemStore
from shotproof.tasks.sampler import BoundSampler, Sampler
from shotproof.tasks.taskset import TaskSet

BLOCK = 256  # tasks drawn at a time
ORDER, STEP, ADDITIONAL, START, AUGMENT = range(5)  # purposes of random numbers


def derive_seed(seed: int, *counters: int) -> int:
    """Derive a seed for a generator from a seed and counters."""
    return int(draws.bits(seed, *counters) >> np.uint64(1))


@dataclass(frozen=True)
class TaskRows:
    """Tasks of one shape: rows of support [B, n] and query [B, m], their labels, and class numbers [B, way]."""

    support: Tensor
    support_labels: Tensor
    query: Tensor
    query_labels: Tensor
    classes: Tensor

    def __getitem__(self, part: slice) -> TaskRows:
        return TaskRows(*(tensor[part] for tensor in self._tensors))

    def __len__(self) -> int:
        return len(self.classes)

    def followed_by(self, other: TaskRows) -> TaskRows:
        """Return these tasks, followed by others of the same shape."""
        return TaskRows(*map(torch.cat, zip(self._tensors, other._tensors, strict=True)))

    def to(self, device: torch.device) -> TaskRows:
        """Return the tasks on a device."""
        return TaskRows(*(tensor.to(device, non_blocking=True) for tensor in self._tensors))

    @property
    def _tensors(self) -> tuple[Tensor, ...]:
        return self.support, self.support_labels, self.query, self.query_labels, self.classes


def item_order(items: int, seed: int, epoch: int) -> Tensor:
    """Draw the order of all rows in an epoch."""
    generator = torch.Generator().manual_seed(derive_seed(seed, ORDER, epoch))
    return torch.randperm(items, generator=generator)


def draw_tasks(
    bound: BoundSampler[Sampler], tasks: range, store: ItemStore, class_numbers: dict[str, int]
) -> Iterator[TaskRows]:
    """Draw tasks with a sampler, and yield them in blocks.

    Raises:
        InputError: the tasks differ in shape.
    """
    for start in range(tasks.start, tasks.stop, BLOCK):
        block = range(start, min(start + BLOCK, tasks.stop))
        yield task_rows(TaskSet(bound.draw(block)), store, class_numbers)


def task_rows(tasks: TaskSet, store: ItemStore, class_numbers: dict[str, int]) -> TaskRows:
    """Convert a task set to rows of the item store. Raise InputError if its tasks differ in shape."""
    sides = [tasks.table.column(name) for name in ("support", "query")]
    ways = np.diff(tasks.starts)
    counts = [pc.list_value_length(convert_side).to_numpy().astype(np.int64) for convert_side in sides]
    if len(set(ways.tolist())) > 1 or any(len(set(sizes.tolist())) > 1 for sizes in counts):
        raise InputError(
            "training needs tasks of one shape, with the same number of support and query items for every class: "
            "choose another sampler or other options"
        )
    way, count = int(ways[0]), len(tasks)
    slots = np.arange(way)

    def convert_side(column: int) -> tuple[Tensor, Tensor]:
        rows = store.rows_of(pc.list_flatten(sides[column])).reshape(count, -1)
        labels = np.tile(np.repeat(slots, counts[column][0]), (count, 1))
        return torch.from_numpy(rows), torch.from_numpy(labels)

    classes: IntArray = np.array([class_numbers[label] for label in tasks.table.column("label").to_pylist()])
    return TaskRows(*convert_side(0), *convert_side(1), torch.from_numpy(classes.reshape(count, way)))
