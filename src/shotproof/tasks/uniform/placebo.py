"""A placebo: the same tasks with the attributes, contexts or whatever decided their items shuffled within classes.

Shuffling the words between the items of a class keeps how many words each item has and how frequent each word is in the
class, and takes away whatever the words have to do with the items. A sampler that looks at words and classes alone then
draws the same task with other items: every item x of a class becomes p(x), for one random permutation p of the class.
So the placebo of a task set is that task set with its items permuted within classes, anew for each task, which is the
mean over all shufflings rather than one of them.

Sets that are matched share the permutations, so that their placebos are matched too. Where a permutation would put a
query beside a support item of the same source, the query becomes another item of the class, of a source that is not in
the support.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.core import draws
from shotproof.core.arrays import IntArray
from shotproof.core.errors import InsufficientData, Mismatch
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.taskset import TaskSet

_AT_A_TIME = 2**20  # random numbers drawn at a time


@dataclass(frozen=True)
class Placebo(Sampler):
    """The tasks of `like` with every class's items permuted: what the sampler draws when its words mean nothing."""

    about = "the tasks of another set with the items of each class shuffled, so that no attribute or context misleads"
    example = "placebo(per_task=False)"
    takes = ("like",)
    needs = ("like",)
    axis = None

    per_task: bool = option(True, "shuffle anew for each task; False: once for all tasks, as in one shuffled data set")

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Placebo]:
        """The placebo of these inputs' `like`."""
        return BoundPlacebo(self, inputs)


class BoundPlacebo(BoundSampler[Placebo]):
    """Permutes the items of a task set within classes."""

    def __init__(self, sampler: Placebo, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        self.pool = ItemPool.of(inputs.catalog)

    def summary(self, tasks: TaskSet) -> Meta:
        """The classes that `like` left out."""
        assert self.like is not None
        return {"classes_left_out": list(self.like.record.classes_left_out)}

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks."""
        table = self.rows_of_like(tasks)
        sides = [self._positions(table, side) for side in ("support", "query")]
        step = max(1, _AT_A_TIME // int(self.pool.sizes.max()))
        for first in range(0, len(table), step):
            self._permute(table, range(first, min(first + step, len(table))), sides)
        if self.pool.sources is not None:
            self._separate_sources(table, sides)
        for side, (positions, ends) in zip(("support", "query"), sides, strict=True):
            table = self.pool.with_side(table, side, positions, np.diff(ends))
        return table

    def _positions(self, table: pa.Table, side: str) -> tuple[IntArray, IntArray]:
        """Where the items of all rows are in the pool, end to end, and where each row's begin: [items], [rows + 1]."""
        items = pc.list_flatten(table.column(side))
        found = pc.index_in(items, value_set=self.pool.items)
        if found.null_count:
            item = items[int(np.argmax(found.is_null().to_numpy(zero_copy_only=False)))]
            raise Mismatch(f"the task set to be like has the item '{item}', which is not in this catalog and split")
        counts = pc.list_value_length(table.column(side)).to_numpy()
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return found.to_numpy().astype(np.int64), ends

    def _permute(self, table: pa.Table, rows: range, sides: list[tuple[IntArray, IntArray]]) -> None:
        """Put the permuted positions of these rows in place of their own."""
        task, slot = (table.column(name).to_numpy()[rows.start : rows.stop] for name in ("task", "slot"))
        support, ends = sides[0]
        classes = self.pool.class_of[support[ends[rows.start : rows.stop]]]
        place, sizes = np.arange(self.pool.sizes[classes].max()), self.pool.sizes[classes][:, None]
        drawn_for = (task[:, None], slot[:, None]) if self.sampler.per_task else (classes[:, None],)
        keys = draws.bits(self.seed, *drawn_for, place)
        keys[place >= sizes] = np.iinfo(np.uint64).max  # beyond the class: last, so that they stay there
        order = np.argsort(keys, axis=1, kind="stable")
        for positions, ends in sides:
            these = slice(ends[rows.start], ends[rows.stop])
            row = np.repeat(np.arange(len(rows)), np.diff(ends[rows.start : rows.stop + 1]))
            offset = self.pool.offsets[classes][row]
            positions[these] = offset + order[row, positions[these] - offset]

    def _separate_sources(self, table: pa.Table, sides: list[tuple[IntArray, IntArray]]) -> None:
        """Give queries of a source that is in the support the place of an item of the class whose source is not."""
        assert self.pool.sources is not None
        (support, support_ends), (query, query_ends) = sides
        task, slot = (table.column(name).to_numpy() for name in ("task", "slot"))
        for row in range(len(table)):
            shown = self.pool.sources[support[support_ends[row] : support_ends[row + 1]]]
            asked = query[query_ends[row] : query_ends[row + 1]]  # a view: assigned to in place
            clash = np.isin(self.pool.sources[asked], shown)
            if not clash.any():
                continue
            chosen = int(self.pool.class_of[asked[0]])
            own = np.arange(self.pool.offsets[chosen], self.pool.offsets[chosen + 1])
            free = own[~np.isin(self.pool.sources[own], shown) & ~np.isin(own, asked)]
            if len(free) < clash.sum():
                raise InsufficientData(
                    f"task {task[row]}: class '{self.pool.classes[chosen]}' has too few sources for a placebo: its "
                    f"{clash.sum()} queries of a support item's source cannot be replaced, {len(free)} items are left"
                )
            keys = draws.bits(self.seed, int(task[row]), int(slot[row]), len(own) + free - own[0])
            asked[clash] = free[np.argsort(keys, kind="stable")[: clash.sum()]]
