"""What an epoch is made of: rows of the item store, drawn by counter, so that any epoch can be made again."""

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

BLOCK = 256  # tasks that are drawn at a time
ORDER, STEP, BESIDE, START, CHANGES = range(5)  # what a random number is drawn for


def seed_for(seed: int, *counters: int) -> int:
    """A seed of its own for each combination of counters, as a generator takes it."""
    return int(draws.bits(seed, *counters) >> np.uint64(1))


@dataclass(frozen=True)
class TaskRows:
    """Tasks of one shape: rows [B, n] and [B, m], their labels, and the numbers of their classes, [B, way]."""

    support: Tensor
    support_labels: Tensor
    query: Tensor
    query_labels: Tensor
    classes: Tensor

    def __getitem__(self, part: slice) -> TaskRows:
        return TaskRows(*(each[part] for each in self._tensors))

    def __len__(self) -> int:
        return len(self.classes)

    def followed_by(self, other: TaskRows) -> TaskRows:
        """These tasks, then others of the same shape."""
        return TaskRows(*map(torch.cat, zip(self._tensors, other._tensors, strict=True)))

    def to(self, device: torch.device) -> TaskRows:
        """The same on a device."""
        return TaskRows(*(each.to(device, non_blocking=True) for each in self._tensors))

    @property
    def _tensors(self) -> tuple[Tensor, ...]:
        return self.support, self.support_labels, self.query, self.query_labels, self.classes


def item_order(items: int, seed: int, epoch: int) -> Tensor:
    """All rows in the random order of an epoch."""
    generator = torch.Generator().manual_seed(seed_for(seed, ORDER, epoch))
    return torch.randperm(items, generator=generator)


def drawn_tasks(
    bound: BoundSampler[Sampler], tasks: range, store: ItemStore, class_numbers: dict[str, int]
) -> Iterator[TaskRows]:
    """Tasks by a sampler, in blocks.

    Raises:
        InputError: the sampler's tasks are not all of one shape.
    """
    for start in range(tasks.start, tasks.stop, BLOCK):
        block = range(start, min(start + BLOCK, tasks.stop))
        yield task_rows(TaskSet(bound.draw(block)), store, class_numbers)


def task_rows(tasks: TaskSet, store: ItemStore, class_numbers: dict[str, int]) -> TaskRows:
    """A task set as rows of the item store; InputError where its tasks are not of one shape."""
    sides = [tasks.table.column(name) for name in ("support", "query")]
    ways = np.diff(tasks.starts)
    counts = [pc.list_value_length(side).to_numpy().astype(np.int64) for side in sides]
    if len(set(ways.tolist())) > 1 or any(len(set(each.tolist())) > 1 for each in counts):
        raise InputError(
            "training takes tasks of one shape, with as many support and query items of every class: "
            "choose a sampler, or options of it, that draws such tasks"
        )
    way, count = int(ways[0]), len(tasks)
    slots = np.arange(way)

    def side(column: int) -> tuple[Tensor, Tensor]:
        rows = store.rows_of(pc.list_flatten(sides[column])).reshape(count, -1)
        labels = np.tile(np.repeat(slots, counts[column][0]), (count, 1))
        return torch.from_numpy(rows), torch.from_numpy(labels)

    classes: IntArray = np.array([class_numbers[one] for one in tasks.table.column("label").to_pylist()])
    return TaskRows(*side(0), *side(1), torch.from_numpy(classes.reshape(count, way)))
