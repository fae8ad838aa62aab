"""A task set with its answers as arrays: less memory than its items' names, and any task is found at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.analysis.chosen_tasks import hardest_first
from shotproof.analysis.explanation.mismatch import Side
from shotproof.attributes.attributes import Attributes, HeldWords
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.contexts import contexts_of
from shotproof.core.arrays import FloatArray, IntArray
from shotproof.core.errors import Mismatch
from shotproof.core.tables import whole_column
from shotproof.evaluation.answers import AnsweredTasks, Answers

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
        >>> from shotproof.evaluation.answers import answers_on
        >>> catalog, features, _ = sp.GaussianWorld().draw(classes=6, items=40)
        >>> tasks = sp.sample(catalog, "random", tasks=20)
        >>> len(explored_tasks(answers_on(tasks, [sp.evaluate(tasks, features, "ncc")]), catalog, None))
        20
    """
    tasks = answered.tasks
    lists = [whole_column(tasks.table.column(name)) for name in ("support", "query")]
    flat = [one.flatten() for one in lists]
    encoded = pa.chunked_array(flat, pa.string()).dictionary_encode().unify_dictionaries()
    items = encoded.chunk(0).dictionary
    support, query = (
        Side(chunk.indices.to_numpy().astype(np.int32), np.concatenate([[0], np.cumsum(pc.list_value_length(one))]))
        for chunk, one in zip(encoded.chunks, lists, strict=True)
    )
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
