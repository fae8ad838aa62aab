"""Placebos: the same tasks, but with the attributes or contexts that decided their items shuffled within classes.

Shuffling words between the items of a class keeps how many words each item has and how frequent each word is in the
class, but removes any relation between words and items. A sampler that uses only words and classes then draws the same
task with other items: every item x of a class becomes p(x), for one random permutation p of the class. So the placebo
of a task set is that task set with its items permuted within classes, anew for each task. This averages over shuffles
instead of relying on a single one.

Matched sets share the permutations, so their placebos are matched too. If a permutation gives a query the same source
as a support item, the query is replaced by another item of the class, of a source that is not in the support.
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
    """Tasks of `like` with the items of each class permuted, as if drawn by words that mean nothing."""

    about = "the tasks of another set with the items of each class shuffled, so that no attribute or context misleads"
    example = "placebo(per_task=False)"
    takes = ("like",)
    needs = ("like",)
    axis = None

    per_task: bool = option(
        True, "shuffle anew for each task; False shuffles once for all tasks, like one shuffled data set"
    )

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Placebo]:
        """Bind the sampler to these inputs."""
        return BoundPlacebo(self, inputs)


class BoundPlacebo(BoundSampler[Placebo]):
    """Placebo sampler bound to its inputs."""

    def __init__(self, sampler: Placebo, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        self.pool = ItemPool.of(inputs.catalog)

    def summary(self, tasks: TaskSet) -> Meta:
        """Summarize which classes `like` left out."""
        assert self.like is not None
        return {"classes_left_out": list(self.like.record.classes_left_out)}

    def draw(self, tasks: range) -> pa.Table:
        """Draw the rows of these tasks."""
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
        """Return the positions of all rows' items in the pool, [items], and the start of each row, [rows + 1]."""
        items = pc.list_flatten(table.column(side))
        positions = pc.index_in(items, value_set=self.pool.items)
        if positions.null_count:
            item = items[int(np.argmax(positions.is_null().to_numpy(zero_copy_only=False)))]
            raise Mismatch(f"the tasks of `like` have the item '{item}', which this catalog and split do not have")
        counts = pc.list_value_length(table.column(side)).to_numpy()
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return positions.to_numpy().astype(np.int64), ends

    def _permute(self, table: pa.Table, rows: range, sides: list[tuple[IntArray, IntArray]]) -> None:
        """Permute the positions of these rows, in place."""
        task, slot = (table.column(name).to_numpy()[rows.start : rows.stop] for name in ("task", "slot"))
        support, ends = sides[0]
        classes = self.pool.class_of[support[ends[rows.start : rows.stop]]]
        index, sizes = np.arange(self.pool.sizes[classes].max()), self.pool.sizes[classes][:, None]
        stream = (task[:, None], slot[:, None]) if self.sampler.per_task else (classes[:, None],)
        keys = draws.bits(self.seed, *stream, index)
        keys[index >= sizes] = np.iinfo(np.uint64).max  # beyond the class: sorted last, so that they stay there
        order = np.argsort(keys, axis=1, kind="stable")
        for positions, ends in sides:
            span = slice(ends[rows.start], ends[rows.stop])
            row = np.repeat(np.arange(len(rows)), np.diff(ends[rows.start : rows.stop + 1]))
            offset = self.pool.offsets[classes][row]
            positions[span] = offset + order[row, positions[span] - offset]

    def _separate_sources(self, table: pa.Table, sides: list[tuple[IntArray, IntArray]]) -> None:
        """Replace queries that share a source with the support by items of the class that do not."""
        assert self.pool.sources is not None
        (support, support_ends), (query, query_ends) = sides
        task, slot = (table.column(name).to_numpy() for name in ("task", "slot"))
        for row in range(len(table)):
            support_sources = self.pool.sources[support[support_ends[row] : support_ends[row + 1]]]
            queries = query[query_ends[row] : query_ends[row + 1]]  # a view, modified in place
            shares_source = np.isin(self.pool.sources[queries], support_sources)
            if not shares_source.any():
                continue
            chosen = int(self.pool.class_of[queries[0]])
            items = np.arange(self.pool.offsets[chosen], self.pool.offsets[chosen + 1])
            replacements = items[~np.isin(self.pool.sources[items], support_sources) & ~np.isin(items, queries)]
            if len(replacements) < shares_source.sum():
                raise InsufficientData(
                    f"task {task[row]}: class '{self.pool.classes[chosen]}' has too few sources for a placebo: "
                    f"{shares_source.sum()} of its queries share a source with the support, but only "
                    f"{len(replacements)} items can replace them"
                )
            keys = draws.bits(self.seed, int(task[row]), int(slot[row]), len(items) + replacements - items[0])
            queries[shares_source] = replacements[np.argsort(keys, kind="stable")[: shares_source.sum()]]
