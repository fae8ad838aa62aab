"""FewSTAB: tasks whose support plants one attribute a class, and whose queries lack it (Zheng et al., ECCV 2024).

The paper's sections 4.1 and 4.3, step by step:

1. A word is eligible for a class if at least `shot` of its items hold it and at least `query` lack it.
2. Classes are drawn uniformly, and for each one eligible word; all words differ.
3. Support: items that hold the class's word and none of the other classes' words.
4. Query candidates: items that lack the class's word and hold another class's (Eq. 5); where these are fewer than
   `query`, all items that lack the class's word (Eq. 3). Where the support is too small, the task is drawn again.
5. Query: the candidates with the lowest s(x), the sum over x's non-selected words of the share of candidates that
   hold the word (Eq. 6); ties at random.

Tries are drawn by the hundred in array operations; since a draw is a function of seed, task and try, how they are
grouped changes nothing. s(x) times the number of candidates is a sum of counts, so scores are compared as integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof import draws
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.draws import IntArray, UInt64Array
from shotproof.errors import InputError, UnknownName
from shotproof.tables import Meta
from shotproof.tasks.holders import Holders, unpack
from shotproof.tasks.pool import Design, Pool
from shotproof.tasks.sampler import Sampler
from shotproof.tasks.starvation import Starvation, refuse_unusable
from shotproof.tasks.taskset import TaskSet

SUPPORTS = ("exclusive", "attribute", "random")
QUERY_SELECTIONS = ("lowest", "inter", "intra")

_CLASSES, _WORDS, _SUPPORT, _TIES = 0, 1, 2, 3  # what a random number is drawn for
_CELLS = 1 << 18  # bit-set blocks that one round of tries may look at


@dataclass
class _Tries:
    """Tries of tasks: [n] task and try, [n, way] class, eligible pair and word, and bits by (try, slot)."""

    task: IntArray
    attempt: IntArray
    classes: IntArray
    pairs: IntArray
    words: IntArray

    def only(self, keep: npt.NDArray[np.bool_] | IntArray) -> _Tries:
        return _Tries(self.task[keep], self.attempt[keep], self.classes[keep], self.pairs[keep], self.words[keep])


class FewStabSampler(Sampler):
    """Tasks with biased attributes; `support` and `query_selection` give the paper's ablations (SC1-3, QC1-3)."""

    about: ClassVar[str] = "tasks with biased attributes (FewSTAB)"
    needs_attributes: ClassVar[bool] = True

    def __init__(
        self,
        catalog: Catalog,
        design: Design,
        seed: int,
        *,
        attributes: Attributes | None = None,
        support: str = "exclusive",
        query_selection: str = "lowest",
        max_tries: int = 50_000,
        skip_small_classes: bool = False,
    ) -> None:
        if attributes is None:
            raise InputError("sampler 'fewstab' needs attributes (--attributes attributes.parquet)")
        if support not in SUPPORTS:
            raise UnknownName("support", support, SUPPORTS)
        if query_selection not in QUERY_SELECTIONS:
            raise UnknownName("query selection", query_selection, QUERY_SELECTIONS)
        if max_tries < 1:
            raise InputError(f"max_tries must be at least 1, not {max_tries}")
        self.support = support
        self.query_selection = query_selection
        self.max_tries = max_tries
        self.design = design
        self.seed = seed
        held = attributes.of(catalog)
        whole = Pool.of(catalog)
        pool = whole.kept(held.known[whole.rows])
        self.items_unknown = len(whole.items) - len(pool.items)
        self.skip_small_classes = skip_small_classes
        self.pool = pool.without_small_classes(design) if skip_small_classes else pool
        self.pool.require(design)
        self.words = held.words
        self.holders = Holders(self.pool, held)
        lacking = self.pool.sizes[self.holders.pair_class] - self.holders.counts
        self.eligible = np.flatnonzero((self.holders.counts >= design.shot) & (lacking >= design.query))
        eligible_class = self.holders.pair_class[self.eligible]
        self.eligible_counts = np.bincount(eligible_class, minlength=len(self.pool.classes))
        self.first_eligible = np.searchsorted(eligible_class, np.arange(len(self.pool.classes)))
        self.usable = np.flatnonzero(self.eligible_counts)
        self.left_out = sorted(set(whole.classes) - {self.pool.classes[c] for c in self.usable})
        refuse_unusable(self)

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks, with `tries` (how many each took) and `fallback` (query fell back to intra-class)."""
        size, way = len(tasks), self.design.way
        classes, words = np.empty((2, size, way), dtype=np.int64)
        support = np.empty((size, way, self.design.shot), dtype=np.int64)
        query = np.empty((size, way, self.design.query), dtype=np.int64)
        fallback = np.empty((size, way), dtype=np.bool_)
        tries = np.empty(size, dtype=np.int32)
        tried = np.zeros(size, dtype=np.int64)
        open_tasks = np.arange(size)
        starvation = Starvation(self)
        while len(open_tasks):
            # Many tries of few tasks where tries mostly fail, few tries of many tasks where they mostly succeed.
            depth = starvation.tries_a_task()
            batch = open_tasks[: max(1, self._round() // depth)]
            found = self._first_successes(tasks.start + batch, tried[batch], depth, starvation)
            tried[batch] += depth
            if len(found.task):
                drawn_support, drawn_query, intra, complete = self._items(found)
                index = found.task - tasks.start
                # An incomplete task (its support ate up the queries) goes on after the try that failed.
                tried[index[~complete]] = found.attempt[~complete] + 1
                starvation.saw_incomplete(found.task[~complete])
                index = index[complete]
                classes[index], words[index] = found.classes[complete], found.words[complete]
                support[index], query[index] = drawn_support[complete], drawn_query[complete]
                fallback[index], tries[index] = intra[complete], found.attempt[complete] + 1
                open_tasks = open_tasks[~np.isin(open_tasks, index)]
            starvation.refuse_if_hopeless(tasks.start + open_tasks, tried[open_tasks])
            self.holders.forget_if_large()
        return self.pool.task_rows(
            tasks,
            classes,
            support,
            query,
            attributes=[self.words[word] for word in words.ravel()],
            extra={"tries": np.repeat(tries, way), "fallback": fallback.ravel()},
        )

    def parameters(self) -> Meta:
        """The variant, and the bound on tries."""
        return {
            "support": self.support,
            "query_selection": self.query_selection,
            "max_tries": self.max_tries,
            "skip_small_classes": self.skip_small_classes,
        }

    def summary(self, tasks: TaskSet) -> Meta:
        """Tries, the share of classes whose query fell back to intra-class, and what was left out."""
        tries = tasks.table.column("tries").to_numpy()[tasks.starts[:-1]]
        return {
            "tries_mean": float(tries.mean()),
            "tries_max": int(tries.max()),
            "fallback_share": float(np.mean(tasks.table.column("fallback").to_numpy())),
            "classes_left_out": self.left_out,
            "items_without_attributes": self.items_unknown,
        }

    def _round(self) -> int:
        """How many tries one round may hold, so that its memory is bounded."""
        blocks = int(self.holders.class_blocks[self.usable].max())
        return max(16, _CELLS // (self.design.way * blocks))

    def _first_successes(self, task: IntArray, tried: IntArray, depth: int, starvation: Starvation) -> _Tries:
        """Of each task's next `depth` tries the first whose words differ and whose supports are large enough."""
        attempt = (tried[:, None] + np.arange(depth)).ravel()
        attempts = self._draw_tries(np.repeat(task, depth), attempt)
        ordered = np.sort(attempts.words, axis=1)
        differ = np.all(ordered[:, 1:] != ordered[:, :-1], axis=1)
        starvation.saw_tries(len(differ), int((~differ).sum()))
        attempts = attempts.only(differ)
        if self.support == "exclusive" and len(attempts.task):
            counts = self._exclusive_counts(attempts)
            starvation.saw_supports(attempts.classes, counts)
            attempts = attempts.only(np.all(counts >= self.design.shot, axis=1))
        first = np.flatnonzero(np.diff(attempts.task, prepend=-1))  # tries come task by task, in order
        found = attempts.only(first)
        starvation.saw_successes(len(found.task))
        return found

    def _draw_tries(self, task: IntArray, attempt: IntArray) -> _Tries:
        slot = np.arange(self.design.way)
        by_classes = draws.bits(self.seed, task[:, None], attempt[:, None], _CLASSES, slot)
        by_words = draws.bits(self.seed, task[:, None], attempt[:, None], _WORDS, slot)
        classes = self.usable[draws.distinct(by_classes, len(self.usable))]
        chosen = self.first_eligible[classes] + draws.below(by_words, self.eligible_counts[classes])
        pairs = self.eligible[chosen]
        return _Tries(task, attempt, classes, pairs, self.holders.pair_word[pairs])

    def _selected_bits(self, tries: _Tries) -> tuple[UInt64Array, UInt64Array, IntArray]:
        """Bits of the items that hold the own word, and of those that hold another class's word.

        Both flat: slot s of try n has `blocks[n, s]` blocks, one slot after the other. Also where each begins.
        """
        way = self.design.way
        blocks = self.holders.class_blocks[tries.classes].ravel()
        begin = np.cumsum(blocks) - blocks
        within = np.arange(blocks.sum()) - np.repeat(begin, blocks)
        own = self.holders.bits(tries.pairs.ravel(), blocks, within)
        others = np.zeros(len(within), dtype=np.uint64)
        for shift in range(1, way):
            pairs = self.holders.pairs(tries.classes, np.roll(tries.words, shift, axis=1)).ravel()
            others |= self.holders.bits(pairs, blocks, within)
        return own, others, begin

    def _exclusive_counts(self, tries: _Tries) -> IntArray:
        """For each try and slot, how many items hold the own word and none of the others': [n, way]."""
        own, others, begin = self._selected_bits(tries)
        counts = np.add.reduceat(np.bitwise_count(own & ~others).astype(np.int64), begin)
        return counts.reshape(tries.classes.shape)

    def _items(self, tries: _Tries) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Support and query positions of successful tries, whether a query fell back, and which tries are complete."""
        count, way = tries.classes.shape
        support = np.zeros((count * way, self.design.shot), dtype=np.int64)
        query = np.zeros((count * way, self.design.query), dtype=np.int64)
        fallback = np.zeros(count * way, dtype=np.bool_)
        complete = np.zeros(count * way, dtype=np.bool_)
        own, others, begin = self._selected_bits(tries)
        flat_classes = tries.classes.ravel()
        for chosen in np.unique(flat_classes):
            places = np.flatnonzero(flat_classes == chosen)
            spans = begin[places][:, None] + np.arange(self.holders.class_blocks[chosen])
            items = int(self.pool.sizes[chosen])
            holds, holds_other = unpack(own[spans], items), unpack(others[spans], items)
            row, slot = np.divmod(places, way)
            stream = (tries.task[row][:, None], tries.attempt[row][:, None])
            ranks = draws.bits(self.seed, *stream, _SUPPORT, slot[:, None], np.arange(self.design.shot))
            support[places] = self._support(holds, holds_other, ranks)
            inter, intra = self._candidates(int(chosen), holds, holds_other, support[places])
            short = inter.sum(axis=1) < self.design.query
            if self.query_selection == "intra":
                candidates = intra
            else:
                fallback[places] = short
                candidates = np.where(short[:, None], intra, inter)
            complete[places] = candidates.sum(axis=1) >= self.design.query
            random = draws.bits(self.seed, *stream, _TIES, slot[:, None], np.arange(items))
            scores = self._scores(int(chosen), candidates, tries.words[row])
            query[places] = _lowest(scores, random, candidates, self.design.query)
            support[places] += self.pool.offsets[chosen]
            query[places] += self.pool.offsets[chosen]
        return (
            support.reshape(count, way, -1),
            query.reshape(count, way, -1),
            fallback.reshape(count, way),
            np.all(complete.reshape(count, way), axis=1),
        )

    def _support(
        self, holds: npt.NDArray[np.bool_], holds_other: npt.NDArray[np.bool_], random: UInt64Array
    ) -> IntArray:
        """Support positions within the class, uniformly among the items that the variant allows: [m, shot]."""
        allowed = {"exclusive": holds & ~holds_other, "attribute": holds, "random": np.ones_like(holds)}[self.support]
        sizes = allowed.sum(axis=1)
        ranks = draws.distinct(random, sizes) + (np.cumsum(sizes) - sizes)[:, None]
        chosen: IntArray = np.nonzero(allowed)[1][ranks]
        return chosen

    def _candidates(
        self, chosen: int, holds: npt.NDArray[np.bool_], holds_other: npt.NDArray[np.bool_], support: IntArray
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Inter-class (Eq. 5) and intra-class (Eq. 3) query candidates, without the support and its sources."""
        intra = ~holds
        if self.support == "random":
            np.put_along_axis(intra, support, False, axis=1)
        if self.pool.sources is not None:
            sources = self.pool.sources[self.pool.offsets[chosen] : self.pool.offsets[chosen + 1]]
            for shot in range(self.design.shot):
                intra &= sources != sources[support[:, shot]][:, None]
        return intra & holds_other, intra

    def _scores(self, chosen: int, candidates: npt.NDArray[np.bool_], words: IntArray) -> IntArray:
        """s(x) of Eq. 6 times the number of candidates, an integer: [m, items]; 0 where queries are drawn at random."""
        if self.query_selection != "lowest":
            return np.zeros(candidates.shape, dtype=np.int64)
        incidence = self.holders.incidence(chosen)
        counts = incidence @ candidates.T.astype(np.int32)  # [words of the class, m]
        selected = self.holders.pairs(np.full(words.shape, chosen), words)
        column = np.broadcast_to(np.arange(len(words))[:, None], words.shape)
        occurs = selected >= 0
        counts[selected[occurs] - self.holders.first_pair[chosen], column[occurs]] = 0
        scores: IntArray = (incidence.T.tocsr() @ counts).T.astype(np.int64)
        return scores


def _lowest(scores: IntArray, random: UInt64Array, candidates: npt.NDArray[np.bool_], count: int) -> IntArray:
    """Positions of the `count` candidates with the lowest scores, ties at random, lowest first: [m, count]."""
    keys = (scores.astype(np.uint64) << np.uint64(32)) | (random >> np.uint64(32))
    keys[~candidates] = np.iinfo(np.uint64).max
    chosen = np.argpartition(keys, count - 1, axis=1)[:, :count]
    order = np.argsort(np.take_along_axis(keys, chosen, axis=1), axis=1, kind="stable")
    lowest: IntArray = np.take_along_axis(chosen, order, axis=1)
    return lowest
