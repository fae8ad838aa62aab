"""Context shift: four matched sets of tasks (after MetaCoCo, ICLR 2024, and SpurAudio).

The support of a class is in one context. Its queries are in the same context, in other contexts, in those of the other
classes, or in none, depending on the set.

1. Classes are drawn one after the other, each with a context t_c that no other class of the task has. Only classes and
   contexts that leave enough queries for every set can be drawn, so that all sets have the same classes and contexts.
2. Support: `shot` items of the class in t_c.
3. Query: `query` items of the class, none of a source that is in the task's support, divided evenly between the
   contexts that the set allows: each round gives one item to every context that has items left, the last round to some.
   `iid` allows t_c, `hard-ood` the other classes' t_c', `clean` no context, `ood` all but t_c and the
   clean context, with the other classes' contexts first in every round.

This holds for `support_contexts=1`. With more, a class has several contexts, which it may share with other classes
(`BoundSeveral`); they take the place of t_c.

If the sources of a support leave too few queries, or the draw of classes comes to a dead end, the task is drawn again.
Blocks of tasks are drawn together in array operations; a draw is a function of seed, task and try, so the tasks do not
depend on the block.
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
from shotproof.tasks.context.context_cells import Cells, allocate_evenly, draw_true_index
from shotproof.tasks.context.context_refusals import require_usable_classes, tries_used_up
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import SKIP_SMALL_CLASSES, Axis, BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.taskset import TaskSet

CLASSES, CONTEXTS, SUPPORT, ORDER, QUERY = range(5)  # purposes of random numbers


@dataclass
class Drawn:
    """Tasks without queries: task and try [n], classes [n, way], support [n, way, shot].

    in_support: [n, way, widest] which of the class's cells have the contexts of its support
    free: [n, way, widest] number of items of each of the class's cells that share no source with the task's support
    """

    task: IntArray
    attempt: IntArray
    classes: IntArray
    in_support: BoolArray
    support: IntArray
    free: IntArray

    def select(self, keep: BoolArray) -> Drawn:
        """Select tasks by a mask."""
        return Drawn(*(getattr(self, name)[keep] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class ContextOptions(Sampler):
    """Options that the matched sets share; equal options give the same classes and supports.

    No support has the clean context, and every drawn class has enough queries in it. Without `hard_ood`, classes need
    no items in the other classes' contexts.
    """

    paper = "MetaCoCo, ICLR 2024; SpurAudio"
    axis: ClassVar[Axis | None] = "contexts"
    reference = "iid"
    has_placebo = True

    context_column: str = option("context", "column of the catalog with the contexts")
    clean_value: str | None = option(None, "value that marks items without a context; None takes it from the catalog")
    support_contexts: int | Literal["all"] = option(
        1,
        "number of contexts of a class's support: one that no other class of the task has, or several that others may "
        "share; all leaves only those that ood needs",
        least=1,
    )
    hard_ood: bool = option(True, "require what hard-ood needs; use False if classes share few contexts")
    max_tries: int = option(1000, "largest number of tries per task", least=1)
    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)


class ContextSet(ContextOptions):
    """One of the matched sets, which decides the contexts of its queries."""

    @abstractmethod
    def allowed(self, support: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """Return which of a class's contexts its queries may have.

        Args:
            support: contexts of the class's support
            others: contexts of the other classes' supports
            clean: whether a context marks items without one
        """

    def bound(self, inputs: SamplerInputs) -> BoundSampler[ContextSet]:
        """Bind the sampler to these inputs."""
        if self.support_contexts != 1:
            return BoundSeveral(self, inputs)
        return BoundContext(self, inputs)


class BoundContext(BoundSampler[ContextSet]):
    """Sampler of one of the matched sets, bound to its inputs."""

    def __init__(self, sampler: ContextSet, inputs: SamplerInputs) -> None:
        column, clean_value = sampler.context_column, sampler.clean_value
        if clean_value is None:
            clean_value = clean_context(inputs.catalog, column)
        super().__init__(replace(sampler, clean_value=clean_value), inputs)
        all_items = ItemPool.of(inputs.catalog)
        self.pool = all_items.fitting(self.shape, sampler.skip_small_classes)
        by_row = contexts_of(inputs.catalog, column)
        contexts = [by_row[row] for row in self.pool.rows]
        self.without_context = contexts.count(None)
        self.cells = Cells(self.pool, contexts)
        self.clean = -1 if clean_value not in self.cells.contexts else self.cells.contexts.index(clean_value)
        # The most items that hard-ood takes from one context.
        self.items_per_context = -(-self.shape.query // (self.shape.way - 1))
        self._find_eligible()
        require_usable_classes(self)
        self.left_out = sorted(
            set(all_items.classes) - {self.pool.classes[c] for c in np.flatnonzero(self.eligible.any(axis=1))}
        )

    def _find_eligible(self) -> None:
        """Find contexts that suit a class's support, or have enough queries for hard-ood: [classes, contexts]."""
        counts, shot, query = self.cells.counts.copy(), self.shape.shot, self.shape.query
        enough = np.ones(len(counts), dtype=np.bool_)
        if self.clean >= 0:
            enough = counts[:, self.clean] >= query
            counts[:, self.clean] = 0
        self.enough_for_hard = counts >= self.items_per_context
        self.eligible = (counts >= shot + query) & enough[:, None]
        if self.sampler.hard_ood:
            self.eligible &= (self.enough_for_hard.sum(axis=1) >= self.shape.way)[:, None]
        else:
            self.eligible &= counts.sum(axis=1, keepdims=True) - counts >= query

    def draw(self, tasks: range) -> pa.Table:
        """Draw the rows of these tasks.

        `attribute` is the context t_c, `tries` the number of draws that the task took, and `confounded` the number of
        query items in the context of another class's support.
        """
        drawn = self._draw_supports(np.arange(tasks.start, tasks.stop))
        query, confounded = self._draw_queries(drawn)
        contexts = self._context_names(drawn)
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

    def _context_names(self, drawn: Drawn) -> list[list[str]]:
        """Return the names of the contexts of each class's support, one class after the other."""
        row, slot, place = np.nonzero(drawn.in_support)
        names: list[list[str]] = [[] for _ in range(drawn.classes.size)]
        for index, context in zip(
            (row * self.shape.way + slot).tolist(),
            self.cells.context_of[drawn.classes[row, slot], place].tolist(),
            strict=True,
        ):
            names[index].append(self.cells.contexts[context])
        return names

    def _extra_columns(self, contexts: list[list[str]]) -> dict[str, list[list[str]]]:
        """Return further columns, given the contexts of each class's support."""
        return {}

    def match(self, tasks: TaskSet) -> str:
        """Return a digest of what the four sets share: classes and support items, task by task."""
        return digest(tasks.table, ["task", "slot", "label", "support"])

    def summary(self, tasks: TaskSet) -> Meta:
        """Summarize tries, the share of query items in another class's support context, and what was left out."""
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
        """Draw classes, contexts and supports; each task uses its first try that leaves enough queries."""
        done: list[Drawn] = []
        for attempt in range(self.sampler.max_tries):
            chosen, classes, in_support = self._draw_classes(task, attempt)
            sizes = self.cells.sizes[classes]
            tried = Drawn(chosen, np.full(len(chosen), attempt), classes, in_support, np.empty(0, np.int64), sizes)
            tried.support = self._draw_support(tried)
            tried.free = self._count_free(classes, tried.support)
            done.append(tried.select(self._has_enough_queries(tried)))
            task = np.setdiff1d(task, done[-1].task)
            if not len(task):
                break
        else:
            raise tries_used_up(self, int(task[0]), lacked_partners=task[0] not in chosen)
        joined = [np.concatenate([getattr(part, name) for part in done]) for name in Drawn.__dataclass_fields__]
        order = np.argsort(joined[0])
        return Drawn(*(values[order] for values in joined))

    def _draw_classes(self, task: IntArray, attempt: int) -> tuple[IntArray, IntArray, BoolArray]:
        """Draw classes [n, way] and their supports' cells [n, way, widest] of the n tasks that come to no dead end."""
        count, row = len(task), np.arange(len(task))
        classes, contexts = np.zeros((2, count, self.shape.way), dtype=np.int64)
        class_open = np.ones((count, len(self.eligible)), dtype=np.bool_)
        context_open = np.ones((count, self.eligible.shape[1]), dtype=np.bool_)
        complete = np.ones(count, dtype=np.bool_)
        weights = self.eligible.T.astype(np.float32)
        for slot in range(self.shape.way):
            possible = class_open & (context_open.astype(np.float32) @ weights > 0)
            complete &= possible.any(axis=1)
            chosen = draw_true_index(possible, draws.bits(self.seed, task, attempt, CLASSES, slot))
            possible_contexts = context_open & self.eligible[chosen]
            context = draw_true_index(possible_contexts, draws.bits(self.seed, task, attempt, CONTEXTS, slot))
            classes[:, slot], contexts[:, slot] = chosen, context
            class_open[row, chosen] = False
            context_open[row, context] = False
            if self.sampler.hard_ood:
                class_open &= self.enough_for_hard.T[context]
                context_open &= self.enough_for_hard[chosen]
        in_support = self.cells.context_of[classes] == contexts[..., None]
        return task[complete], classes[complete], in_support[complete]

    def _draw_support(self, drawn: Drawn) -> IntArray:
        """Draw support items, [n, way, shot]."""
        slot, shot = np.arange(self.shape.way)[:, None], np.arange(self.shape.shot)
        place = np.argmax(drawn.in_support, axis=2)
        random = draws.bits(self.seed, drawn.task[:, None, None], drawn.attempt[:, None, None], SUPPORT, slot, shot)
        begin = self.cells.starts[self.cells.first[drawn.classes] + place]
        support: IntArray = begin[..., None] + draws.distinct(random, self.cells.sizes[drawn.classes, place])
        return support

    def _count_free(self, classes: IntArray, support: IntArray) -> IntArray:
        """Count the items of each cell that share no source with the task's support, [n, way, widest]."""
        free = self.cells.sizes[classes]
        row, sources = np.divmod(self._blocked_sources(support), len(self.cells.positions))
        index, item_class, item_place = self.cells.items_of_sources(sources)
        slot_of = np.full((len(classes), len(self.cells.classes)), -1)
        np.put_along_axis(slot_of, classes, np.arange(self.shape.way), axis=1)
        row = row[index]
        item_slot = slot_of[row, item_class]
        cell = (row * self.shape.way + item_slot) * self.cells.widest + item_place
        free -= np.bincount(cell[item_slot >= 0], minlength=free.size).reshape(free.shape)
        return free

    def _blocked_sources(self, support: IntArray) -> IntArray:
        """Return sorted keys of the sources of each task's support: row of the task * number of items + source."""
        row = np.arange(len(support))[:, None]
        sources = self.cells.source[support].reshape(len(support), self.shape.way * self.shape.shot)
        keys = row * len(self.cells.positions) + sources
        blocked: IntArray = np.unique(keys)
        return blocked

    def _has_enough_queries(self, drawn: Drawn) -> BoolArray:
        """Return whether every set has enough queries: [n]."""
        query = self.shape.query
        context = self.cells.context_of[drawn.classes]
        in_support, others, clean = self._cell_kinds(drawn)
        enough: BoolArray = np.all(np.where(in_support, drawn.free, 0).sum(axis=2) >= query, axis=1)
        elsewhere = np.where(in_support | clean | (context < 0), 0, drawn.free).sum(axis=2)
        enough &= np.all(elsewhere >= query, axis=1)
        if self.sampler.hard_ood:
            enough &= np.all(self._is_enough_for_hard(drawn.free, others), axis=1)
        if self.clean >= 0:
            enough &= np.all((clean & (drawn.free >= query)).any(axis=2), axis=1)
        return enough

    def _is_enough_for_hard(self, free: IntArray, others: BoolArray) -> BoolArray:
        """Return whether the other classes' contexts, [n, way, widest], have enough queries for hard-ood: [n, way]."""
        contexts_with_enough = (others & (free >= self.items_per_context)).sum(axis=2)
        enough: BoolArray = contexts_with_enough == self.shape.way - 1
        return enough

    def _cell_kinds(self, drawn: Drawn) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Return which cells have a support context of their class, which only one of another, which the clean one."""
        context = self.cells.context_of[drawn.classes]
        is_in_task = np.zeros((len(drawn.task), len(self.cells.contexts) + 1), dtype=np.bool_)
        in_support = drawn.in_support
        row, slot, place = np.nonzero(in_support)
        is_in_task[row, context[row, slot, place]] = True
        others = is_in_task[np.arange(len(drawn.task))[:, None, None], context] & ~in_support
        clean = (context == self.clean) & (context >= 0)
        return in_support, others, clean

    def _draw_queries(self, drawn: Drawn) -> tuple[IntArray, IntArray]:
        """Draw query items, [n, way, query], and count those in another class's support context, [n, way]."""
        in_support, others, clean = self._cell_kinds(drawn)
        open_items = np.where(self.sampler.allowed(in_support, others, clean), drawn.free, 0)
        slot, place = np.arange(self.shape.way)[:, None], np.arange(self.cells.widest)
        task, attempt = drawn.task[:, None, None], drawn.attempt[:, None, None]
        random = draws.bits(self.seed, task, attempt, ORDER, slot, place)
        # The highest bit puts the other classes' contexts first.
        order = np.argsort((random >> np.uint64(1)) | (~others).astype(np.uint64) << np.uint64(63), axis=2)
        allocated = allocate_evenly(open_items, order, self.shape.query)
        query = self._draw_items(QUERY, drawn, allocated, self._blocked_sources(drawn.support))
        return query, (allocated * others).sum(axis=2)

    def _draw_items(self, purpose: int, drawn: Drawn, allocated: IntArray, blocked: IntArray) -> IntArray:
        """Draw the allocated number of items of each cell, uniformly among items whose source is not blocked."""
        row, slot, place = np.nonzero(allocated)
        needed = allocated[row, slot, place]
        chosen = drawn.classes[row, slot]
        cell, size = self.cells.first[chosen] + place, self.cells.sizes[chosen, place]
        # Draw as many distinct items of the cell as leave enough even if all blocked items are among them.
        count = needed + size - drawn.free[row, slot, place]
        start = np.cumsum(needed) - needed  # every class has the same number of items
        per_class = self.shape.shot if purpose == SUPPORT else self.shape.query
        chosen_items = np.empty((*drawn.classes.shape, per_class), dtype=np.int64)
        for number in np.unique(count):
            part = np.flatnonzero(count == number)
            stream = drawn.task[row[part], None], drawn.attempt[row[part], None], purpose, cell[part, None]
            random = draws.bits(self.seed, *stream, np.arange(number))
            items = self.cells.starts[cell[part], None] + draws.distinct(random, size[part])
            keys = row[part, None] * len(self.cells.positions) + self.cells.source[items]
            free = blocked[np.minimum(np.searchsorted(blocked, keys), len(blocked) - 1)] != keys
            rank = np.cumsum(free, axis=1) - 1
            selected = free & (rank < needed[part, None])
            chosen_items.reshape(-1)[(start[part, None] + rank)[selected]] = items[selected]
        return chosen_items


class BoundSeveral(BoundContext):
    """Sampler of one of the matched sets with supports in several contexts, bound to its inputs."""

    def _find_eligible(self) -> None:
        """Find the classes with enough contexts: [classes, contexts], all of a class's contexts or none."""
        sizes, query = self.cells.sizes.copy(), self.shape.query
        enough = np.ones(len(sizes), dtype=np.bool_)
        self.usable = self.cells.context_of >= 0
        if self.clean >= 0:
            clean = self.cells.context_of == self.clean
            enough = (sizes * clean).sum(axis=1) >= query
            self.usable &= ~clean
            sizes[clean] = 0
        requested = self.sampler.support_contexts
        largest_first = -np.sort(-sizes, axis=1)
        count = self.usable.sum(axis=1)
        # The largest number of items that the support's contexts can have; with `all`, ood needs the rest.
        most = largest_first.sum(axis=1) - query if requested == "all" else largest_first[:, :requested].sum(axis=1)
        enough &= most >= self.shape.shot + query
        enough &= count > (1 if requested == "all" else requested)
        self.eligible = (self.cells.counts > 0) & enough[:, None]
        if self.clean >= 0:
            self.eligible[:, self.clean] = False
        self.enough_for_hard = self.eligible

    def _draw_classes(self, task: IntArray, attempt: int) -> tuple[IntArray, IntArray, BoolArray]:
        way, usable_classes = self.shape.way, np.flatnonzero(self.eligible.any(axis=1))
        slot = np.arange(way)
        random = draws.bits(self.seed, task[:, None], attempt, CLASSES, slot)
        classes = usable_classes[draws.distinct(random, len(usable_classes))]
        place = np.arange(self.cells.widest)
        keys = draws.bits(self.seed, task[:, None, None], attempt, CONTEXTS, slot[:, None], place)
        usable = self.usable[classes]
        keys[~usable] = np.iinfo(np.uint64).max  # last
        order = np.argsort(keys, axis=2, kind="stable")
        if self.sampler.support_contexts == "all":
            # The first contexts of the order are left to ood, until they have enough queries for it.
            sizes = np.take_along_axis(np.where(usable, self.cells.sizes[classes], 0), order, axis=2)
            chosen = np.cumsum(sizes, axis=2) - sizes >= self.shape.query
        else:
            chosen = np.broadcast_to(place < self.sampler.support_contexts, order.shape)
        in_support = np.zeros(order.shape, dtype=np.bool_)
        np.put_along_axis(in_support, order, chosen, axis=2)
        in_support &= usable
        complete = np.all(np.where(in_support, self.cells.sizes[classes], 0).sum(axis=2) >= self.shape.shot, axis=1)
        return task[complete], classes[complete], in_support[complete]

    def _draw_support(self, drawn: Drawn) -> IntArray:
        slot, place = np.arange(self.shape.way)[:, None], np.arange(self.cells.widest)
        stream = drawn.task[:, None, None], drawn.attempt[:, None, None], ORDER, SUPPORT, slot, place
        order = np.argsort(draws.bits(self.seed, *stream), axis=2)
        allocated = allocate_evenly(np.where(drawn.in_support, drawn.free, 0), order, self.shape.shot)
        return self._draw_items(SUPPORT, drawn, allocated, blocked=np.array([-1]))

    def _is_enough_for_hard(self, free: IntArray, others: BoolArray) -> BoolArray:
        enough: BoolArray = np.where(others, free, 0).sum(axis=2) >= self.shape.query
        return enough

    def _extra_columns(self, contexts: list[list[str]]) -> dict[str, list[list[str]]]:
        return {"support_contexts": contexts}
