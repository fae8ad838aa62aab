"""Context shift: four matched sets of tasks, in which a class is shown in one context and asked for in the same,
in others, in those of the other classes, or in none (after MetaCoCo, ICLR 2024, and SpurAudio).

1. Classes are drawn one after the other, and with each a context t_c that no other class of the task has. Only those
   can be drawn that leave every query possible, so that all sets have the same classes and contexts.
2. Support: `shot` items of the class in t_c.
3. Query: `query` items of the class, none of a source that is in the task's support, shared out evenly between the
   contexts that the set allows: a round gives each context that has items left one, the last round some of them. `iid`
   allows t_c, `hard-ood` the other classes' t_c', `clean` the one that means none, `ood` all but t_c and the clean one,
   where the other classes' come first in every round.

This is with `support_contexts=1`. With more, a class has several contexts, which it may share with other classes
(`BoundSeveral`); what is said of t_c then holds of all of them.

Where a support's sources leave too few queries, or the draw of classes comes to a dead end, the task is drawn again.
All in array operations on blocks of tasks; since a draw is a function of seed, task and try, the block changes nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from shotproof.catalog.contexts import clean_context, contexts_of
from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.core.tables import digest
from shotproof.tasks.context.context_cells import Cells, allocate_evenly, one_of
from shotproof.tasks.context.context_refusals import hopeless_task, refuse_unusable
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import SKIP_SMALL_CLASSES, Axis, BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.taskset import TaskSet

CLASSES, CONTEXTS, SUPPORT, ORDER, QUERY = range(5)  # what a random number is drawn for


@dataclass
class Drawn:
    """Tasks without their queries: [n] task and try, [n, way] class, [n, way, shot] support.

    own: [n, way, widest] which of the class's cells have the contexts of its support
    free: [n, way, widest] the items of each of the class's cells that are of no source of the task's support
    """

    task: IntArray
    attempt: IntArray
    classes: IntArray
    own: BoolArray
    support: IntArray
    free: IntArray

    def only(self, keep: BoolArray) -> Drawn:
        """Some of them."""
        return Drawn(*(getattr(self, name)[keep] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class ContextOptions(Sampler):
    """The options that matched sets share: equal ones give the same classes and supports.

    No support has the clean context, and every class that is drawn can be asked for in it. Without `hard_ood`, classes
    need not have items in the other classes' contexts.
    """

    paper = "MetaCoCo, ICLR 2024; SpurAudio"
    axis: ClassVar[Axis | None] = "contexts"
    reference = "iid"
    has_placebo = True

    context_column: str = option("context", "the catalog's column with the contexts")
    clean_value: str | None = option(None, "the context that means none; None is what the catalog says")
    support_contexts: int | Literal["all"] = option(
        1,
        "contexts of a class's support: one, which no other class of the task has, or several, which others may share; "
        "all but those that ood needs (all)",
        least=1,
    )
    hard_ood: bool = option(True, "ask for what hard-ood needs; False where classes share few contexts")
    max_tries: int = option(1000, "the most tries per task", least=1)
    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)


class ContextSet(ContextOptions):
    """One of the matched sets: it says in which contexts its queries may be."""

    @abstractmethod
    def allowed(self, own: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """Which of a class's contexts a query may have, given which is its own, another class's, and the clean one."""

    def bound(self, inputs: SamplerInputs) -> BoundSampler[ContextSet]:
        """Tasks with the contexts of these inputs."""
        if self.support_contexts != 1:
            return BoundSeveral(self, inputs)
        return BoundContext(self, inputs)


class BoundContext(BoundSampler[ContextSet]):
    """Draws the tasks of one of the matched sets."""

    def __init__(self, sampler: ContextSet, inputs: SamplerInputs) -> None:
        column, clean_value = sampler.context_column, sampler.clean_value
        if clean_value is None:
            clean_value = clean_context(inputs.catalog, column)
        super().__init__(replace(sampler, clean_value=clean_value), inputs)
        whole = ItemPool.of(inputs.catalog)
        self.pool = whole.fitting(self.shape, sampler.skip_small_classes)
        by_row = contexts_of(inputs.catalog, column)
        contexts = [by_row[row] for row in self.pool.rows]
        self.without_context = contexts.count(None)
        self.cells = Cells(self.pool, contexts)
        self.clean = -1 if clean_value not in self.cells.contexts else self.cells.contexts.index(clean_value)
        self.items_per_context = -(-self.shape.query // (self.shape.way - 1))  # the most that hard-ood takes of one
        self._find_eligible()
        refuse_unusable(self)
        self.left_out = sorted(
            set(whole.classes) - {self.pool.classes[c] for c in np.flatnonzero(self.eligible.any(axis=1))}
        )

    def _find_eligible(self) -> None:
        """Where a class may have its support, and where it could be asked for in another's: [classes, contexts]."""
        counts, shot, query = self.cells.counts.copy(), self.shape.shot, self.shape.query
        enough = np.ones(len(counts), dtype=np.bool_)
        if self.clean >= 0:
            enough = counts[:, self.clean] >= query
            counts[:, self.clean] = 0
        self.held = counts >= self.items_per_context
        self.eligible = (counts >= shot + query) & enough[:, None]
        if self.sampler.hard_ood:
            self.eligible &= (self.held.sum(axis=1) >= self.shape.way)[:, None]
        else:
            self.eligible &= counts.sum(axis=1, keepdims=True) - counts >= query

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks; `attribute` is the context t_c, `tries` how many draws the task took, and `confounded`
        how many of the query items are in the context of another class's support.
        """
        drawn = self._draw_supports(np.arange(tasks.start, tasks.stop))
        query, confounded = self._queries(drawn)
        contexts = self._names(drawn)
        return self.pool.task_rows(
            tasks,
            drawn.classes,
            self.cells.positions[drawn.support],
            self.cells.positions[query],
            attributes=[", ".join(names) for names in contexts],
            extra={
                "tries": np.repeat(drawn.attempt + 1, self.shape.way).astype(np.int32),
                "confounded": confounded.ravel().astype(np.int32),
                **self._extra_columns(contexts),
            },
        )

    def _names(self, drawn: Drawn) -> list[list[str]]:
        """The contexts of each class's support, one class after the other."""
        row, slot, place = np.nonzero(drawn.own)
        names: list[list[str]] = [[] for _ in range(drawn.classes.size)]
        for at, context in zip(
            (row * self.shape.way + slot).tolist(),
            self.cells.context_of[drawn.classes[row, slot], place].tolist(),
            strict=True,
        ):
            names[at].append(self.cells.contexts[context])
        return names

    def _extra_columns(self, contexts: list[list[str]]) -> dict[str, list[list[str]]]:
        """Further columns, given the contexts of each class's support."""
        return {}

    def match(self, tasks: TaskSet) -> str:
        """Digest of what the four sets share: classes and support items, task by task."""
        return digest(tasks.table, ["task", "slot", "label", "support"])

    def summary(self, tasks: TaskSet) -> Meta:
        """Tries, the share of query items in the context of another class's support, and what was left out."""
        tries = tasks.table.column("tries").to_numpy()[tasks.starts[:-1]]
        confounded = tasks.table.column("confounded").to_numpy()
        return {
            "tries_mean": float(tries.mean()),
            "tries_max": int(tries.max()),
            "confounded_share": float(confounded.mean() / self.shape.query),
            "classes_left_out": self.left_out,
            "items_without_context": self.without_context,
        }

    def _draw_supports(self, task: IntArray) -> Drawn:
        """Classes, contexts and supports of tasks: each takes the first of its tries that leaves enough queries."""
        done: list[Drawn] = []
        for attempt in range(self.sampler.max_tries):
            chosen, classes, own = self._choose(task, attempt)
            unused = self.cells.sizes[classes]
            tried = Drawn(chosen, np.full(len(chosen), attempt), classes, own, np.empty(0, np.int64), unused)
            tried.support = self._support(tried)
            tried.free = self._free(classes, tried.support)
            done.append(tried.only(self._leaves_queries(tried)))
            task = np.setdiff1d(task, done[-1].task)
            if not len(task):
                break
        else:
            raise hopeless_task(self, int(task[0]), lacked_partners=task[0] not in chosen)
        joined = [np.concatenate([getattr(one, name) for one in done]) for name in Drawn.__dataclass_fields__]
        order = np.argsort(joined[0])
        return Drawn(*(part[order] for part in joined))

    def _choose(self, task: IntArray, attempt: int) -> tuple[IntArray, IntArray, BoolArray]:
        """The tasks [n] that come to no dead end, their classes [n, way] and their supports' cells [n, way, widest]."""
        size, row = len(task), np.arange(len(task))
        classes, contexts = np.zeros((2, size, self.shape.way), dtype=np.int64)
        class_open = np.ones((size, len(self.eligible)), dtype=np.bool_)
        context_open = np.ones((size, self.eligible.shape[1]), dtype=np.bool_)
        found = np.ones(size, dtype=np.bool_)
        weights = self.eligible.T.astype(np.float32)
        for slot in range(self.shape.way):
            able = class_open & (context_open.astype(np.float32) @ weights > 0)
            found &= able.any(axis=1)
            chosen = one_of(able, draws.bits(self.seed, task, attempt, CLASSES, slot))
            places = context_open & self.eligible[chosen]
            context = one_of(places, draws.bits(self.seed, task, attempt, CONTEXTS, slot))
            classes[:, slot], contexts[:, slot] = chosen, context
            class_open[row, chosen] = False
            context_open[row, context] = False
            if self.sampler.hard_ood:
                class_open &= self.held.T[context]
                context_open &= self.held[chosen]
        own = self.cells.context_of[classes] == contexts[..., None]
        return task[found], classes[found], own[found]

    def _support(self, drawn: Drawn) -> IntArray:
        """Support items, [n, way, shot], of tasks that have none yet."""
        slot, shot = np.arange(self.shape.way)[:, None], np.arange(self.shape.shot)
        place = np.argmax(drawn.own, axis=2)
        random = draws.bits(self.seed, drawn.task[:, None, None], drawn.attempt[:, None, None], SUPPORT, slot, shot)
        begin = self.cells.starts[self.cells.first[drawn.classes] + place]
        support: IntArray = begin[..., None] + draws.distinct(random, self.cells.sizes[drawn.classes, place])
        return support

    def _free(self, classes: IntArray, support: IntArray) -> IntArray:
        """How many items of each cell are of no source of the task's support, [n, way, widest]."""
        free = self.cells.sizes[classes]
        row, sources = np.divmod(self._blocked(support), len(self.cells.positions))
        index, item_class, item_place = self.cells.items_of_sources(sources)
        slot_of = np.full((len(classes), len(self.cells.classes)), -1)
        np.put_along_axis(slot_of, classes, np.arange(self.shape.way), axis=1)
        row = row[index]
        item_slot = slot_of[row, item_class]
        cell = (row * self.shape.way + item_slot) * self.cells.widest + item_place
        free -= np.bincount(cell[item_slot >= 0], minlength=free.size).reshape(free.shape)
        return free

    def _blocked(self, support: IntArray) -> IntArray:
        """The sources that each task's support has, sorted: row of the task times the number of items, plus source."""
        row = np.arange(len(support))[:, None]
        sources = self.cells.source[support].reshape(len(support), self.shape.way * self.shape.shot)
        keys = row * len(self.cells.positions) + sources
        blocked: IntArray = np.unique(keys)
        return blocked

    def _leaves_queries(self, drawn: Drawn) -> BoolArray:
        """Whether every set has its queries: [n]."""
        query = self.shape.query
        context = self.cells.context_of[drawn.classes]
        own, others, clean = self._kinds(drawn)
        enough: BoolArray = np.all(np.where(own, drawn.free, 0).sum(axis=2) >= query, axis=1)
        elsewhere = np.where(own | clean | (context < 0), 0, drawn.free).sum(axis=2)
        enough &= np.all(elsewhere >= query, axis=1)
        if self.sampler.hard_ood:
            enough &= np.all(self._allows_hard(drawn.free, others), axis=1)
        if self.clean >= 0:
            enough &= np.all((clean & (drawn.free >= query)).any(axis=2), axis=1)
        return enough

    def _allows_hard(self, free: IntArray, others: BoolArray) -> BoolArray:
        """Whether the other classes' contexts, [n, way, widest], have the queries of hard-ood: [n, way]."""
        held = (others & (free >= self.items_per_context)).sum(axis=2)
        every: BoolArray = held == self.shape.way - 1
        return every

    def _kinds(self, drawn: Drawn) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Which of each class's cells has its own context, which another class's alone, which the clean one."""
        context = self.cells.context_of[drawn.classes]
        taken = np.zeros((len(drawn.task), len(self.cells.contexts) + 1), dtype=np.bool_)
        own = drawn.own
        row, slot, place = np.nonzero(own)
        taken[row, context[row, slot, place]] = True
        others = taken[np.arange(len(drawn.task))[:, None, None], context] & ~own
        clean = (context == self.clean) & (context >= 0)
        return own, others, clean

    def _queries(self, drawn: Drawn) -> tuple[IntArray, IntArray]:
        """Query items, [n, way, query], and how many of them are in another class's support context, [n, way]."""
        own, others, clean = self._kinds(drawn)
        open_items = np.where(self.sampler.allowed(own, others, clean), drawn.free, 0)
        slot, place = np.arange(self.shape.way)[:, None], np.arange(self.cells.widest)
        task, attempt = drawn.task[:, None, None], drawn.attempt[:, None, None]
        random = draws.bits(self.seed, task, attempt, ORDER, slot, place)
        # The first bit puts the other classes' contexts first.
        order = np.argsort((random >> np.uint64(1)) | (~others).astype(np.uint64) << np.uint64(63), axis=2)
        allocated = allocate_evenly(open_items, order, self.shape.query)
        query = self._items(QUERY, drawn, allocated, self._blocked(drawn.support))
        return query, (allocated * others).sum(axis=2)

    def _items(self, purpose: int, drawn: Drawn, allocated: IntArray, blocked: IntArray) -> IntArray:
        """So many items of each cell, [n, way, widest], uniformly among those of no source that is blocked."""
        row, slot, place = np.nonzero(allocated)
        wanted = allocated[row, slot, place]
        chosen = drawn.classes[row, slot]
        cell, size = self.cells.first[chosen] + place, self.cells.sizes[chosen, place]
        # So many distinct items of the cell that the wanted ones are left even if all those blocked are among them.
        count = wanted + size - drawn.free[row, slot, place]
        goes_to = np.cumsum(wanted) - wanted  # the items of every class are equally many: one after the other
        per_class = self.shape.shot if purpose == SUPPORT else self.shape.query
        chosen_items = np.empty((*drawn.classes.shape, per_class), dtype=np.int64)
        for many in np.unique(count):
            of = np.flatnonzero(count == many)
            stream = drawn.task[row[of], None], drawn.attempt[row[of], None], purpose, cell[of, None]
            random = draws.bits(self.seed, *stream, np.arange(many))
            items = self.cells.starts[cell[of], None] + draws.distinct(random, size[of])
            keys = row[of, None] * len(self.cells.positions) + self.cells.source[items]
            free = blocked[np.minimum(np.searchsorted(blocked, keys), len(blocked) - 1)] != keys
            rank = np.cumsum(free, axis=1) - 1
            taken = free & (rank < wanted[of, None])
            chosen_items.reshape(-1)[(goes_to[of, None] + rank)[taken]] = items[taken]
        return chosen_items


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

    def _support(self, drawn: Drawn) -> IntArray:
        slot, place = np.arange(self.shape.way)[:, None], np.arange(self.cells.widest)
        stream = drawn.task[:, None, None], drawn.attempt[:, None, None], ORDER, SUPPORT, slot, place
        order = np.argsort(draws.bits(self.seed, *stream), axis=2)
        allocated = allocate_evenly(np.where(drawn.own, drawn.free, 0), order, self.shape.shot)
        return self._items(SUPPORT, drawn, allocated, blocked=np.array([-1]))

    def _allows_hard(self, free: IntArray, others: BoolArray) -> BoolArray:
        enough: BoolArray = np.where(others, free, 0).sum(axis=2) >= self.shape.query
        return enough

    def _extra_columns(self, contexts: list[list[str]]) -> dict[str, list[list[str]]]:
        return {"support_contexts": contexts}
