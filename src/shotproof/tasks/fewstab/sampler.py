"""FewSTAB: tasks whose support plants one attribute per class, and whose queries lack it (Zheng et al., ECCV 2024).

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

from dataclasses import dataclass, fields, replace
from typing import Literal, Self

import numpy as np
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray, UInt64Array
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks.fewstab.holders import Holders, unpack
from shotproof.tasks.fewstab.insufficient import TryCounts, refuse_unusable
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import SKIP_SMALL_CLASSES, BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.shape import TaskShape
from shotproof.tasks.taskset import TaskSet

CLASSES, WORDS, _SUPPORT, _TIES = 0, 1, 2, 3  # what a random number is drawn for
_CELLS = 1 << 18  # bit-set blocks that one round of tries may look at


@dataclass
class Tries:
    """Tries of tasks: [n] task and try, [n, way] class, eligible pair and word, and bits by (try, slot)."""

    task: IntArray
    attempt: IntArray
    classes: IntArray
    pairs: IntArray
    words: IntArray

    def only(self, keep: BoolArray | IntArray) -> Self:
        """Some of them."""
        return replace(self, **{field.name: getattr(self, field.name)[keep] for field in fields(self)})


@dataclass(frozen=True)
class FewStab(Sampler):
    """Tasks with biased attributes; `support` and `query_selection` give the paper's ablations (SC1-3, QC1-3).

    `variant='published'` draws as the authors' published code does, which is in `published.py`.
    """

    about = "tasks with biased attributes (FewSTAB)"
    paper = "Zheng, Ye and Zhang, Benchmarking Spurious Bias in Few-Shot Image Classifiers, ECCV 2024"
    example = "fewstab(support='attribute')"
    takes = ("attributes",)
    needs = ("attributes",)
    axis = "attributes"
    has_placebo = True

    support: Literal["exclusive", "attribute", "random"] = option(
        "exclusive",
        "supports hold the class's word and no other class's (exclusive), hold it (attribute), or are any (random)",
    )
    query_selection: Literal["lowest", "inter", "intra"] = option(
        "lowest",
        "queries are the candidates with the lowest scores (lowest), any of them (inter), or any that lack the word "
        "(intra)",
    )
    variant: Literal["paper", "published"] = option(
        "paper",
        "as the paper's text says (paper), or as its authors' published code does: words first, then classes, "
        "constraints loosened after failures, queries ranked by sums of logarithms (published)",
    )
    max_tries: int = option(50_000, "the most tries per task", least=1)
    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)

    def check_sizes(self, catalog: Catalog, shape: TaskShape) -> None:
        """Refuse too few classes, or classes that are too small."""
        ItemPool.of(catalog).fitting(shape, self.skip_small_classes)

    def bound(self, inputs: SamplerInputs) -> BoundSampler[FewStab]:
        """Tasks that plant words of these inputs."""
        if self.variant == "published":
            from shotproof.tasks.fewstab.published import BoundPublished

            return BoundPublished(self, inputs)
        return BoundFewStab(self, inputs)


class BoundFewStab(BoundSampler[FewStab]):
    """Draws tasks with biased attributes."""

    def __init__(self, sampler: FewStab, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        assert inputs.attributes is not None
        held = inputs.attributes.of(inputs.catalog)
        whole = ItemPool.of(inputs.catalog)
        known = whole.kept(held.known[whole.rows])
        self.items_unknown = len(whole.items) - len(known.items)
        self.pool = known.fitting(self.shape, sampler.skip_small_classes)
        self.words = held.words
        self.holders = Holders(self.pool, held)
        lacking = self.pool.sizes[self.holders.pair_class] - self.holders.counts
        self.eligible = np.flatnonzero((self.holders.counts >= self.shape.shot) & (lacking >= self.shape.query))
        eligible_class = self.holders.pair_class[self.eligible]
        self.eligible_counts = np.bincount(eligible_class, minlength=len(self.pool.classes))
        self.first_eligible = np.searchsorted(eligible_class, np.arange(len(self.pool.classes)))
        self.usable = np.flatnonzero(self.eligible_counts)
        self.left_out = sorted(set(whole.classes) - {self.pool.classes[c] for c in self.usable})
        refuse_unusable(self)

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks, with `tries` (how many each took) and `fallback` (query fell back to intra-class)."""
        size, way = len(tasks), self.shape.way
        classes, words = np.empty((2, size, way), dtype=np.int64)
        support = np.empty((size, way, self.shape.shot), dtype=np.int64)
        query = np.empty((size, way, self.shape.query), dtype=np.int64)
        fallback = np.empty((size, way), dtype=np.bool_)
        tries = np.empty(size, dtype=np.int32)
        tried = np.zeros(size, dtype=np.int64)
        open_tasks = np.arange(size)
        extra = self._extra_columns(size)
        counts = self._count_tries(tasks)
        while len(open_tasks):
            # Many tries of few tasks where tries mostly fail, few tries of many tasks where they mostly succeed.
            depth = counts.tries_per_task()
            batch = open_tasks[: max(1, self._round() // depth)]
            found = self._first_successes(tasks.start + batch, tried[batch], depth, counts)
            tried[batch] += depth
            if len(found.task):
                drawn_support, drawn_query, intra, complete = self._items(found)
                index = found.task - tasks.start
                # An incomplete task (its support ate up the queries) goes on after the try that failed.
                tried[index[~complete]] = found.attempt[~complete] + 1
                counts.record_incomplete(found.task[~complete])
                index = index[complete]
                classes[index], words[index] = found.classes[complete], found.words[complete]
                support[index], query[index] = drawn_support[complete], drawn_query[complete]
                fallback[index], tries[index] = intra[complete], found.attempt[complete] + 1
                for name, column in extra.items():
                    column[index] = getattr(found, name)[complete]
                open_tasks = open_tasks[~np.isin(open_tasks, index)]
            counts.refuse_if_hopeless(tasks.start + open_tasks, tried[open_tasks])
            self.holders.forget_if_large()
        return self.pool.task_rows(
            tasks,
            classes,
            support,
            query,
            attributes=[self.words[word] for word in words.ravel()],
            extra={
                "tries": np.repeat(tries, way),
                "fallback": fallback.ravel(),
                **{name: column.ravel() for name, column in extra.items()},
            },
        )

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

    def _extra_columns(self, tasks: int) -> dict[str, IntArray]:
        """Empty columns [tasks, way], filled from the tries' fields of the same names."""
        return {}

    def _count_tries(self, tasks: range) -> TryCounts:
        return TryCounts(self)

    def _round(self) -> int:
        """How many tries one round may hold, so that its memory is bounded."""
        blocks = int(self.holders.class_blocks[self.usable].max())
        return max(16, _CELLS // (self.shape.way * blocks))

    def _first_successes(self, task: IntArray, tried: IntArray, depth: int, counts: TryCounts) -> Tries:
        """Of each task's next `depth` tries the first whose words differ and whose supports are large enough."""
        attempt = (tried[:, None] + np.arange(depth)).ravel()
        attempts = self._draw_tries(np.repeat(task, depth), attempt)
        ordered = np.sort(attempts.words, axis=1)
        differ = np.all(ordered[:, 1:] != ordered[:, :-1], axis=1)
        counts.record_tries(len(differ), int((~differ).sum()))
        attempts = attempts.only(differ)
        if self.sampler.support == "exclusive" and len(attempts.task):
            sizes = self._exclusive_counts(attempts)
            counts.record_supports(attempts.classes, sizes)
            attempts = attempts.only(np.all(sizes >= self.shape.shot, axis=1))
        first = np.flatnonzero(np.diff(attempts.task, prepend=-1))  # tries come task by task, in order
        found = attempts.only(first)
        counts.record_successes(len(found.task))
        return found

    def _draw_tries(self, task: IntArray, attempt: IntArray) -> Tries:
        slot = np.arange(self.shape.way)
        by_classes = draws.bits(self.seed, task[:, None], attempt[:, None], CLASSES, slot)
        by_words = draws.bits(self.seed, task[:, None], attempt[:, None], WORDS, slot)
        classes = self.usable[draws.distinct(by_classes, len(self.usable))]
        chosen = self.first_eligible[classes] + draws.below(by_words, self.eligible_counts[classes])
        pairs = self.eligible[chosen]
        return Tries(task, attempt, classes, pairs, self.holders.pair_word[pairs])

    def _selected_bits(self, tries: Tries) -> tuple[UInt64Array, UInt64Array, IntArray]:
        """Bits of the items that hold the own word, and of those that hold another class's word.

        Both flat: slot s of try n has `blocks[n, s]` blocks, one slot after the other. Also where each begins.
        """
        way = self.shape.way
        blocks = self.holders.class_blocks[tries.classes].ravel()
        begin = np.cumsum(blocks) - blocks
        within = np.arange(blocks.sum()) - np.repeat(begin, blocks)
        own = self.holders.bits(tries.pairs.ravel(), blocks, within)
        others = np.zeros(len(within), dtype=np.uint64)
        for shift in range(1, way):
            pairs = self.holders.pairs(tries.classes, np.roll(tries.words, shift, axis=1)).ravel()
            others |= self.holders.bits(pairs, blocks, within)
        return own, others, begin

    def _exclusive_counts(self, tries: Tries) -> IntArray:
        """For each try and slot, how many items hold the own word and none of the others': [n, way]."""
        own, others, begin = self._selected_bits(tries)
        counts = np.add.reduceat(np.bitwise_count(own & ~others).astype(np.int64), begin)
        return counts.reshape(tries.classes.shape)

    def _items(self, tries: Tries) -> tuple[IntArray, IntArray, BoolArray, BoolArray]:
        """Support and query positions of successful tries, whether a query fell back, and which tries are complete."""
        count, way = tries.classes.shape
        support = np.zeros((count * way, self.shape.shot), dtype=np.int64)
        query = np.zeros((count * way, self.shape.query), dtype=np.int64)
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
            ranks = draws.bits(self.seed, *stream, _SUPPORT, slot[:, None], np.arange(self.shape.shot))
            exclusive = holds & ~holds_other
            if self.sampler.support == "exclusive":
                exclusive = self._exclusive(tries, row, slot, exclusive)
            support[places] = self._support(holds, exclusive, ranks)
            inter, intra = self._candidates(int(chosen), holds, holds_other, support[places])
            if self.sampler.query_selection == "intra":
                candidates = intra
            else:
                fallback[places] = self._falls_back(tries, row, slot, inter)
                candidates = np.where(fallback[places][:, None], intra, inter)
            complete[places] = candidates.sum(axis=1) >= self.shape.query
            random = draws.bits(self.seed, *stream, _TIES, slot[:, None], np.arange(items))
            scores = self._scores(int(chosen), candidates, tries.words[row])
            query[places] = self._lowest(scores, random, candidates)
            support[places] += self.pool.offsets[chosen]
            query[places] += self.pool.offsets[chosen]
        return (
            support.reshape(count, way, -1),
            query.reshape(count, way, -1),
            fallback.reshape(count, way),
            np.all(complete.reshape(count, way), axis=1),
        )

    def _exclusive(self, tries: Tries, row: IntArray, slot: IntArray, exclusive: BoolArray) -> BoolArray:
        """Which items may be support of these tries and slots of one class, given those that hold their word alone."""
        return exclusive

    def _falls_back(self, tries: Tries, row: IntArray, slot: IntArray, inter: BoolArray) -> BoolArray:
        """Whether the queries of these tries and slots of one class are drawn from the intra-class candidates: [m]."""
        too_few: BoolArray = inter.sum(axis=1) < self.shape.query
        return too_few

    def _support(self, holds: BoolArray, exclusive: BoolArray, random: UInt64Array) -> IntArray:
        """Support positions within the class, uniformly among the items that the option allows: [m, shot]."""
        variants = {"exclusive": exclusive, "attribute": holds, "random": np.ones_like(holds)}
        allowed = variants[self.sampler.support]
        sizes = allowed.sum(axis=1)
        ranks = draws.distinct(random, sizes) + (np.cumsum(sizes) - sizes)[:, None]
        chosen: IntArray = np.nonzero(allowed)[1][ranks]
        return chosen

    def _candidates(
        self, chosen: int, holds: BoolArray, holds_other: BoolArray, support: IntArray
    ) -> tuple[BoolArray, BoolArray]:
        """Inter-class (Eq. 5) and intra-class (Eq. 3) query candidates, without the support and its sources."""
        intra = ~holds
        if self.sampler.support == "random":
            np.put_along_axis(intra, support, False, axis=1)
        if self.pool.sources is not None:
            sources = self.pool.sources[self.pool.offsets[chosen] : self.pool.offsets[chosen + 1]]
            for shot in range(self.shape.shot):
                intra &= sources != sources[support[:, shot]][:, None]
        return intra & holds_other, intra

    def _scores(self, chosen: int, candidates: BoolArray, words: IntArray) -> IntArray:
        """s(x) of Eq. 6 times the number of candidates, an integer: [m, items]; 0 where queries are drawn at random."""
        if self.sampler.query_selection != "lowest":
            return np.zeros(candidates.shape, dtype=np.int64)
        incidence = self.holders.incidence(chosen)
        counts = incidence @ candidates.T.astype(np.int32)  # [words of the class, m]
        selected = self.holders.pairs(np.full(words.shape, chosen), words)
        column = np.broadcast_to(np.arange(len(words))[:, None], words.shape)
        occurs = selected >= 0
        counts[selected[occurs] - self.holders.first_pair[chosen], column[occurs]] = 0
        scores: IntArray = (incidence.T.tocsr() @ counts).T.astype(np.int64)
        return scores

    def _lowest(self, scores: IntArray, random: UInt64Array, candidates: BoolArray) -> IntArray:
        """Positions of the `query` candidates with the lowest scores, ties at random, lowest first: [m, query]."""
        keys = (scores.astype(np.uint64) << np.uint64(32)) | (random >> np.uint64(32))
        keys[~candidates] = np.iinfo(np.uint64).max
        chosen = np.argpartition(keys, self.shape.query - 1, axis=1)[:, : self.shape.query]
        order = np.argsort(np.take_along_axis(keys, chosen, axis=1), axis=1, kind="stable")
        lowest: IntArray = np.take_along_axis(chosen, order, axis=1)
        return lowest
