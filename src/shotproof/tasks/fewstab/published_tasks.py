"""FewSTAB as its authors' published code draws it, which is not what the paper's text says.

1. The vocabulary is all words that are eligible for some class. The words of a task are drawn from it first, uniformly.
2. Word by word, a class is drawn uniformly among those for which the word is eligible, as is another of the words, and
   which are not drawn yet. Where there is none, the try has failed.
3. Support: items that hold the class's word and at most L of the others'. L is 0, and rises by 0.2 with each support
   that is too small, so that one more word is allowed from the fifth failure on. A support that is found sets it to 0.
4. Query candidates: the inter-class ones (Eq. 5). Where these are too few, the try has failed; after five such failures
   the intra-class ones (Eq. 3) are taken instead, until a class has its queries.
5. Query: the candidates with the lowest sum of log(p_a + 1e-10) over the words of the vocabulary that are held, and of
   log(1e-10) over those that are not. Words that are not selected count alone, as in Eq. 6.

Failures are remembered from try to try of a task, and forgotten with each class that succeeds, so that it is the first
class of a task alone whose constraints are ever loosened. Words and classes of a try do not depend on them, so tries
are drawn by the hundred, and only which of them is the first to succeed is told one by one. Ties are at random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shotproof.core import draws
from shotproof.core.arrays import BoolArray, FloatArray, IntArray, UInt64Array
from shotproof.core.records import Meta
from shotproof.tasks.fewstab.fewstab_sampler import CLASSES, WORDS, BoundFewStab, FewStab, Scores, Tries
from shotproof.tasks.fewstab.holders import count_bits, unpack
from shotproof.tasks.fewstab.insufficient import TryCounts
from shotproof.tasks.sampler import SamplerInputs
from shotproof.tasks.taskset import TaskSet

_LOOSENED_BY = 0.2  # words of other classes that a support item may hold, for each support that was too small
_FAILED_QUERIES = 5  # too few inter-class candidates so many times, and intra-class ones are taken
_SMALL = 1e-10  # what stands for the share of a word that an item does not hold


@dataclass
class PublishedTries(Tries):
    """Tries with what was loosened for each class, and how often the task had failed by then; all [n, way].

    support_loosened: how many words of other classes a support item might hold
    falls_back: whether the queries are from the intra-class candidates
    support_failures, query_failures: failures of the whole task so far
    """

    support_loosened: IntArray
    falls_back: BoolArray
    support_failures: IntArray
    query_failures: IntArray


@dataclass
class _Loosening:
    """What one task's failures have loosened so far, and how many there were in all."""

    allowed: float = 0.0
    failed_queries: int = 0
    support_failures: int = 0
    query_failures: int = 0


class LooseningCounts(TryCounts):
    """Counts of tries, and what has been loosened for each task of the block."""

    def __init__(self, bound: BoundPublished, tasks: range) -> None:
        super().__init__(bound)
        self.loosening = {task: _Loosening() for task in tasks}


class BoundPublished(BoundFewStab):
    """Draws tasks with biased attributes as the published code does."""

    def __init__(self, sampler: FewStab, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        eligible_words = self.holders.pair_word[self.eligible]
        self.vocabulary = np.unique(eligible_words)
        self.in_vocabulary = np.zeros(self.holders.words_known, dtype=np.bool_)
        self.in_vocabulary[self.vocabulary] = True
        self.eligible_for = np.zeros((len(self.vocabulary), len(self.pool.classes)), dtype=np.bool_)
        self.eligible_for[np.searchsorted(self.vocabulary, eligible_words), self.holders.pair_class[self.eligible]] = (
            True
        )

    def summary(self, tasks: TaskSet) -> Meta:
        """As the paper's variant, and every loosening: of how many classes, after how many failures in all."""
        told = super().summary(tasks)
        table = tasks.table
        loosened = table.column("support_loosened").to_numpy() > 0
        failures = {
            name: int(table.column(name).to_numpy()[tasks.starts[:-1]].sum())
            for name in ("support_failures", "query_failures")
        }
        return {**told, "support_loosened_share": float(loosened.mean()), **failures}

    def _extra_columns(self, tasks: int) -> dict[str, IntArray]:
        names = ("support_loosened", "support_failures", "query_failures")
        return {name: np.zeros((tasks, self.shape.way), dtype=np.int64) for name in names}

    def _count_tries(self, tasks: range) -> TryCounts:
        return LooseningCounts(self, tasks)

    def _round(self) -> int:
        """How many tries one round may hold: a try looks at every class, too."""
        return max(16, min(super()._round(), (1 << 24) // (self.shape.way * len(self.pool.classes))))

    def _first_successes(self, task: IntArray, tried: IntArray, depth: int, counts: TryCounts) -> PublishedTries:
        """Of each task's next `depth` tries the first that succeeds, with what was loosened until then."""
        assert isinstance(counts, LooseningCounts)
        attempt = (tried[:, None] + np.arange(depth)).ravel()
        tries, drawn = self._words_then_classes(np.repeat(task, depth), attempt)
        found = self._first_in_order(tries, drawn, *self._sizes(tries), depth, counts)
        counts.record(len(attempt), len(found))
        return tries.only(np.array(found, dtype=np.int64))

    def why_tries_fail(self, task: int) -> str:
        """Say for how many of a task's first tries no class was left, or what the others lack."""
        attempt = np.arange(min(self._round(), self.sampler.max_tries))
        tries, drawn = self._words_then_classes(np.full(len(attempt), task), attempt)
        complete = drawn == self.shape.way
        without = f"no class was left for a drawn word in {int((~complete).sum())} of {len(drawn)} tries"
        lacking = self._why_supports_lack(tries.only(complete))
        return f"{without}; {lacking}" if lacking else without

    def _words_then_classes(self, task: IntArray, attempt: IntArray) -> tuple[PublishedTries, IntArray]:
        """Tries with nothing loosened, and for how many words of each a class was left; classes beyond are no draw."""
        way, count = self.shape.way, len(task)
        random = [
            draws.bits(self.seed, task[:, None], attempt[:, None], purpose, np.arange(way))
            for purpose in (WORDS, CLASSES)
        ]
        words = draws.distinct(random[0], len(self.vocabulary))
        eligible = self.eligible_for[words]  # [n, way, classes]
        times = eligible.sum(axis=1)
        taken = np.zeros((count, len(self.pool.classes)), dtype=np.bool_)
        classes = np.zeros((count, way), dtype=np.int64)
        drawn = np.full(count, way)
        for slot in range(way):
            possible = eligible[:, slot] & (times > 1) & ~taken
            sizes = possible.sum(axis=1)
            drawn = np.where((sizes == 0) & (drawn == way), slot, drawn)
            rank = draws.below(random[1][:, slot], np.maximum(sizes, 1))
            classes[:, slot] = np.argmax(np.cumsum(possible, axis=1) > rank[:, None], axis=1)
            taken[np.arange(count), classes[:, slot]] = True
        words = self.vocabulary[words]
        shape = (count, way)
        nothing = [np.zeros(shape, dtype=np.int64) for _ in range(3)]
        pairs = self.holders.pairs(classes, words)
        loosened, falls_back = nothing[0], np.zeros(shape, dtype=np.bool_)
        return PublishedTries(task, attempt, classes, pairs, words, loosened, falls_back, *nothing[1:]), drawn

    def _sizes(self, tries: Tries) -> tuple[IntArray, IntArray]:
        """How many supports there are that hold at most k of the others' words, and inter-class candidates.

        [way, n, way], by k, and [n, way].
        """
        way, shape = self.shape.way, tries.classes.shape
        begin, bits = self._bits(tries)
        own = next(bits)
        # more[k]: the items that hold more than k of the others' words.
        more = np.zeros((way, len(own)), dtype=np.uint64)
        for others, other in enumerate(bits):
            for k in range(others, 0, -1):
                more[k] |= more[k - 1] & other
            more[0] |= other
        supports = np.stack([count_bits(own & ~more[k], begin).reshape(shape) for k in range(way)])
        return supports, count_bits(more[0] & ~own, begin).reshape(shape)

    def _first_in_order(
        self,
        tries: PublishedTries,
        drawn: IntArray,
        supports: IntArray,
        inter: IntArray,
        depth: int,
        counts: LooseningCounts,
    ) -> list[int]:
        """Which tries are the first of their tasks to succeed; failures are counted, and loosenings written down."""
        way, exclusive = self.shape.way, self.sampler.support == "exclusive"
        drawn_slots, support_sizes, inter_sizes = drawn.tolist(), supports.tolist(), inter.tolist()
        found: list[int] = []
        for start in range(0, len(drawn), depth):
            state = counts.loosening[int(tries.task[start])]
            for one in range(start, start + depth):
                for slot in range(drawn_slots[one]):
                    if exclusive:
                        allowed = min(int(state.allowed), way - 1)
                        if support_sizes[allowed][one][slot] < self.shape.shot:
                            state.allowed += _LOOSENED_BY
                            state.support_failures += 1
                            break
                        tries.support_loosened[one, slot] = allowed
                        state.allowed = 0.0
                    if self.sampler.query_selection != "intra":
                        falls_back = state.failed_queries >= _FAILED_QUERIES
                        if not falls_back and inter_sizes[one][slot] < self.shape.query:
                            state.failed_queries += 1
                            state.query_failures += 1
                            break
                        tries.falls_back[one, slot] = falls_back
                        state.failed_queries = 0
                else:
                    if drawn_slots[one] == way:
                        tries.support_failures[one] = state.support_failures
                        tries.query_failures[one] = state.query_failures
                        found.append(one)
                        break
        return found

    def _exclusive(self, tries: Tries, row: IntArray, slot: IntArray, exclusive: BoolArray) -> BoolArray:
        """Items that hold the own word and at most so many of the others' as was allowed."""
        assert isinstance(tries, PublishedTries)
        loosened = tries.support_loosened[row, slot]
        if not loosened.any():
            return exclusive
        chosen, words = tries.classes[row, slot], tries.words[row]
        blocks = self.holders.class_blocks[chosen]
        within = np.tile(np.arange(blocks[0]), len(row))
        held = np.stack(
            [
                unpack(
                    self.holders.bits(self.holders.pairs(chosen, words[:, s]), blocks, within).reshape(len(row), -1),
                    exclusive.shape[1],
                )
                for s in range(self.shape.way)
            ]
        )  # [way, m, items]
        own = held[slot, np.arange(len(row))]
        others = held.sum(axis=0) - own
        allowed: BoolArray = own & (others <= loosened[:, None])
        return allowed

    def _falls_back(self, tries: Tries, row: IntArray, slot: IntArray, inter: BoolArray) -> BoolArray:
        assert isinstance(tries, PublishedTries)
        return tries.falls_back[row, slot]

    def _weights(self, chosen: int, counts: IntArray, candidates: BoolArray) -> FloatArray:
        """The logarithm of a word's share of the candidates, less that of a word which nobody holds."""
        shares = counts / np.maximum(candidates.sum(axis=1), 1)
        weights: FloatArray = np.log(shares + _SMALL) - np.log(_SMALL)
        low, high = self.holders.first_pair[chosen : chosen + 2]
        weights[~self.in_vocabulary[self.holders.pair_word[low:high]]] = 0
        return weights

    def _lowest(self, scores: Scores, random: UInt64Array, candidates: BoolArray) -> IntArray:
        order: IntArray = np.lexsort((random, scores, ~candidates), axis=1)[:, : self.shape.query]
        return order
