"""FewSTAB: tasks whose support plants one attribute per class, and whose queries lack it (Zheng et al., ECCV 2024).

The paper's sections 4.1 and 4.3, step by step:

1. A word is eligible for a class if at least `shot` of its items hold it and at least `query` lack it.
2. Classes are drawn uniformly, and one eligible word for each; all words differ.
3. Support: items that hold the class's word and none of the other classes' words. If there are too few, the task is
   drawn again.
4. Query candidates: items that lack the class's word and hold another class's (Eq. 5); if these are fewer than
   `query`, all items that lack the class's word (Eq. 3).
5. Query: the candidates with the lowest score s(x), the sum over x's non-selected words of the share of candidates
   that hold the word (Eq. 6). Ties are broken at random.

Hundreds of tries are drawn together in array operations. A draw is a function of seed, task and try, so the tasks do
not depend on how tries are grouped. s(x) times the number of candidates is a sum of counts: scores are integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, Self

import numpy as np
import pyarrow as pa
from scipy import sparse

from shotproof.attributes.attributes import HeldWords
from shotproof.core import draws
from shotproof.core.arrays import BoolArray, FloatArray, IntArray, UInt64Array
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks.fewstab.holders import Holders, count_bits, unpack
from shotproof.tasks.fewstab.insufficient import TryCounts, explain_small_supports, require_usable_classes
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import SKIP_SMALL_CLASSES, BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.taskset import TaskSet

CLASSES, WORDS, _SUPPORT, _TIES = 0, 1, 2, 3  # purposes of random numbers
Scores = IntArray | FloatArray
_MOST_BLOCKS = 1 << 18  # bit-set blocks that one round of tries may examine
_LARGEST_TABLE = 1 << 22  # entries of the table [eligible pairs, words]


@dataclass
class Tries:
    """Tries of tasks: task and try [n]; class, eligible pair and word [n, way]."""

    task: IntArray
    attempt: IntArray
    classes: IntArray
    pairs: IntArray
    words: IntArray

    def select(self, keep: BoolArray | IntArray) -> Self:
        """Select tries by a mask or by index."""
        return replace(self, **{field.name: getattr(self, field.name)[keep] for field in fields(self)})

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Concatenate parts."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


@dataclass(frozen=True)
class FewStab(Sampler):
    """Tasks with biased attributes; `support` and `query_selection` give the paper's ablations (SC1-3, QC1-3).

    `variant='published'` draws like the authors' published code, see `published_tasks`.
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
        "support items: those with the class's word and no other class's (exclusive), those with the class's word "
        "(attribute), or any (random)",
    )
    query_selection: Literal["lowest", "inter", "intra"] = option(
        "lowest",
        "query items: the candidates with the lowest scores (lowest), any candidates (inter), or any items that "
        "lack the word (intra)",
    )
    variant: Literal["paper", "published"] = option(
        "paper",
        "draw as the paper describes (paper), or like its authors' published code: words first, then classes, "
        "constraints relaxed after failures, queries ranked by sums of logarithms (published)",
    )
    max_tries: int = option(50_000, "largest number of tries per task", least=1)
    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)

    def bound(self, inputs: SamplerInputs) -> BoundSampler[FewStab]:
        """Bind the sampler to these inputs."""
        if self.variant == "published":
            from shotproof.tasks.fewstab.published_tasks import BoundPublished

            return BoundPublished(self, inputs)
        return BoundFewStab(self, inputs)


class BoundFewStab(BoundSampler[FewStab]):
    """FewSTAB sampler bound to its inputs."""

    def __init__(self, sampler: FewStab, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        assert inputs.attributes is not None
        held_words = inputs.attributes.of(inputs.catalog)
        all_items = ItemPool.of(inputs.catalog)
        pool = all_items.keep_only(held_words.known[all_items.rows])
        self.items_unknown = len(all_items.items) - len(pool.items)
        self.pool = pool.fitting(self.shape, sampler.skip_small_classes)
        self.words = held_words.words
        self.holders = Holders(self.pool, held_words)
        lacking = self.pool.sizes[self.holders.pair_class] - self.holders.counts
        self.eligible = np.flatnonzero((self.holders.counts >= self.shape.shot) & (lacking >= self.shape.query))
        eligible_class = self.holders.pair_class[self.eligible]
        self.eligible_counts = np.bincount(eligible_class, minlength=len(self.pool.classes))
        self.first_eligible = np.searchsorted(eligible_class, np.arange(len(self.pool.classes)))
        self.usable = np.flatnonzero(self.eligible_counts)
        self.left_out = sorted(set(all_items.classes) - {self.pool.classes[c] for c in self.usable})
        require_usable_classes(self)
        self.compatible_words = self._find_compatible_words(held_words)

    def draw(self, tasks: range) -> pa.Table:
        """Draw the rows of these tasks, with `tries` (how many each took) and `fallback` (query is intra-class)."""
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
            for found_tries in self._successful_tries(tasks.start, open_tasks, tried, counts):
                drawn_support, drawn_query, fell_back, complete = self._draw_items(found_tries)
                index = found_tries.task - tasks.start
                # An incomplete task (its support left too few queries) continues after the try that failed.
                tried[index[~complete]] = found_tries.attempt[~complete] + 1
                counts.record_incomplete(found_tries.task[~complete])
                index = index[complete]
                classes[index], words[index] = found_tries.classes[complete], found_tries.words[complete]
                support[index], query[index] = drawn_support[complete], drawn_query[complete]
                fallback[index], tries[index] = fell_back[complete], found_tries.attempt[complete] + 1
                for name, column in extra.items():
                    column[index] = getattr(found_tries, name)[complete]
                open_tasks = open_tasks[~np.isin(open_tasks, index)]
            counts.require_tries_left(tasks.start + open_tasks, tried[open_tasks])
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
        """Summarize tries, the share of classes whose query fell back to intra-class, and what was left out."""
        tries = tasks.table.column("tries").to_numpy()[tasks.starts[:-1]]
        return {
            "tries_mean": float(tries.mean()),
            "tries_max": int(tries.max()),
            "fallback_share": float(np.mean(tasks.table.column("fallback").to_numpy())),
            "classes_left_out": self.left_out,
            "items_without_attributes": self.items_unknown,
        }

    def _extra_columns(self, tasks: int) -> dict[str, IntArray]:
        """Allocate further columns [tasks, way], which are filled from the tries' fields of the same names."""
        return {}

    def _count_tries(self, tasks: range) -> TryCounts:
        return TryCounts(self)

    def _round_size(self) -> int:
        """Return how many tries one round may have, so that memory is bounded."""
        blocks = int(self.holders.class_blocks[self.usable].max())
        return max(16, _MOST_BLOCKS // (self.shape.way * blocks))

    def _find_compatible_words(self, held_words: HeldWords) -> BoolArray | None:
        """Return for which words an eligible pair of class and word has `shot` holders without the word.

        Flat [eligible * words]. All pairs of a task must have that for each other's words, which rules out most tries
        after two classes. None if supports may share words, or the table would be large; only speed depends on it.
        """
        if self.sampler.support != "exclusive" or len(self.eligible) * len(self.words) > _LARGEST_TABLE:
            return None
        pairs = self.eligible
        counts = self.holders.counts[pairs]
        entry = np.repeat(self.holders.starts[pairs] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        positions = self.holders.items[entry] + np.repeat(self.pool.offsets[self.holders.pair_class[pairs]], counts)
        pointers = np.concatenate([[0], np.cumsum(counts)])
        shape = (len(pairs), len(self.pool.rows))
        holders = sparse.csr_matrix((np.ones(len(entry), np.int32), positions, pointers), shape)
        shared = (holders @ held_words.matrix[self.pool.rows].astype(np.int32)).toarray()
        enough: BoolArray = counts[:, None] - shared >= self.shape.shot
        return enough.ravel()

    def _successful_tries(self, start: int, tasks: IntArray, tried: IntArray, counts: TryCounts) -> Iterator[Tries]:
        """Yield the next successful try of each task, many tasks at a time; advances `tried`."""
        parts: list[Tries] = []
        while len(tasks):
            # Many tries of few tasks if most tries fail, few tries of many tasks if most succeed.
            depth = counts.tries_per_task()
            batch = tasks[: max(1, self._round_size() // depth)]
            parts.append(self._first_successful_tries(start + batch, tried[batch], depth, counts))
            tried[batch] += depth
            tasks = tasks[~np.isin(tasks, parts[-1].task - start)]
            counts.require_tries_left(start + tasks, tried[tasks])
            self.holders.drop_if_large()
            if not len(tasks) or sum(len(part.task) for part in parts) >= self._round_size():
                yield parts[0].concatenate(parts)
                parts = []

    def _first_successful_tries(self, task: IntArray, tried: IntArray, depth: int, counts: TryCounts) -> Tries:
        """Find, among the next `depth` tries of each task, the first with different words and enough support."""
        attempt = (tried[:, None] + np.arange(depth)).ravel()
        tries = self._draw_tries(np.repeat(task, depth), attempt)
        if self.sampler.support == "exclusive" and len(tries.task):
            tries = tries.select(np.all(self._exclusive_counts(tries) >= self.shape.shot, axis=1))
        first = np.flatnonzero(np.diff(tries.task, prepend=-1))  # tries come task by task, in order
        counts.record(len(attempt), len(first))
        return tries.select(first)

    def _draw_tries(self, task: IntArray, attempt: IntArray, keep_all: bool = False) -> Tries:
        """Draw tries: all, or only those in which any two classes have different words and large enough supports.

        Classes and words are drawn slot by slot; most tries are ruled out before the last slot.
        """
        state = draws.bits(self.seed, task, attempt)
        by_class, by_word = draws.further(state, CLASSES), draws.further(state, WORDS)
        remaining = np.arange(len(task))
        drawn: list[IntArray] = []  # indices into the eligible pairs, slot by slot
        drawn_classes: list[IntArray] = []  # classes so far, in ascending order
        for slot in range(self.shape.way):
            rank = draws.below(draws.further(by_class, slot), len(self.usable) - slot)
            chosen = self.usable[draws.untaken(rank, drawn_classes)]
            rank_of_word = draws.below(draws.further(by_word, slot), self.eligible_counts[chosen])
            drawn.append(self.first_eligible[chosen] + rank_of_word)
            if slot and not keep_all:
                keep = np.flatnonzero(self._are_compatible(drawn))
                remaining, by_class, by_word = remaining[keep], by_class[keep], by_word[keep]
                drawn, drawn_classes = [part[keep] for part in drawn], [part[keep] for part in drawn_classes]
        pairs = self.eligible[np.stack(drawn, axis=1)]
        classes, words = self.holders.pair_class[pairs], self.holders.pair_word[pairs]
        return Tries(task[remaining], attempt[remaining], classes, pairs, words)

    def _are_compatible(self, drawn: Sequence[IntArray]) -> BoolArray:
        """Return whether the last of the drawn pairs can share a task with each of the others."""
        last, words = drawn[-1], len(self.words)
        last_word = self.holders.pair_word[self.eligible[last]]
        compatible = np.ones(len(last), dtype=np.bool_)
        for earlier in drawn[:-1]:
            earlier_word = self.holders.pair_word[self.eligible[earlier]]
            if self.compatible_words is None:
                compatible &= last_word != earlier_word
            else:
                compatible &= self.compatible_words[earlier * words + last_word]
                compatible &= self.compatible_words[last * words + earlier_word]
        return compatible

    def explain_failure(self, task: int) -> str:
        """Explain what the first tries of a task lack."""
        attempt = np.arange(min(self._round_size(), self.sampler.max_tries))
        tries = self._draw_tries(np.full(len(attempt), task), attempt, keep_all=True)
        sorted_words = np.sort(tries.words, axis=1)
        words_differ = np.all(sorted_words[:, 1:] != sorted_words[:, :-1], axis=1)
        reason = self._explain_small_supports(tries.select(words_differ))
        return reason or (
            f"two classes drew the same word in {int((~words_differ).sum())} of {len(words_differ)} tries: the classes "
            f"have too few different eligible words ({len(np.unique(self.holders.pair_word[self.eligible]))} in all)"
        )

    def _explain_small_supports(self, tries: Tries) -> str | None:
        """Explain which class most often has too small a support in these tries; None if none has."""
        if self.sampler.support != "exclusive" or not len(tries.task):
            return None
        is_too_small = self._exclusive_counts(tries) < self.shape.shot
        return explain_small_supports(self, tries.classes, is_too_small) if is_too_small.any() else None

    def _selected_bits(self, tries: Tries) -> tuple[UInt64Array, UInt64Array, IntArray]:
        """Return bit sets of the items that hold their class's word, and of those that hold another class's word.

        Both are flat: slot s of try n has `blocks[n, s]` blocks, one slot after the other. The third array has
        the start of each slot.
        """
        begin, bits = self._word_bits(tries)
        class_word = next(bits)
        other_words = np.zeros_like(class_word)
        for other in bits:
            other_words |= other
        return class_word, other_words, begin

    def _word_bits(self, tries: Tries) -> tuple[IntArray, Iterator[UInt64Array]]:
        """Return the start of each slot, and bit sets of the holders of their class's word, then of each other word."""
        blocks = self.holders.class_blocks[tries.classes].ravel()
        begin = np.cumsum(blocks) - blocks
        within = np.arange(blocks.sum()) - np.repeat(begin, blocks)
        words = (np.roll(tries.words, shift, axis=1) for shift in range(self.shape.way))
        return begin, (
            self.holders.bits(self.holders.pairs(tries.classes, word).ravel(), blocks, within) for word in words
        )

    def _exclusive_counts(self, tries: Tries) -> IntArray:
        """Count the items that hold their class's word and no other word of the task: [n, way]."""
        class_word, other_words, begin = self._selected_bits(tries)
        return count_bits(class_word & ~other_words, begin).reshape(tries.classes.shape)

    def _draw_items(self, tries: Tries) -> tuple[IntArray, IntArray, BoolArray, BoolArray]:
        """Draw support and query positions; return also which queries fell back and which tries are complete."""
        count, way = tries.classes.shape
        support = np.zeros((count * way, self.shape.shot), dtype=np.int64)
        query = np.zeros((count * way, self.shape.query), dtype=np.int64)
        fallback = np.zeros(count * way, dtype=np.bool_)
        complete = np.zeros(count * way, dtype=np.bool_)
        class_word, other_words, begin = self._selected_bits(tries)
        flat_classes = tries.classes.ravel()
        for chosen in np.unique(flat_classes):
            indices = np.flatnonzero(flat_classes == chosen)
            blocks = begin[indices][:, None] + np.arange(self.holders.class_blocks[chosen])
            items = int(self.pool.sizes[chosen])
            holds, holds_other = unpack(class_word[blocks], items), unpack(other_words[blocks], items)
            row, slot = np.divmod(indices, way)
            stream = (tries.task[row][:, None], tries.attempt[row][:, None])
            ranks = draws.bits(self.seed, *stream, _SUPPORT, slot[:, None], np.arange(self.shape.shot))
            exclusive = holds & ~holds_other
            if self.sampler.support == "exclusive":
                exclusive = self._allowed_support(tries, row, slot, exclusive)
            support[indices] = self._draw_support(holds, exclusive, ranks)
            inter, intra = self._candidates(int(chosen), holds, holds_other, support[indices])
            if self.sampler.query_selection == "intra":
                candidates = intra
            else:
                fallback[indices] = self._falls_back(tries, row, slot, inter)
                candidates = np.where(fallback[indices][:, None], intra, inter)
            complete[indices] = candidates.sum(axis=1) >= self.shape.query
            random = draws.bits(self.seed, *stream, _TIES, slot[:, None], np.arange(items))
            scores = self._scores(int(chosen), candidates, tries.words[row])
            query[indices] = self._select_lowest(scores, random, candidates)
            support[indices] += self.pool.offsets[chosen]
            query[indices] += self.pool.offsets[chosen]
        return (
            support.reshape(count, way, -1),
            query.reshape(count, way, -1),
            fallback.reshape(count, way),
            np.all(complete.reshape(count, way), axis=1),
        )

    def _allowed_support(self, tries: Tries, row: IntArray, slot: IntArray, exclusive: BoolArray) -> BoolArray:
        """Return which items of a class may be support in these tries and slots; `exclusive` hold only its word."""
        return exclusive

    def _falls_back(self, tries: Tries, row: IntArray, slot: IntArray, inter: BoolArray) -> BoolArray:
        """Return whether these tries and slots of one class draw queries from the intra-class candidates: [m]."""
        too_few: BoolArray = inter.sum(axis=1) < self.shape.query
        return too_few

    def _draw_support(self, holds: BoolArray, exclusive: BoolArray, random: UInt64Array) -> IntArray:
        """Draw support positions within the class, uniformly among the items that `support` allows: [m, shot]."""
        variants = {"exclusive": exclusive, "attribute": holds, "random": np.ones_like(holds)}
        allowed = variants[self.sampler.support]
        sizes = allowed.sum(axis=1)
        ranks = draws.distinct(random, sizes) + (np.cumsum(sizes) - sizes)[:, None]
        chosen: IntArray = np.nonzero(allowed)[1][ranks]
        return chosen

    def _candidates(
        self, chosen: int, holds: BoolArray, holds_other: BoolArray, support: IntArray
    ) -> tuple[BoolArray, BoolArray]:
        """Return inter-class (Eq. 5) and intra-class (Eq. 3) query candidates, without the support and its sources."""
        intra = ~holds
        if self.sampler.support == "random":
            np.put_along_axis(intra, support, False, axis=1)
        if self.pool.sources is not None:
            sources = self.pool.sources[self.pool.offsets[chosen] : self.pool.offsets[chosen + 1]]
            for shot in range(self.shape.shot):
                intra &= sources != sources[support[:, shot]][:, None]
        return intra & holds_other, intra

    def _scores(self, chosen: int, candidates: BoolArray, words: IntArray) -> Scores:
        """Sum the weights of the words that are not selected, [m, items]; 0 if queries are drawn at random."""
        if self.sampler.query_selection != "lowest":
            return np.zeros(candidates.shape, dtype=np.int64)
        incidence = self.holders.incidence(chosen)
        weights = self._weights(chosen, incidence @ candidates.T.astype(np.int32), candidates)
        selected = self.holders.pairs(np.full(words.shape, chosen), words)
        column = np.broadcast_to(np.arange(len(words))[:, None], words.shape)
        occurs = selected >= 0
        weights[selected[occurs] - self.holders.first_pair[chosen], column[occurs]] = 0
        # Round, so that equal sums of different words are equal numbers, and hence ties.
        scores: Scores = np.round((incidence.T.tocsr() @ weights).T, 9)
        return scores

    def _weights(self, chosen: int, counts: IntArray, candidates: BoolArray) -> Scores:
        """Return the weight of each word, [words of the class, m], given how many candidates hold it.

        This is the count itself, so that scores are s(x) of Eq. 6 times the number of candidates.
        """
        return counts

    def _select_lowest(self, scores: Scores, random: UInt64Array, candidates: BoolArray) -> IntArray:
        """Select the `query` candidates with the lowest scores, ties at random, lowest first: positions [m, query]."""
        keys = (scores.astype(np.uint64) << np.uint64(32)) | (random >> np.uint64(32))
        keys[~candidates] = np.iinfo(np.uint64).max
        chosen = np.argpartition(keys, self.shape.query - 1, axis=1)[:, : self.shape.query]
        order = np.argsort(np.take_along_axis(keys, chosen, axis=1), axis=1, kind="stable")
        lowest: IntArray = np.take_along_axis(chosen, order, axis=1)
        return lowest
