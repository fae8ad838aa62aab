"""Tasks drawn without replacement until the data is used up (Lafargue et al., *Oops, I Sampled it Again*, Alg. 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from shotproof.core import draws
from shotproof.core.arrays import IntArray
from shotproof.core.errors import InsufficientData
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import SKIP_SMALL_CLASSES, BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.taskset import TaskSet

_CLASSES, _ITEMS, _SPREAD = 0, 1, 2  # purposes of random numbers


@dataclass(frozen=True)
class Depletion(Sampler):
    """Classes uniformly among those with shot + query items left, items uniformly among those left, none twice."""

    about = "classes and items at random, no item twice, until the data is used up"
    axis = None
    paper = "Lafargue et al., Oops, I Sampled it Again, 2024"

    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Depletion]:
        """Bind the sampler to these inputs."""
        return BoundDepletion(self, inputs)


class BoundDepletion(BoundSampler[Depletion]):
    """Depletion sampler bound to its inputs.

    How a class's items are split does not depend on other classes. So each class is first cut into draws of shot +
    query items; tasks then use the next draw of each of their classes.
    """

    def __init__(self, sampler: Depletion, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        all_items = ItemPool.of(inputs.catalog)
        self.pool = all_items.fitting(self.shape, sampler.skip_small_classes)
        self.left_out = sorted(set(all_items.classes) - set(self.pool.classes))
        order, slots = self._cut_classes()
        self.classes, draw_index = draw_classes(slots, self.shape.way, self.seed)
        size = self.shape.items_per_class
        self.items = order[(self.pool.offsets[self.classes] + draw_index * size)[..., None] + np.arange(size)]

    def available(self) -> int:
        """Return the number of tasks that the data is enough for."""
        return len(self.classes)

    def draw(self, tasks: range) -> pa.Table:
        """Return the rows of these tasks."""
        rows = slice(tasks.start, tasks.stop)
        shot, items = self.shape.shot, self.items[rows]
        return self.pool.task_rows(tasks, self.classes[rows], items[..., :shot], items[..., shot:])

    def _cut_classes(self) -> tuple[IntArray, IntArray]:
        """Return positions class by class, each class beginning with its draws; and the number of draws per class."""
        size = self.shape.items_per_class
        if self.pool.sources is None:
            keys = draws.bits(self.seed, _ITEMS, np.arange(len(self.pool.rows)))
            return np.lexsort((keys, self.pool.class_of)), self.pool.sizes // size
        order, slots = np.arange(len(self.pool.rows)), np.zeros(len(self.pool.classes), dtype=np.int64)
        for chosen, (start, stop) in enumerate(zip(self.pool.offsets[:-1], self.pool.offsets[1:], strict=True)):
            drawn = self._draw_apart(range(start, stop), chosen)
            order[start : start + len(drawn) * size] = np.ravel(drawn)
            slots[chosen] = len(drawn)
        return order, slots

    def _draw_apart(self, positions: range, chosen: int) -> list[list[int]]:
        """Draw from one class until it is used up: support then query, with no source on both sides of a draw."""
        assert self.pool.sources is not None
        source = dict(zip(positions, self.pool.sources[positions.start : positions.stop].tolist(), strict=True))
        shot, query = self.shape.shot, self.shape.query
        remaining, drawn = list(positions), list[list[int]]()
        while can_split([source[p] for p in remaining], shot, query):
            keys = draws.bits(self.seed, _SPREAD, len(drawn), np.asarray(remaining))
            remaining = [remaining[i] for i in np.argsort(keys, kind="stable")]
            support = _select_support(remaining, source, shot, query)
            support_sources = {source[p] for p in support}
            drawn.append(support + [p for p in remaining if source[p] not in support_sources][:query])
            remaining = sorted(set(remaining) - set(drawn[-1]))
        if not drawn:
            raise InsufficientData(
                f"class '{self.pool.classes[chosen]}' has {len(set(source.values()))} sources in {len(positions)} "
                f"items, which cannot be split into {shot} support and {query} query items without a source on "
                "both sides: lower the shots or the queries"
            )
        return drawn

    def summary(self, tasks: TaskSet) -> Meta:
        """Summarize which classes are too small, and the total number of tasks."""
        return {"classes_left_out": self.left_out, "tasks_in_all": self.available()}


def draw_classes(slots: Sequence[int] | IntArray, way: int, seed: int) -> tuple[IntArray, IntArray]:
    """Draw the classes of each task uniformly among those with a draw left, until there are fewer than `way`.

    Args:
        slots: number of draws of each class
        way: classes per task
        seed: random seed

    Returns:
        The classes of each task, and the index of the draw that each class contributes, both [tasks, way].
    """
    left = [int(n) for n in slots]
    available = [c for c, n in enumerate(left) if n]
    # 32 random bits per class, for the largest possible number of tasks, as plain integers for the loop.
    most = np.arange(sum(left) // way)
    random = (draws.bits(seed, _CLASSES, most[:, None], np.arange(way)) >> np.uint64(32)).tolist()
    chosen, left_before = list[list[int]](), list[list[int]]()
    for numbers in random:
        if len(available) < way:
            break
        for i, number in enumerate(numbers):
            j = i + (number * (len(available) - i) >> 32)
            available[i], available[j] = available[j], available[i]
        chosen.append(available[:way])
        left_before.append([left[c] for c in chosen[-1]])
        for i in reversed(range(way)):
            left[available[i]] -= 1
            if left[available[i]] == 0:
                available[i] = available[-1]
                available.pop()
    classes = np.array(chosen, dtype=np.int64).reshape(-1, way)
    return classes, np.asarray(slots, dtype=np.int64)[classes] - np.array(left_before, dtype=np.int64).reshape(-1, way)


def can_split(sources: Sequence[int], shot: int, query: int, support_sources: frozenset[int] = frozenset()) -> bool:
    """Return whether items of these sources can be split into `shot` and `query` items without a common source.

    Args:
        sources: source of each item
        shot: number of support items
        query: number of query items
        support_sources: sources that are already on the support side
    """
    sizes = Counter(sources)
    sums = 1 << sum(sizes[s] for s in support_sources)  # bit n: some choice of sources has n items in total
    for source, size in sizes.items():
        if source not in support_sources:
            sums |= sums << size
    largest_support = len(sources) - query
    return largest_support >= shot and (sums >> shot) & ((1 << (largest_support - shot + 1)) - 1) != 0


def _select_support(order: list[int], source: dict[int, int], shot: int, query: int) -> list[int]:
    """Select the first items, in this order, that leave enough items of other sources for the query."""
    sources = [source[p] for p in order]
    support_sources: frozenset[int] = frozenset()
    support: list[int] = []
    for position in order:
        wider = support_sources | {source[position]}
        if wider == support_sources or can_split(sources, shot, query, wider):
            support_sources = wider
            support.append(position)
        if len(support) == shot:
            break
    return support
