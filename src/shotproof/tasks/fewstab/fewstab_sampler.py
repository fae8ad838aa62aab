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
from shotproof.tasks.fewstab.insufficient import TryCounts, refuse_unusable, why_supports_lack
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import SKIP_SMALL_CLASSES, BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.taskset import TaskSet

CLASSES, WORDS, _SUPPORT, _TIES = 0, 1, 2, 3  # what a random number is drawn for
Scores = IntArray | FloatArray
_CELLS = 1 << 18  # bit-set blocks that one round of tries may look at
_MOST_LOOKED_UP = 1 << 22  # pairs of an eligible pair and a word that a table is made of


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

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """All tries of several parts, one after the other."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


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

    def bound(self, inputs: SamplerInputs) -> BoundSampler[FewStab]:
        """Tasks that plant words of these inputs."""
        if self.variant == "published":
            from shotproof.tasks.fewstab.published_tasks import BoundPublished

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
        self.supports_without = self._supports_without(held)

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
            for found in self._successes(tasks.start, open_tasks, tried, counts):
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

    def _supports_without(self, held: HeldWords) -> BoolArray | None:
        """Whether an eligible pair of class and word keeps `shot` holders without a word: [eligible, words], flat.

        A task needs that of any two of its pairs, which rules out most tries after two of their classes. None if
        supports may share words, or the table would be large; nothing but time depends on it.
        """
        if self.sampler.support != "exclusive" or len(self.eligible) * len(self.words) > _MOST_LOOKED_UP:
            return None
        pairs = self.eligible
        counts = self.holders.counts[pairs]
        entry = np.repeat(self.holders.starts[pairs] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        positions = self.holders.items[entry] + np.repeat(self.pool.offsets[self.holders.pair_class[pairs]], counts)
        pointers = np.concatenate([[0], np.cumsum(counts)])
        own = sparse.csr_matrix((np.ones(len(entry), np.int32), positions, pointers), (len(pairs), len(self.pool.rows)))
        both = (own @ held.matrix[self.pool.rows].astype(np.int32)).toarray()
        enough: BoolArray = counts[:, None] - both >= self.shape.shot
        return enough.ravel()

    def _successes(self, start: int, tasks: IntArray, tried: IntArray, counts: TryCounts) -> Iterator[Tries]:
        """The next try of each task that succeeds, many tasks at a time; `tried` goes on."""
        found: list[Tries] = []
        while len(tasks):
            # Many tries of few tasks where tries mostly fail, few tries of many tasks where they mostly succeed.
            depth = counts.tries_per_task()
            batch = tasks[: max(1, self._round() // depth)]
            found.append(self._first_successes(start + batch, tried[batch], depth, counts))
            tried[batch] += depth
            tasks = tasks[~np.isin(tasks, found[-1].task - start)]
            counts.refuse_if_hopeless(start + tasks, tried[tasks])
            self.holders.forget_if_large()
            if not len(tasks) or sum(len(part.task) for part in found) >= self._round():
                yield found[0].joined(found)
                found = []

    def _first_successes(self, task: IntArray, tried: IntArray, depth: int, counts: TryCounts) -> Tries:
        """Of each task's next `depth` tries the first whose words differ and whose supports are large enough."""
        attempt = (tried[:, None] + np.arange(depth)).ravel()
        attempts = self._draw_tries(np.repeat(task, depth), attempt)
        if self.sampler.support == "exclusive" and len(attempts.task):
            attempts = attempts.only(np.all(self._exclusive_counts(attempts) >= self.shape.shot, axis=1))
        first = np.flatnonzero(np.diff(attempts.task, prepend=-1))  # tries come task by task, in order
        counts.record(len(attempt), len(first))
        return attempts.only(first)

    def _draw_tries(self, task: IntArray, attempt: IntArray, every: bool = False) -> Tries:
        """Draw tries; `every` one, or those whose words differ and leave each other's supports large enough in pairs.

        Classes and words are drawn slot by slot, and most tries are ruled out before the last.
        """
        state = draws.bits(self.seed, task, attempt)
        by_class, by_word = draws.further(state, CLASSES), draws.further(state, WORDS)
        alive = np.arange(len(task))
        drawn: list[IntArray] = []  # numbers among the eligible pairs, slot by slot
        taken: list[IntArray] = []  # classes so far, in ascending order
        for slot in range(self.shape.way):
            rank = draws.below(draws.further(by_class, slot), len(self.usable) - slot)
            chosen = self.usable[draws.untaken(rank, taken)]
            eligible = draws.below(draws.further(by_word, slot), self.eligible_counts[chosen])
            drawn.append(self.first_eligible[chosen] + eligible)
            if slot and not every:
                keep = np.flatnonzero(self._possible(drawn))
                alive, by_class, by_word = alive[keep], by_class[keep], by_word[keep]
                drawn, taken = [pairs[keep] for pairs in drawn], [places[keep] for places in taken]
        pairs = self.eligible[np.stack(drawn, axis=1)]
        return Tries(task[alive], attempt[alive], self.holders.pair_class[pairs], pairs, self.holders.pair_word[pairs])

    def _possible(self, drawn: Sequence[IntArray]) -> BoolArray:
        """Whether the last of the drawn pairs may be in one task with each of the others."""
        last, known = drawn[-1], len(self.words)
        last_word = self.holders.pair_word[self.eligible[last]]
        possible = np.ones(len(last), dtype=np.bool_)
        for other in drawn[:-1]:
            other_word = self.holders.pair_word[self.eligible[other]]
            if self.supports_without is None:
                possible &= last_word != other_word
            else:
                possible &= self.supports_without[other * known + last_word]
                possible &= self.supports_without[last * known + other_word]
        return possible

    def why_tries_fail(self, task: int) -> str:
        """Say what the first tries of a task lack."""
        attempt = np.arange(min(self._round(), self.sampler.max_tries))
        tries = self._draw_tries(np.full(len(attempt), task), attempt, every=True)
        ordered = np.sort(tries.words, axis=1)
        differ = np.all(ordered[:, 1:] != ordered[:, :-1], axis=1)
        lacking = self._why_supports_lack(tries.only(differ))
        return lacking or (
            f"two classes drew the same word in {int((~differ).sum())} of {len(differ)} tries: the classes have too "
            f"few different eligible words ({len(np.unique(self.holders.pair_word[self.eligible]))} in all)"
        )

    def _why_supports_lack(self, tries: Tries) -> str | None:
        """Which class mostly had too small a support in these tries; None if none had."""
        if self.sampler.support != "exclusive" or not len(tries.task):
            return None
        lacking = self._exclusive_counts(tries) < self.shape.shot
        return why_supports_lack(self, tries.classes, lacking) if lacking.any() else None

    def _selected_bits(self, tries: Tries) -> tuple[UInt64Array, UInt64Array, IntArray]:
        """Bits of the items that hold the own word, and of those that hold another class's word.

        Both flat: slot s of try n has `blocks[n, s]` blocks, one slot after the other. Also where each begins.
        """
        begin, bits = self._bits(tries)
        own = next(bits)
        others = np.zeros_like(own)
        for other in bits:
            others |= other
        return own, others, begin

    def _bits(self, tries: Tries) -> tuple[IntArray, Iterator[UInt64Array]]:
        """Where each slot begins, and bits of the items that hold the own word, then each of the other classes'."""
        blocks = self.holders.class_blocks[tries.classes].ravel()
        begin = np.cumsum(blocks) - blocks
        within = np.arange(blocks.sum()) - np.repeat(begin, blocks)
        words = (np.roll(tries.words, shift, axis=1) for shift in range(self.shape.way))
        return begin, (
            self.holders.bits(self.holders.pairs(tries.classes, word).ravel(), blocks, within) for word in words
        )

    def _exclusive_counts(self, tries: Tries) -> IntArray:
        """For each try and slot, how many items hold the own word and none of the others': [n, way]."""
        own, others, begin = self._selected_bits(tries)
        return count_bits(own & ~others, begin).reshape(tries.classes.shape)

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

    def _scores(self, chosen: int, candidates: BoolArray, words: IntArray) -> Scores:
        """The sum of the weights of words that are not selected: [m, items]; 0 where queries are drawn at random."""
        if self.sampler.query_selection != "lowest":
            return np.zeros(candidates.shape, dtype=np.int64)
        incidence = self.holders.incidence(chosen)
        weights = self._weights(chosen, incidence @ candidates.T.astype(np.int32), candidates)
        selected = self.holders.pairs(np.full(words.shape, chosen), words)
        column = np.broadcast_to(np.arange(len(words))[:, None], words.shape)
        occurs = selected >= 0
        weights[selected[occurs] - self.holders.first_pair[chosen], column[occurs]] = 0
        # Equal sums of other words must be equal numbers, or else they would be no ties.
        scores: Scores = np.round((incidence.T.tocsr() @ weights).T, 9)
        return scores

    def _weights(self, chosen: int, counts: IntArray, candidates: BoolArray) -> Scores:
        """How much each word counts, [words of the class, m], given how many candidates hold it.

        The count itself: scores are then s(x) of Eq. 6 times the number of candidates, integers.
        """
        return counts

    def _lowest(self, scores: Scores, random: UInt64Array, candidates: BoolArray) -> IntArray:
        """Positions of the `query` candidates with the lowest scores, ties at random, lowest first: [m, query]."""
        keys = (scores.astype(np.uint64) << np.uint64(32)) | (random >> np.uint64(32))
        keys[~candidates] = np.iinfo(np.uint64).max
        chosen = np.argpartition(keys, self.shape.query - 1, axis=1)[:, : self.shape.query]
        order = np.argsort(np.take_along_axis(keys, chosen, axis=1), axis=1, kind="stable")
        lowest: IntArray = np.take_along_axis(chosen, order, axis=1)
        return lowest
