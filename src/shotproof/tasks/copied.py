"""Copies: the tasks of another set, each support item joined by changed copies of itself.

Classifiers see shot * (1 + copies) supports of each class, of as many labeled items as before: the record has the same
shots. An item and its copies have the same name; the column `support_change` has the change of each copy, and nothing
for the items as they are. If a task plants a context in the supports of a class, as `iid` does, backgrounds of this
class are from that context.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.changes.change import Change, changes
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks.changed import (
    CONTEXT_COLUMN_HELP,
    MOST_ITEMS,
    MOST_ITEMS_HELP,
    ChangingSampler,
    checked_spelling,
)
from shotproof.tasks.sampler import BoundSampler, SamplerInputs
from shotproof.tasks.taskset import SCHEMA, UNCHANGED_ITEM, TaskSet, change_column


@dataclass(frozen=True)
class Copied(ChangingSampler):
    """The tasks of `like` with changed copies of each support item beside it.

    Copies on other backgrounds show no background that a query of the task shows, as far as the data allows. Queries
    stay as they are, also if they were changed before.
    """

    about = "the tasks of another set with changed copies of each support item beside it, e.g. on other backgrounds"
    example = "copied(changes=('mixed-random', 'noise'), copies=2)"
    axis = None
    keeps_changes = True

    changes: tuple[str, ...] = option(
        ("mixed-random",), "what is changed in the copies, e.g. mixed-random or blur", distinct=True, single=True
    )
    copies: int = option(
        3,
        "copies of each item by a change that shows the backgrounds of other items, each on another one; every other "
        "change gives one copy",
        least=1,
        most=100,
    )
    most_items: int = option(MOST_ITEMS, MOST_ITEMS_HELP, least=1)
    context_column: str | None = option(None, CONTEXT_COLUMN_HELP)

    def __post_init__(self) -> None:
        spelled: Any = self.changes
        if isinstance(spelled, str):  # a single change stands for a list
            object.__setattr__(self, "changes", (spelled,))
        super().__post_init__()
        spellings = tuple(map(checked_spelling, self.changes))
        if len(set(spellings)) < len(spellings):
            raise InputError(f"sampler '{self.name}': changes: {', '.join(spellings)}: name each change once")
        object.__setattr__(self, "changes", spellings)

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Copied]:
        """Bind the sampler to these inputs. Raise InputError if the supports of `like` are changed already."""
        assert inputs.like is not None
        if inputs.like.changes("support") is not None:
            raise InputError(
                f"sampler '{self.name}': the support items of '{inputs.like.record.name}' are changed already: name "
                "the unchanged set in like"
            )
        column = self.context_column or inputs.like.record.context_column
        return BoundCopied(replace(self, context_column=column), inputs)

    @property
    def made_changes(self) -> tuple[Change, ...]:
        """Return the changes."""
        return tuple(map(changes.make, self.changes))

    @property
    def plates_per_item(self) -> int:
        """Return how many backgrounds each item is shown on."""
        return self.copies


class BoundCopied(BoundSampler[Copied]):
    """Adds copies to the supports of a task set."""

    def __init__(self, sampler: Copied, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        sampler.require_data(inputs)
        catalog = inputs.catalog if inputs.plates is None else inputs.plates
        self.plates = sampler.plates(catalog, inputs.catalog)

    def draw(self, tasks: range) -> pa.Table:
        """Return the rows of these tasks: in each support the items as they are, then the copies of each."""
        assert self.like is not None
        start, stop = self.like.starts[[tasks.start, tasks.stop]]
        table = self.like.table.slice(start, stop - start).select(SCHEMA.names)
        table = self.with_changes_of_like(table, tasks)
        items = pc.list_flatten(table.column("support")).combine_chunks()
        shots = pc.list_value_length(table.column("support")).to_numpy().astype(np.int64)
        spellings = _by_item(self._spellings(table, len(items)), len(items))
        per_item = len(spellings) // max(len(items), 1)
        number = np.concatenate([np.arange(len(items)), np.repeat(np.arange(len(items)), per_item)])
        row = np.repeat(np.arange(len(table)), shots)[number]
        order = pa.array(np.argsort(row, kind="stable"))  # in each row the items as they are, then their copies
        offsets = pa.array(np.concatenate([[0], np.cumsum(shots * (1 + per_item))]), pa.int32())
        every_change = pa.concat_arrays([pa.repeat(UNCHANGED_ITEM, len(items)), spellings])
        column = table.column_names.index("support")
        names = items.take(pa.array(number)).take(order)
        table = table.set_column(column, SCHEMA.field("support"), pa.ListArray.from_arrays(offsets, names))
        copies = pa.ListArray.from_arrays(offsets, every_change.take(order))
        return table.append_column(change_column("support"), copies)

    def summary(self, tasks: TaskSet) -> Meta:
        """Count the copies of each item, and those that show the background of a query of the task."""
        assert self.like is not None
        lengths = [pc.list_value_length(each.column("support"))[0].as_py() for each in (tasks.table, self.like.table)]
        summary: Meta = {
            "classes_left_out": list(self.like.record.classes_left_out),
            "copies_per_item": lengths[0] // lengths[1] - 1,
        }
        with_plates = [plates for plates in self.plates if plates is not None and plates.change.plates is not None]
        if not with_plates:
            return summary
        return {
            **summary,
            "backgrounds_shown_twice": with_plates[0].count_shown_twice(tasks.table, "support", "query"),
        }

    def _spellings(self, table: pa.Table, count: int) -> Iterable[pa.Array]:
        """Yield the changes of the copies by each change, item by item, [count * copies by the change]."""
        for change, plates in zip(self.sampler.made_changes, self.plates, strict=True):
            if plates is None:
                yield pa.repeat(change.spelling, count)
            else:
                yield plates.spellings(table, "support", self.seed, "query")


def without_copies(tasks: TaskSet) -> pa.Table:
    """Return the rows of tasks with only those support items that are as they are."""
    spellings = tasks.changes("support")
    if spellings is None:
        return tasks.table
    is_original = pc.equal(spellings, UNCHANGED_ITEM).to_numpy()
    lists = tasks.table.column("support")
    row = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy())
    counts = np.bincount(row[is_original], minlength=len(lists))
    items = pc.list_flatten(lists).combine_chunks().filter(pa.array(is_original))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    table = tasks.table.drop_columns([change_column("support")])
    column = table.column_names.index("support")
    return table.set_column(column, SCHEMA.field("support"), pa.ListArray.from_arrays(offsets, items))


def _by_item(parts: Iterable[pa.Array], count: int) -> pa.Array:
    """Join several arrays that have as many entries for each of `count` items, item by item."""
    arrays = list(parts)
    item = np.concatenate([np.repeat(np.arange(count), len(array) // max(count, 1)) for array in arrays])
    return pa.concat_arrays(arrays).take(pa.array(np.argsort(item, kind="stable")))
