"""Tasks without replacement until the data is used up: Algorithm 2 of *Oops, I Sampled it Again* (Lafargue et al.)."""

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

_CLASSES, _ITEMS, _SPREAD = 0, 1, 2  # what a random number is drawn for


@dataclass(frozen=True)
class Depletion(Sampler):
    """Classes uniformly among those with shot + query items left, items uniformly among those left; none twice."""

    about = "classes and items at random, no item twice, until the data is used up"
    axis = None
    paper = "Lafargue et al., Oops, I Sampled it Again, 2024"

    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Depletion]:
        """All tasks that the data gives."""
        return BoundDepletion(self, inputs)


class BoundDepletion(BoundSampler[Depletion]):
    """Tasks until the data is used up.

    A class's items do not depend on the other classes, so each class is cut into draws of shot + query items first,
    and the tasks then take the classes' next draws.
    """

    def __init__(self, sampler: Depletion, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        whole = ItemPool.of(inputs.catalog)
        self.pool = whole.fitting(self.shape, sampler.skip_small_classes)
        self.left_out = sorted(set(whole.classes) - set(self.pool.classes))
        order, slots = self._cut()
        self.classes, turn = draw_classes(slots, self.shape.way, self.seed)
        need = self.shape.items_per_class
        self.items = order[(self.pool.offsets[self.classes] + turn * need)[..., None] + np.arange(need)]

    def available(self) -> int:
        """How many tasks the data gives."""
        return len(self.classes)

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks."""
        taken = slice(tasks.start, tasks.stop)
        shot, items = self.shape.shot, self.items[taken]
        return self.pool.task_rows(tasks, self.classes[taken], items[..., :shot], items[..., shot:])

    def _cut(self) -> tuple[IntArray, IntArray]:
        """Positions class by class, each class beginning with its draws one after the other; draws per class."""
        need = self.shape.items_per_class
        if self.pool.sources is None:
            keys = draws.bits(self.seed, _ITEMS, np.arange(len(self.pool.rows)))
            return np.lexsort((keys, self.pool.class_of)), self.pool.sizes // need
        order, slots = np.arange(len(self.pool.rows)), np.zeros(len(self.pool.classes), dtype=np.int64)
        for chosen, (start, stop) in enumerate(zip(self.pool.offsets[:-1], self.pool.offsets[1:], strict=True)):
            drawn = self._draws_apart(range(start, stop), chosen)
            order[start : start + len(drawn) * need] = np.ravel(drawn)
            slots[chosen] = len(drawn)
        return order, slots

    def _draws_apart(self, positions: range, chosen: int) -> list[list[int]]:
        """Draws of one class until none is left, support then query, no source on both sides of one."""
        assert self.pool.sources is not None
        source = dict(zip(positions, self.pool.sources[positions.start : positions.stop].tolist(), strict=True))
        shot, query = self.shape.shot, self.shape.query
        left, drawn = list(positions), list[list[int]]()
        while can_part([source[p] for p in left], shot, query):
            keys = draws.bits(self.seed, _SPREAD, len(drawn), np.asarray(left))
            left = [left[i] for i in np.argsort(keys, kind="stable")]
            support = _support_apart(left, source, shot, query)
            supported = {source[p] for p in support}
            drawn.append(support + [p for p in left if source[p] not in supported][:query])
            left = sorted(set(left) - set(drawn[-1]))
        if not drawn:
            raise InsufficientData(
                f"class '{self.pool.classes[chosen]}' has {len(set(source.values()))} sources in {len(positions)} "
                f"items: they cannot part into {shot} support and {query} query items without a source on both "
                "sides; lower the shots or the queries"
            )
        return drawn

    def summary(self, tasks: TaskSet) -> Meta:
        """Classes left out because they are too small, and how many tasks the data gives in all."""
        return {"classes_left_out": self.left_out, "tasks_in_all": self.available()}


def draw_classes(slots: Sequence[int] | IntArray, way: int, seed: int) -> tuple[IntArray, IntArray]:
    """The classes of each task, and which of its draws each class gives, [tasks, way] both.

    `slots` says how many draws each class has. Every task takes `way` classes uniformly among those with a draw left;
    the end is where there are fewer.
    """
    left = [int(n) for n in slots]
    alive = [c for c, n in enumerate(left) if n]
    # 32 random bits for each class of each task that there can be at most, as plain integers for the loop.
    most = np.arange(sum(left) // way)
    random = (draws.bits(seed, _CLASSES, most[:, None], np.arange(way)) >> np.uint64(32)).tolist()
    chosen, ahead = list[list[int]](), list[list[int]]()
    for numbers in random:
        if len(alive) < way:
            break
        for i, number in enumerate(numbers):
            j = i + (number * (len(alive) - i) >> 32)
            alive[i], alive[j] = alive[j], alive[i]
        chosen.append(alive[:way])
        ahead.append([left[c] for c in chosen[-1]])
        for i in reversed(range(way)):
            left[alive[i]] -= 1
            if left[alive[i]] == 0:
                alive[i] = alive[-1]
                alive.pop()
    classes = np.array(chosen, dtype=np.int64).reshape(-1, way)
    return classes, np.asarray(slots, dtype=np.int64)[classes] - np.array(ahead, dtype=np.int64).reshape(-1, way)


def can_part(sources: Sequence[int], shot: int, query: int, supported: frozenset[int] = frozenset()) -> bool:
    """Whether items of these sources part into `shot` and `query` ones, the `supported` sources on the first side."""
    sizes = Counter(sources)
    sums = 1 << sum(sizes[s] for s in supported)  # bit n: some choice of sources has n items in all
    for source, size in sizes.items():
        if source not in supported:
            sums |= sums << size
    most = len(sources) - query
    return most >= shot and (sums >> shot) & ((1 << (most - shot + 1)) - 1) != 0


def _support_apart(order: list[int], source: dict[int, int], shot: int, query: int) -> list[int]:
    """The first items in this order that leave enough items of other sources for the query."""
    sources = [source[p] for p in order]
    supported: frozenset[int] = frozenset()
    support: list[int] = []
    for position in order:
        wider = supported | {source[position]}
        if wider == supported or can_part(sources, shot, query, wider):
            supported = wider
            support.append(position)
        if len(support) == shot:
            break
    return support
