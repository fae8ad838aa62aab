"""FewSTAB tasks as the authors' published code draws them, which differs from the paper's text.

1. The vocabulary is all words that are eligible for some class. The words of a task are drawn from it first, uniformly.
2. For each word, a class is drawn uniformly among those not drawn yet for which this word and at least one other word
   of the task are eligible. If there is none, the try fails.
3. Support: items that hold the class's word and at most L words of other classes, L rounded down. L begins at 0 and
   rises by 0.2 with each support that is too small: the fifth failure allows one more word. A success resets it to 0.
4. Query candidates: the inter-class candidates (Eq. 5). If these are too few, the try fails; after five such failures
   the intra-class candidates (Eq. 3) are used instead, until a class has its queries.
5. Query: the candidates with the lowest sum of log(p_a + 1e-10) over the words of the vocabulary that they hold, and of
   log(1e-10) over those that they lack. Only words that are not selected count, as in Eq. 6.

Failures carry over from try to try of a task and are reset by each class that succeeds, so that only the constraints of
a task's first class are ever relaxed. Words and classes of a try do not depend on them: hundreds of tries are drawn
together, and only the search for the first success goes through them one by one. Ties are broken at random.
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

_RELAXED_BY = 0.2  # more words of other classes allowed in a support item, for each support that was too small
_FAILED_QUERIES = 5  # failures for lack of inter-class candidates until intra-class candidates are used
_SMALL = 1e-10  # replaces the share of a word that an item does not hold


@dataclass
class PublishedTries(Tries):
    """Tries, with how far constraints were relaxed for each class and how often the task had failed; all [n, way].

    support_loosened: how many words of other classes a support item may hold
    falls_back: whether the queries are intra-class candidates
    support_failures, query_failures: failures of the whole task so far
    """

    support_loosened: IntArray
    falls_back: BoolArray
    support_failures: IntArray
    query_failures: IntArray


@dataclass
class _Relaxation:
    """State of one task: how far its failures have relaxed constraints, and how many there were in total."""

    allowed: float = 0.0
    failed_queries: int = 0
    support_failures: int = 0
    query_failures: int = 0


class RelaxationCounts(TryCounts):
    """Counts of tries, and how far constraints are relaxed for each task of the block."""

    def __init__(self, bound: BoundPublished, tasks: range) -> None:
        super().__init__(bound)
        self.relaxations = {task: _Relaxation() for task in tasks}


class BoundPublished(BoundFewStab):
    """FewSTAB sampler that draws like the published code, bound to its inputs."""

    def __init__(self, sampler: FewStab, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        eligible_words = self.holders.pair_word[self.eligible]
        self.vocabulary = np.unique(eligible_words)
        self.in_vocabulary = np.zeros(self.holders.number_of_words, dtype=np.bool_)
        self.in_vocabulary[self.vocabulary] = True
        self.eligible_for = np.zeros((len(self.vocabulary), len(self.pool.classes)), dtype=np.bool_)
        self.eligible_for[np.searchsorted(self.vocabulary, eligible_words), self.holders.pair_class[self.eligible]] = (
            True
        )

    def summary(self, tasks: TaskSet) -> Meta:
        """Summarize like the paper's variant, and add how often constraints were relaxed, and all failures."""
        summary = super().summary(tasks)
        table = tasks.table
        is_relaxed = table.column("support_loosened").to_numpy() > 0
        failures = {
            name: int(table.column(name).to_numpy()[tasks.starts[:-1]].sum())
            for name in ("support_failures", "query_failures")
        }
        return {**summary, "support_loosened_share": float(is_relaxed.mean()), **failures}

    def _extra_columns(self, tasks: int) -> dict[str, IntArray]:
        names = ("support_loosened", "support_failures", "query_failures")
        return {name: np.zeros((tasks, self.shape.way), dtype=np.int64) for name in names}

    def _count_tries(self, tasks: range) -> TryCounts:
        return RelaxationCounts(self, tasks)

    def _round_size(self) -> int:
        """Return how many tries one round may have, so that memory is bounded; each try also looks at every class."""
        return max(16, min(super()._round_size(), (1 << 24) // (self.shape.way * len(self.pool.classes))))

    def _first_successful_tries(self, task: IntArray, tried: IntArray, depth: int, counts: TryCounts) -> PublishedTries:
        """Find, among the next `depth` tries of each task, the first success, with how far constraints were relaxed."""
        assert isinstance(counts, RelaxationCounts)
        attempt = (tried[:, None] + np.arange(depth)).ravel()
        tries, drawn = self._draw_words_then_classes(np.repeat(task, depth), attempt)
        successes = self._first_in_order(tries, drawn, *self._count_candidates(tries), depth, counts)
        counts.record(len(attempt), len(successes))
        return tries.select(np.array(successes, dtype=np.int64))

    def explain_failure(self, task: int) -> str:
        """Explain in how many of a task's first tries no class was left for a word, and what the others lack."""
        attempt = np.arange(min(self._round_size(), self.sampler.max_tries))
        tries, words_with_class = self._draw_words_then_classes(np.full(len(attempt), task), attempt)
        complete = words_with_class == self.shape.way
        no_class = f"no class was left for a drawn word in {int((~complete).sum())} of {len(words_with_class)} tries"
        reason = self._explain_small_supports(tries.select(complete))
        return f"{no_class}; {reason}" if reason else no_class

    def _draw_words_then_classes(self, task: IntArray, attempt: IntArray) -> tuple[PublishedTries, IntArray]:
        """Draw tries, nothing relaxed, and the number of words that have a class; ignore classes beyond that number."""
        way, count = self.shape.way, len(task)
        random = [
            draws.bits(self.seed, task[:, None], attempt[:, None], purpose, np.arange(way))
            for purpose in (WORDS, CLASSES)
        ]
        words = draws.distinct(random[0], len(self.vocabulary))
        eligible = self.eligible_for[words]  # [n, way, classes]
        eligible_words = eligible.sum(axis=1)
        is_drawn = np.zeros((count, len(self.pool.classes)), dtype=np.bool_)
        classes = np.zeros((count, way), dtype=np.int64)
        words_with_class = np.full(count, way)
        for slot in range(way):
            possible = eligible[:, slot] & (eligible_words > 1) & ~is_drawn
            sizes = possible.sum(axis=1)
            words_with_class = np.where((sizes == 0) & (words_with_class == way), slot, words_with_class)
            rank = draws.below(random[1][:, slot], np.maximum(sizes, 1))
            classes[:, slot] = np.argmax(np.cumsum(possible, axis=1) > rank[:, None], axis=1)
            is_drawn[np.arange(count), classes[:, slot]] = True
        words = self.vocabulary[words]
        shape = (count, way)
        zeros = [np.zeros(shape, dtype=np.int64) for _ in range(3)]
        pairs = self.holders.pairs(classes, words)
        relaxed, falls_back = zeros[0], np.zeros(shape, dtype=np.bool_)
        return PublishedTries(task, attempt, classes, pairs, words, relaxed, falls_back, *zeros[1:]), words_with_class

    def _count_candidates(self, tries: Tries) -> tuple[IntArray, IntArray]:
        """Count the candidates of each try and slot.

        Returns:
            Support items with at most k words of other classes, [way (k), n, way]; inter-class candidates, [n, way].
        """
        way, shape = self.shape.way, tries.classes.shape
        begin, bits = self._word_bits(tries)
        class_word = next(bits)
        # more_than[k]: items that hold more than k words of other classes.
        more_than = np.zeros((way, len(class_word)), dtype=np.uint64)
        for number, other_word in enumerate(bits):
            for k in range(number, 0, -1):
                more_than[k] |= more_than[k - 1] & other_word
            more_than[0] |= other_word
        supports = np.stack([count_bits(class_word & ~more_than[k], begin).reshape(shape) for k in range(way)])
        return supports, count_bits(more_than[0] & ~class_word, begin).reshape(shape)

    def _first_in_order(
        self,
        tries: PublishedTries,
        words_with_class: IntArray,
        supports: IntArray,
        inter: IntArray,
        depth: int,
        counts: RelaxationCounts,
    ) -> list[int]:
        """Find the first success of each task; count failures, and record how far constraints were relaxed."""
        way, exclusive = self.shape.way, self.sampler.support == "exclusive"
        slots_with_class, support_sizes, inter_sizes = words_with_class.tolist(), supports.tolist(), inter.tolist()
        successes: list[int] = []
        for start in range(0, len(words_with_class), depth):
            state = counts.relaxations[int(tries.task[start])]
            for index in range(start, start + depth):
                for slot in range(slots_with_class[index]):
                    if exclusive:
                        allowed = min(int(state.allowed), way - 1)
                        if support_sizes[allowed][index][slot] < self.shape.shot:
                            state.allowed += _RELAXED_BY
                            state.support_failures += 1
                            break
                        tries.support_loosened[index, slot] = allowed
                        state.allowed = 0.0
                    if self.sampler.query_selection != "intra":
                        falls_back = state.failed_queries >= _FAILED_QUERIES
                        if not falls_back and inter_sizes[index][slot] < self.shape.query:
                            state.failed_queries += 1
                            state.query_failures += 1
                            break
                        tries.falls_back[index, slot] = falls_back
                        state.failed_queries = 0
                else:
                    if slots_with_class[index] == way:
                        tries.support_failures[index] = state.support_failures
                        tries.query_failures[index] = state.query_failures
                        successes.append(index)
                        break
        return successes

    def _allowed_support(self, tries: Tries, row: IntArray, slot: IntArray, exclusive: BoolArray) -> BoolArray:
        """Return which items hold their class's word and at most the allowed number of other classes' words."""
        assert isinstance(tries, PublishedTries)
        relaxed = tries.support_loosened[row, slot]
        if not relaxed.any():
            return exclusive
        chosen, words = tries.classes[row, slot], tries.words[row]
        blocks = self.holders.class_blocks[chosen]
        within = np.tile(np.arange(blocks[0]), len(row))
        holds_word = np.stack(
            [
                unpack(
                    self.holders.bits(self.holders.pairs(chosen, words[:, s]), blocks, within).reshape(len(row), -1),
                    exclusive.shape[1],
                )
                for s in range(self.shape.way)
            ]
        )  # [way, m, items]
        holds = holds_word[slot, np.arange(len(row))]
        other_words = holds_word.sum(axis=0) - holds
        allowed: BoolArray = holds & (other_words <= relaxed[:, None])
        return allowed

    def _falls_back(self, tries: Tries, row: IntArray, slot: IntArray, inter: BoolArray) -> BoolArray:
        assert isinstance(tries, PublishedTries)
        return tries.falls_back[row, slot]

    def _weights(self, chosen: int, counts: IntArray, candidates: BoolArray) -> FloatArray:
        """Return the logarithm of each word's share of the candidates, minus that of a word that no candidate holds."""
        shares = counts / np.maximum(candidates.sum(axis=1), 1)
        weights: FloatArray = np.log(shares + _SMALL) - np.log(_SMALL)
        low, high = self.holders.first_pair[chosen : chosen + 2]
        weights[~self.in_vocabulary[self.holders.pair_word[low:high]]] = 0
        return weights

    def _select_lowest(self, scores: Scores, random: UInt64Array, candidates: BoolArray) -> IntArray:
        order: IntArray = np.lexsort((random, scores, ~candidates), axis=1)[:, : self.shape.query]
        return order
