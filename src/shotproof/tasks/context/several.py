"""Supports in several contexts, which classes of a task may share: the papers' form of the context sets.

MetaCoCo and SpurAudio say of iid tasks that support and queries have the same contexts, and of ood tasks that they have
different ones; a class has several contexts, and nothing keeps two classes from having the same.

1. Classes are drawn uniformly, and for each a set of contexts T_c: `support_contexts` of those that the class has, or
   all but as many, drawn at random, as hold the queries of `ood`.
2. Support: `shot` items, shared out evenly between the contexts of T_c.
3. Query: `iid` allows T_c, `ood` what the class has beside, `hard-ood` the contexts of the other classes' T_c' that are
   not in T_c, each evenly as before.
"""

from __future__ import annotations

import numpy as np

from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray
from shotproof.tasks.context.allocation import allocate_evenly
from shotproof.tasks.context.sampler import CLASSES, CONTEXTS, ORDER, SUPPORT, BoundContext


class BoundSeveral(BoundContext):
    """Draws the tasks of one of the matched sets, with supports in several contexts."""

    def _find_eligible(self) -> None:
        """Which classes have enough contexts: [classes, contexts], all of a class's contexts or none."""
        sizes, query = self.cells.sizes.copy(), self.shape.query
        enough = np.ones(len(sizes), dtype=np.bool_)
        self.usable = self.cells.context_of >= 0
        if self.clean >= 0:
            clean = self.cells.context_of == self.clean
            enough = (sizes * clean).sum(axis=1) >= query
            self.usable &= ~clean
            sizes[clean] = 0
        wanted = self.sampler.support_contexts
        largest_first = -np.sort(-sizes, axis=1)
        count = self.usable.sum(axis=1)
        # What the support's contexts may hold at most, and what is left beside the largest for ood.
        most = largest_first.sum(axis=1) - query if wanted == "all" else largest_first[:, :wanted].sum(axis=1)
        enough &= most >= self.shape.shot + query
        enough &= count > (1 if wanted == "all" else wanted)
        self.eligible = (self.cells.counts > 0) & enough[:, None]
        if self.clean >= 0:
            self.eligible[:, self.clean] = False
        self.held = self.eligible

    def _choose(self, task: IntArray, attempt: int) -> tuple[IntArray, IntArray, BoolArray]:
        way, able = self.shape.way, np.flatnonzero(self.eligible.any(axis=1))
        slot = np.arange(way)
        random = draws.bits(self.seed, task[:, None], attempt, CLASSES, slot)
        classes = able[draws.distinct(random, len(able))]
        place = np.arange(self.cells.widest)
        keys = draws.bits(self.seed, task[:, None, None], attempt, CONTEXTS, slot[:, None], place)
        usable = self.usable[classes]
        keys[~usable] = np.iinfo(np.uint64).max  # last
        order = np.argsort(keys, axis=2, kind="stable")
        if self.sampler.support_contexts == "all":
            # The first contexts of the order are left to ood, until they hold its queries.
            sizes = np.take_along_axis(np.where(usable, self.cells.sizes[classes], 0), order, axis=2)
            chosen = np.cumsum(sizes, axis=2) - sizes >= self.shape.query
        else:
            chosen = np.broadcast_to(place < self.sampler.support_contexts, order.shape)
        own = np.zeros(order.shape, dtype=np.bool_)
        np.put_along_axis(own, order, chosen, axis=2)
        own &= usable
        found = np.all(np.where(own, self.cells.sizes[classes], 0).sum(axis=2) >= self.shape.shot, axis=1)
        return task[found], classes[found], own[found]

    def _support(self, task: IntArray, attempt: int, classes: IntArray, own: BoolArray) -> IntArray:
        slot, place = np.arange(self.shape.way)[:, None], np.arange(self.cells.widest)
        order = np.argsort(draws.bits(self.seed, task[:, None, None], attempt, ORDER, SUPPORT, slot, place), axis=2)
        allocated = allocate_evenly(np.where(own, self.cells.sizes[classes], 0), order, self.shape.shot)
        row, at, place = np.nonzero(allocated)
        wanted = allocated[row, at, place]
        cell, size = self.cells.first[classes[row, at]] + place, self.cells.sizes[classes[row, at], place]
        goes_to = np.cumsum(wanted) - wanted  # every class's support adds up to the design's: one after the other
        support = np.empty((*classes.shape, self.shape.shot), dtype=np.int64)
        for many in np.unique(wanted):
            of = np.flatnonzero(wanted == many)
            random = draws.bits(self.seed, task[row[of], None], attempt, SUPPORT, cell[of, None], np.arange(many))
            items = self.cells.starts[cell[of], None] + draws.distinct(random, size[of])
            support.reshape(-1)[goes_to[of, None] + np.arange(many)] = items
        return support

    def _allows_hard(self, free: IntArray, others: BoolArray) -> BoolArray:
        enough: BoolArray = np.where(others, free, 0).sum(axis=2) >= self.shape.query
        return enough

    def _extra_columns(self, contexts: list[list[str]]) -> dict[str, list[list[str]]]:
        return {"support_contexts": contexts}
