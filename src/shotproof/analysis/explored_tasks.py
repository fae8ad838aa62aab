"""Task set with its answers as compact arrays, for fast access to any task."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.analysis.explanation.mismatch import Side, expected_mismatch, numbered_sides
from shotproof.attributes.attributes import Attributes, HeldWords
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.contexts import contexts_of
from shotproof.core.arrays import FloatArray, IntArray
from shotproof.core.errors import Mismatch
from shotproof.core.tables import whole_column
from shotproof.results.answers import AnsweredTasks, Answers

NONE = -1  # code for a missing planted word, context or catalog row
CONTEXT = "context"


@dataclass(frozen=True)
class Codes:
    """Strings encoded as integers: string i is names[codes[i]], or missing if its code is NONE."""

    names: list[str]
    codes: IntArray

    @classmethod
    def of(cls, texts: pa.Array | pa.ChunkedArray) -> Codes:
        """Encode strings by their index among the sorted distinct ones."""
        column = whole_column(texts) if isinstance(texts, pa.ChunkedArray) else texts
        encoded = column.dictionary_encode()
        order = pc.array_sort_indices(encoded.dictionary).to_numpy()
        rank = np.empty(len(order) + 1, dtype=np.int64)
        rank[order], rank[-1] = np.arange(len(order)), NONE
        codes = pc.fill_null(encoded.indices, NONE).to_numpy(zero_copy_only=False)
        return cls(encoded.dictionary.take(order).to_pylist(), rank[codes])


@dataclass(frozen=True)
class ExploredTasks:
    """Task set as arrays.

    number: number of each task, [tasks]
    starts: first row of each task, and the number of rows at the end
    label, planted: class and planted word of each row; a row is one class of a task
    items: distinct items, which `support` and `query` index
    row: row of each item in the catalog; NONE if the catalog lacks it or is missing
    context: context of each item
    held_words: words of each item; None if no attributes cover the items
    answers: answers of each classifier
    accuracy: mean over classifiers and classes, in percent, [tasks]
    """

    number: IntArray
    starts: IntArray
    label: Codes
    planted: Codes
    items: pa.Array
    support: Side
    query: Side
    row: IntArray
    context: Codes
    held_words: HeldWords | None
    answers: list[Answers]
    accuracy: FloatArray

    @property
    def rank(self) -> IntArray:
        """Rank the tasks from the hardest (1) to the easiest."""
        rank = np.empty(len(self), dtype=np.int64)
        rank[hardest_first(self.accuracy)] = np.arange(1, len(self) + 1)
        return rank

    def common_context(self, side: Side) -> IntArray:
        """Return the context shared by all items of each row's side; NONE if they differ or lack one: [rows]."""
        contexts, is_filled = self.context.codes[side.items], side.sizes > 0
        common = np.full(len(side.sizes), NONE)
        if len(contexts):
            first_item = side.ends[:-1][is_filled]
            lowest, highest = (bound.reduceat(contexts, first_item) for bound in (np.minimum, np.maximum))
            common[is_filled] = np.where(lowest == highest, lowest, NONE)
        return common

    def rows_of(self, task: int) -> range:
        """Return the rows of a task."""
        return range(int(self.starts[task]), int(self.starts[task + 1]))

    def __len__(self) -> int:
        """Return the number of tasks."""
        return len(self.number)


def explored_tasks(answered: AnsweredTasks, catalog: Catalog | None, attributes: Attributes | None) -> ExploredTasks:
    """Build the arrays of a task set.

    Args:
        answered: the tasks with the answers of every classifier
        catalog: the catalog they were drawn from, for files and contexts
        attributes: attributes of its items, for why a task is hard; ignored if they lack items

    Example:
        >>> import shotproof as sp
        >>> from shotproof.results.answers import answers_on
        >>> catalog, features, _ = sp.worlds.GaussianWorld().draw(classes=6, items=40)
        >>> tasks = sp.sample(catalog, "random", tasks=20)
        >>> len(explored_tasks(answers_on(tasks, [sp.evaluate(tasks, features, "ncc")]), catalog, None))
        20
    """
    tasks = answered.tasks
    items, (support, query) = numbered_sides([tasks])
    row, contexts = np.full(len(items), NONE), pa.nulls(len(items), pa.string())
    if catalog is not None:
        catalog_rows = pc.index_in(items, value_set=catalog.item_column)
        row = pc.fill_null(catalog_rows, NONE).to_numpy(zero_copy_only=False).astype(np.int64)
        column = tasks.record.context_column or CONTEXT
        if column in catalog.table.column_names:
            contexts = pa.array(contexts_of(catalog, column), pa.string()).take(catalog_rows)
    return ExploredTasks(
        number=tasks.task_of_row[tasks.starts[:-1]],
        starts=tasks.starts,
        label=Codes.of(tasks.table.column("label")),
        planted=Codes.of(tasks.table.column("attribute")),
        items=items,
        support=support,
        query=query,
        row=row,
        context=Codes.of(contexts),
        held_words=None if attributes is None else _find_item_words(attributes, items),
        answers=answered.answers,
        accuracy=answered.accuracy_by_task(),
    )


def _find_item_words(attributes: Attributes, items: pa.Array) -> HeldWords | None:
    """Return the words of each item, or None if the attributes lack items."""
    try:
        return attributes.of_items(items)
    except Mismatch:
        return None


@dataclass(frozen=True)
class ChosenTask:
    """Task selected from an answered set.

    position: index in the set
    rank: rank from the hardest (1) to the easiest
    accuracy: mean over all classifiers and classes, in percent
    """

    answered: AnsweredTasks
    position: int
    rank: int
    accuracy: float

    @property
    def rows(self) -> range:
        """Return the task's rows in the task set."""
        starts = self.answered.tasks.starts
        return range(int(starts[self.position]), int(starts[self.position + 1]))


def hardest_first(accuracy: FloatArray) -> IntArray:
    """Return task indices by increasing accuracy; ties keep the order of the file."""
    order: IntArray = np.argsort(accuracy.round(9), kind="stable")  # equal means may differ by rounding
    return order


def choose_tasks(answered: AnsweredTasks, count: int) -> list[ChosenTask]:
    """Select at most `count` tasks, evenly spaced from the hardest to the easiest; a single task is the median.

    Hardness is the mean accuracy over all classifiers; ties keep the order of the file.
    """
    accuracy = answered.accuracy_by_task()
    order = hardest_first(accuracy)
    count = min(count, len(order))
    quantiles = [0.5] if count == 1 else np.linspace(0, 1, count)
    ranks = [round(float(quantile) * (len(order) - 1)) for quantile in quantiles]
    return [ChosenTask(answered, int(order[rank]), rank + 1, float(accuracy[order[rank]])) for rank in ranks]


@dataclass(frozen=True)
class Confusion:
    """Pairs of classes, most often confused first; arrays of equal length.

    truth, answer: codes of the true and of the predicted class
    times: number of queries of the true class predicted as the other
    of: number of queries of the true class in tasks that contain the other
    """

    truth: IntArray
    answer: IntArray
    times: IntArray
    of: IntArray


def confusion(tasks: ExploredTasks, answers: Answers, most: int) -> Confusion | None:
    """Return at most `most` confused pairs; None if the results do not record the predicted classes."""
    if answers.answered is None:
        return None
    label, classes = tasks.label.codes, len(tasks.label.names)
    answered = whole_column(answers.answered)
    row = np.repeat(np.arange(len(label)), pc.list_value_length(answered).to_numpy(zero_copy_only=False))
    slot = answered.flatten().to_numpy().astype(np.int64)
    task = np.repeat(np.arange(len(tasks)), np.diff(tasks.starts))[row]
    is_valid = (slot > NONE) & (slot < np.diff(tasks.starts)[task])  # other answers name no class of the task
    pairs = label[row[is_valid]] * classes + label[tasks.starts[task[is_valid]] + slot[is_valid]]
    confused_pairs, times = np.unique(pairs, return_counts=True)
    order = np.argsort(-times, kind="stable")[:most]
    confused_pairs, times = confused_pairs[order], times[order]
    return Confusion(
        confused_pairs // classes,
        confused_pairs % classes,
        times,
        _count_queries(tasks, answers.counts.n_query, confused_pairs),
    )


def _count_queries(tasks: ExploredTasks, queries: IntArray, pairs: IntArray) -> IntArray:
    """Count the queries of each pair's true class in tasks that contain the other class: [pairs]."""
    label, classes = tasks.label.codes, len(tasks.label.names)
    task_end = np.repeat(tasks.starts[1:], np.diff(tasks.starts))
    order = np.argsort(pairs)
    query_counts = np.zeros(len(pairs), dtype=np.int64)
    if not len(pairs):
        return query_counts
    for step in range(1, int(np.diff(tasks.starts).max())):  # all pairs of classes within a task
        earlier = np.flatnonzero(np.arange(len(label)) + step < task_end)
        for truth, answer in ((earlier, earlier + step), (earlier + step, earlier)):
            codes = label[truth] * classes + label[answer]
            nearest = np.minimum(np.searchsorted(pairs, codes, sorter=order), len(pairs) - 1)
            is_match = pairs[order[nearest]] == codes
            query_counts += np.bincount(order[nearest[is_match]], queries[truth[is_match]], len(pairs)).astype(np.int64)
    return query_counts


WORDS = 3  # words reported per class
LEAST_EXCESS = 20.0  # points above chance from which a mismatch is reported
LEAST_LURED = 0.2  # share of a class's queries from which a lure is reported

_chance = lru_cache(maxsize=256)(expected_mismatch)


@dataclass(frozen=True)
class Lure:
    """Queries that hold the word planted in the support of another class.

    slot: slot of that class
    query: positions of these queries
    """

    word: str
    slot: int
    query: list[int]


@dataclass(frozen=True)
class WordMismatch:
    """Word whose share differs between support and query by more than chance.

    support, query: positions of the items that hold it
    excess: |percentage of the support - percentage of the query| minus its expectation by chance, in points
    """

    word: str
    support: list[int]
    query: list[int]
    excess: float


@dataclass(frozen=True)
class Reasons:
    """Reasons why one class of a task is hard, strongest first."""

    lures: list[Lure]
    mismatches: list[WordMismatch]


def reasons_of(tasks: ExploredTasks, rows: range) -> list[Reasons]:
    """Find the reasons why each class of one task is hard."""
    support, query = (_split_side(tasks, side, rows) for side in (tasks.support, tasks.query))
    codes = tasks.planted.codes[rows.start : rows.stop]
    planted = [None if code == NONE else tasks.planted.names[code] for code in codes]
    return [
        Reasons(_lures(query[slot], planted, slot), _mismatches(support[slot], query[slot]))
        for slot in range(len(rows))
    ]


@dataclass(frozen=True)
class _ShownItems:
    """Support or query items of one row; `holds` [items, words] is None if no attributes cover them."""

    tasks: ExploredTasks
    items: IntArray
    holds: npt.NDArray[np.bool_] | None

    def holders(self, word: str) -> list[int]:
        """Return the positions of the items that hold a word or are in the context of that name."""
        holds = np.zeros(len(self.items), dtype=np.bool_)
        index = bisect_left(self.tasks.context.names, word)
        if word in self.tasks.context.names[index : index + 1]:
            holds |= self.tasks.context.codes[self.items] == index
        if self.holds is not None and self.tasks.held_words is not None:
            index = bisect_left(self.tasks.held_words.words, word)
            if word in self.tasks.held_words.words[index : index + 1]:
                holds |= self.holds[:, index]
        positions: list[int] = np.flatnonzero(holds).tolist()
        return positions


def _split_side(tasks: ExploredTasks, side: Side, rows: range) -> list[_ShownItems]:
    """Split one side into rows; words are looked up for all rows at once, which dominates the run time."""
    ends = side.ends[rows.start : rows.stop + 1]
    items, boundaries = side.items[ends[0] : ends[-1]], ends[1:-1] - ends[0]
    items_by_row = np.split(items, boundaries)
    holds_by_row = (
        [None] * len(rows)
        if tasks.held_words is None
        else np.split(tasks.held_words.matrix[items].toarray(), boundaries)
    )
    return [_ShownItems(tasks, *row_items) for row_items in zip(items_by_row, holds_by_row, strict=True)]


def _lures(query: _ShownItems, planted: Sequence[str | None], true_slot: int) -> list[Lure]:
    """Find words planted for other classes that enough of these queries hold."""
    lures = [
        Lure(word, slot, holders)
        for slot, word in enumerate(planted)
        if word not in (None, planted[true_slot])
        and (holders := query.holders(word))
        and len(holders) >= LEAST_LURED * len(query.items)
    ]
    return sorted(lures, key=lambda lure: -len(lure.query))[:WORDS]


def _mismatches(support: _ShownItems, query: _ShownItems) -> list[WordMismatch]:
    """Find the words whose mismatch exceeds chance the most."""
    held_words = support.tasks.held_words
    if held_words is None or support.holds is None or query.holds is None:
        return []
    sizes = [int(held_words.known[side.items].sum()) for side in (support, query)]
    if not all(sizes):
        return []
    counts = [side.sum(axis=0) for side in (support.holds, query.holds)]
    distance = abs(counts[0] / sizes[0] - counts[1] / sizes[1])
    excess = 100 * distance - _chance(*sizes)[counts[0] + counts[1]]
    strongest = [int(word) for word in np.argsort(-excess, kind="stable")[:WORDS] if excess[word] >= LEAST_EXCESS]
    return [
        WordMismatch(
            held_words.words[word],
            np.flatnonzero(support.holds[:, word]).tolist(),
            np.flatnonzero(query.holds[:, word]).tolist(),
            float(excess[word]),
        )
        for word in strongest
    ]
