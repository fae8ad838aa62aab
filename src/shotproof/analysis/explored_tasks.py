"""A task set with its answers as arrays: less memory than its items' names, and any task is found at once."""

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

NONE = -1  # the code of what is not there: no planted word, no context, no row of the catalog
CONTEXT = "context"


@dataclass(frozen=True)
class Codes:
    """Texts as numbers: text i is names[codes[i]], none where the code is NONE."""

    names: list[str]
    codes: IntArray

    @classmethod
    def of(cls, texts: pa.Array | pa.ChunkedArray) -> Codes:
        """The names are sorted."""
        column = whole_column(texts) if isinstance(texts, pa.ChunkedArray) else texts
        encoded = column.dictionary_encode()
        order = pc.array_sort_indices(encoded.dictionary).to_numpy()
        rank = np.empty(len(order) + 1, dtype=np.int64)
        rank[order], rank[-1] = np.arange(len(order)), NONE
        codes = pc.fill_null(encoded.indices, NONE).to_numpy(zero_copy_only=False)
        return cls(encoded.dictionary.take(order).to_pylist(), rank[codes])


@dataclass(frozen=True)
class ExploredTasks:
    """A task set in arrays.

    number: what each task is called, [tasks]
    starts: the first row of each task, and the number of rows at the end
    label, planted: of each row, a row being a class of a task
    items: the distinct items, which `support` and `query` count through
    row: of each item in the catalog; NONE where that lacks it, or is not there
    context: of each item
    held: the words of each item; None where no attributes know them
    answers: of each classifier
    accuracy: the mean over classifiers and classes, in percent, [tasks]
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
    held: HeldWords | None
    answers: list[Answers]
    accuracy: FloatArray

    @property
    def rank(self) -> IntArray:
        """The place of each task from the hardest (1) to the easiest."""
        rank = np.empty(len(self), dtype=np.int64)
        rank[hardest_first(self.accuracy)] = np.arange(1, len(self) + 1)
        return rank

    def common_context(self, side: Side) -> IntArray:
        """The context of all items of a row's side; NONE where they differ, or have none: [rows]."""
        contexts, filled = self.context.codes[side.items], side.sizes > 0
        common = np.full(len(side.sizes), NONE)
        if len(contexts):
            first = side.ends[:-1][filled]
            least, most = (bound.reduceat(contexts, first) for bound in (np.minimum, np.maximum))
            common[filled] = np.where(least == most, least, NONE)
        return common

    def rows_of(self, task: int) -> range:
        """The rows of a task."""
        return range(int(self.starts[task]), int(self.starts[task + 1]))

    def __len__(self) -> int:
        """The number of tasks."""
        return len(self.number)


def explored_tasks(answered: AnsweredTasks, catalog: Catalog | None, attributes: Attributes | None) -> ExploredTasks:
    """The arrays of a task set.

    Args:
        answered: the tasks with the answers of every classifier
        catalog: that they were drawn from, for files and contexts
        attributes: of its items, for why a task is hard; those that lack items are left aside

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
        found = pc.index_in(items, value_set=catalog.item_column)
        row = pc.fill_null(found, NONE).to_numpy(zero_copy_only=False).astype(np.int64)
        column = tasks.record.context_column or CONTEXT
        if column in catalog.table.column_names:
            contexts = pa.array(contexts_of(catalog, column), pa.string()).take(found)
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
        held=None if attributes is None else _held(attributes, items),
        answers=answered.answers,
        accuracy=answered.accuracy_by_task(),
    )


def _held(attributes: Attributes, items: pa.Array) -> HeldWords | None:
    try:
        return attributes.of_items(items)
    except Mismatch:
        return None


@dataclass(frozen=True)
class ChosenTask:
    """A task of an answered set.

    position: its place in the set
    rank: its place from the hardest (1) to the easiest
    accuracy: mean over all classifiers and classes, in percent
    """

    answered: AnsweredTasks
    position: int
    rank: int
    accuracy: float

    @property
    def rows(self) -> range:
        """Its rows in the task set."""
        starts = self.answered.tasks.starts
        return range(int(starts[self.position]), int(starts[self.position + 1]))


def hardest_first(accuracy: FloatArray) -> IntArray:
    """The places of tasks by rising accuracy; equally hard tasks are in the order of the file."""
    order: IntArray = np.argsort(accuracy.round(9), kind="stable")  # equal means may differ by rounding
    return order


def choose_tasks(answered: AnsweredTasks, count: int) -> list[ChosenTask]:
    """At most `count` tasks, evenly spaced from the hardest to the easiest; for one, the median.

    A task is as hard as its mean accuracy over all classifiers; equally hard tasks are in the order of the file.
    """
    accuracy = answered.accuracy_by_task()
    order = hardest_first(accuracy)
    count = min(count, len(order))
    spaced = [0.5] if count == 1 else np.linspace(0, 1, count)
    ranks = [round(float(place) * (len(order) - 1)) for place in spaced]
    return [ChosenTask(answered, int(order[rank]), rank + 1, float(accuracy[order[rank]])) for rank in ranks]


@dataclass(frozen=True)
class Confusion:
    """Pairs of classes, those that were confused most often first; arrays of one length.

    truth, answer: the classes, by their codes
    times: how many queries of the one were taken for the other
    of: how many queries of the one were asked in tasks that have the other
    """

    truth: IntArray
    answer: IntArray
    times: IntArray
    of: IntArray


def confusion(tasks: ExploredTasks, answers: Answers, most: int) -> Confusion | None:
    """The pairs that were confused, at most so many; None where the results do not tell what was answered."""
    if answers.answered is None:
        return None
    label, classes = tasks.label.codes, len(tasks.label.names)
    answered = whole_column(answers.answered)
    row = np.repeat(np.arange(len(label)), pc.list_value_length(answered).to_numpy(zero_copy_only=False))
    slot = answered.flatten().to_numpy().astype(np.int64)
    task = np.repeat(np.arange(len(tasks)), np.diff(tasks.starts))[row]
    named = (slot > NONE) & (slot < np.diff(tasks.starts)[task])  # others named none of the task's classes
    pairs = label[row[named]] * classes + label[tasks.starts[task[named]] + slot[named]]
    found, times = np.unique(pairs, return_counts=True)
    order = np.argsort(-times, kind="stable")[:most]
    found, times = found[order], times[order]
    return Confusion(found // classes, found % classes, times, _asked(tasks, answers.counts.n_query, found))


def _asked(tasks: ExploredTasks, queries: IntArray, pairs: IntArray) -> IntArray:
    """How many queries of each pair's first class were asked in tasks that have the second: [pairs]."""
    label, classes = tasks.label.codes, len(tasks.label.names)
    last = np.repeat(tasks.starts[1:], np.diff(tasks.starts))
    order = np.argsort(pairs)
    asked = np.zeros(len(pairs), dtype=np.int64)
    if not len(pairs):
        return asked
    for step in range(1, int(np.diff(tasks.starts).max())):  # every class of a task beside every other one
        first = np.flatnonzero(np.arange(len(label)) + step < last)
        for one, other in ((first, first + step), (first + step, first)):
            codes = label[one] * classes + label[other]
            place = np.minimum(np.searchsorted(pairs, codes, sorter=order), len(pairs) - 1)
            wanted = pairs[order[place]] == codes
            asked += np.bincount(order[place[wanted]], queries[one[wanted]], len(pairs)).astype(np.int64)
    return asked


WORDS = 3  # told per class
LEAST_EXCESS = 20.0  # points above chance from which a mismatch is told
LEAST_LURED = 0.2  # share of a class's queries from which a lure is told

_chance = lru_cache(maxsize=256)(expected_mismatch)


@dataclass(frozen=True)
class Lure:
    """Queries that have what was planted in the support of another class.

    slot: of that class
    query: the positions of these queries
    """

    word: str
    slot: int
    query: list[int]


@dataclass(frozen=True)
class WordMismatch:
    """A word that support and query hold to another share than chance would give.

    support, query: the positions of the items that hold it
    excess: |percentage of the support - percentage of the query|, less what chance gives, in points
    """

    word: str
    support: list[int]
    query: list[int]
    excess: float


@dataclass(frozen=True)
class Reasons:
    """Why one class of a task is hard, the strongest reasons first."""

    lures: list[Lure]
    mismatches: list[WordMismatch]


def reasons_of(tasks: ExploredTasks, rows: range) -> list[Reasons]:
    """The reasons of each class of one task."""
    support, query = (_sides_of(tasks, side, rows) for side in (tasks.support, tasks.query))
    codes = tasks.planted.codes[rows.start : rows.stop]
    planted = [None if code == NONE else tasks.planted.names[code] for code in codes]
    return [
        Reasons(_lures(query[slot], planted, slot), _mismatches(support[slot], query[slot]))
        for slot in range(len(rows))
    ]


@dataclass(frozen=True)
class _ShownItems:
    """The support or the query items of one row; `holds` [items, words] is None where no attributes know them."""

    tasks: ExploredTasks
    items: IntArray
    holds: npt.NDArray[np.bool_] | None

    def holders(self, word: str) -> list[int]:
        """The positions of those that hold a word, or are in the context of this name."""
        holds = np.zeros(len(self.items), dtype=np.bool_)
        place = bisect_left(self.tasks.context.names, word)
        if word in self.tasks.context.names[place : place + 1]:
            holds |= self.tasks.context.codes[self.items] == place
        if self.holds is not None and self.tasks.held is not None:
            place = bisect_left(self.tasks.held.words, word)
            if word in self.tasks.held.words[place : place + 1]:
                holds |= self.holds[:, place]
        found: list[int] = np.flatnonzero(holds).tolist()
        return found


def _sides_of(tasks: ExploredTasks, side: Side, rows: range) -> list[_ShownItems]:
    """One side of each row; words are looked up for all of them at once, which takes most of the time."""
    ends = side.ends[rows.start : rows.stop + 1]
    items, inner = side.items[ends[0] : ends[-1]], ends[1:-1] - ends[0]
    each = np.split(items, inner)
    holds = [None] * len(rows) if tasks.held is None else np.split(tasks.held.matrix[items].toarray(), inner)
    return [_ShownItems(tasks, *one) for one in zip(each, holds, strict=True)]


def _lures(query: _ShownItems, planted: Sequence[str | None], own: int) -> list[Lure]:
    found = [
        Lure(word, slot, holders)
        for slot, word in enumerate(planted)
        if word not in (None, planted[own])
        and (holders := query.holders(word))
        and len(holders) >= LEAST_LURED * len(query.items)
    ]
    return sorted(found, key=lambda one: -len(one.query))[:WORDS]


def _mismatches(support: _ShownItems, query: _ShownItems) -> list[WordMismatch]:
    held = support.tasks.held
    if held is None or support.holds is None or query.holds is None:
        return []
    sizes = [int(held.known[side.items].sum()) for side in (support, query)]
    if not all(sizes):
        return []
    counts = [side.sum(axis=0) for side in (support.holds, query.holds)]
    distance = abs(counts[0] / sizes[0] - counts[1] / sizes[1])
    excess = 100 * distance - _chance(*sizes)[counts[0] + counts[1]]
    strongest = [int(word) for word in np.argsort(-excess, kind="stable")[:WORDS] if excess[word] >= LEAST_EXCESS]
    return [
        WordMismatch(
            held.words[word],
            np.flatnonzero(support.holds[:, word]).tolist(),
            np.flatnonzero(query.holds[:, word]).tolist(),
            float(excess[word]),
        )
        for word in strongest
    ]
