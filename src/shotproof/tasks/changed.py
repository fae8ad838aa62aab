"""Interventions: the tasks of another set, with one thing changed in the items of one side or of both.

Items keep their names. What was done to them stands beside them, in the columns `support_change` and `query_change`.
If a task plants a context in the supports of a class, as `iid` does, backgrounds of this class are from that context.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import changed_names
from shotproof.changes.change import BackgroundChange, Change, changes
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.core.tables import find_rows
from shotproof.tasks.plates import Plates
from shotproof.tasks.sampler import BoundSampler, Sampler, SamplerInputs, samplers
from shotproof.tasks.taskset import SCHEMA, SIDES, UNCHANGED_ITEM, TaskSet, change_column

Side = Literal["query", "support", "both"]
CHANGING = ("changed", "copied")  # samplers that change items
MOST_ITEMS = 30_000
MOST_ITEMS_HELP = (
    "most changed items to encode so that tasks can be drawn again on other images; if there are more, only those of "
    "the tasks at hand are, and the `images` interval is refused"
)
CONTEXT_COLUMN_HELP = (
    "column of the catalog with the contexts that the tasks plant, which their backgrounds are then from; by default "
    "that of the tasks in like"
)


class ChangingSampler(Sampler):
    """Base class of samplers that change items, and so need features of changed items.

    most_items, context_column: see their help
    """

    takes = ("like", "plates")
    needs = ("like",)

    most_items: int
    context_column: str | None

    @property
    @abstractmethod
    def made_changes(self) -> tuple[Change, ...]:
        """Return the changes."""

    @property
    def plates_per_item(self) -> int:
        """Return how many backgrounds each item is shown on by each change that shows those of other items."""
        return 1

    def require_data(self, inputs: SamplerInputs) -> None:
        """Check that the catalog has the items of `like`, and that the changes apply to them.

        Raises:
            Mismatch: the catalog lacks an item.
            InputError: the items are of another medium.
        """
        assert inputs.like is not None
        for side in SIDES:
            items = pc.list_flatten(inputs.like.table.column(side))
            find_rows(items, inputs.catalog.item_column, f"sampler '{self.name}', like: this catalog and split lack")
        for change in self.made_changes:
            change.require_medium(inputs.catalog.medium)

    def plates(self, catalog: Catalog, drawn: Catalog | None = None) -> list[Plates | None]:
        """Find the backgrounds that each change may show; None for a change that takes no item apart.

        Args:
            catalog: items whose backgrounds may be shown
            drawn: the items that tasks are drawn from; by default all
        """
        return [
            Plates.of(catalog, change, drawn, self.context_column, self.plates_per_item)
            if isinstance(change, BackgroundChange)
            else None
            for change in self.made_changes
        ]


def checked_spelling(spelling: str) -> str:
    """Return the full spelling of a change that a sampler applies. Raise InputError if it names a plate."""
    change = changes.make(spelling)
    if isinstance(change, BackgroundChange) and change.plate is not None:
        raise InputError(f"change '{change}': the sampler chooses the plate of each item: leave plate out")
    return change.spelling


@dataclass(frozen=True)
class Changed(ChangingSampler):
    """The tasks of `like`, item by item, with one thing changed.

    Both sets have the same items, so whatever accuracy is lost is lost because of the change. Changed on both sides,
    support and query sets agree again: what is then lost is due to the change itself and not to the difference.
    """

    about = "the tasks of another set with one thing changed in their items, e.g. blur or another background"
    example = "changed(change='blur(severity=3)')"
    axis = "changes"

    change: str = option("blur", "what is changed, e.g. blur(severity=5) or mixed-rival")
    side: Side = option("query", "which items are changed: those of the query sets, the support sets, or both")
    most_items: int = option(MOST_ITEMS, MOST_ITEMS_HELP, least=1)
    context_column: str | None = option(None, CONTEXT_COLUMN_HELP)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "change", checked_spelling(self.change))

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Changed]:
        """Return the sampler that changes the tasks of `like`.

        Raises:
            InputError: the items of `like` are changed already, and the change cannot replace theirs.
        """
        assert inputs.like is not None
        self._require_unchanged(inputs.like)
        column = self.context_column or inputs.like.record.context_column
        return BoundChanged(replace(self, context_column=column), inputs)

    def _require_unchanged(self, like: TaskSet) -> None:
        """Reject changed tasks, unless the backgrounds of the same items are changed again, to others."""
        sides = tuple(side for side in SIDES if like.changes(side) is not None)
        if not sides:
            return
        spelled = [spelling for side in sides for spelling in pc.unique(like.changes(side)).to_pylist()]
        kinds = [changes.make(spelling) for spelling in (*spelled, self.change) if spelling != UNCHANGED_ITEM]
        has_copies = UNCHANGED_ITEM in spelled
        if has_copies or sides != self.sides or not all(isinstance(change, BackgroundChange) for change in kinds):
            raise InputError(
                f"sampler 'changed': the {' and '.join(sides)} items of '{like.record.name}' have the change "
                f"'{kinds[0].name}', and '{self.change}' of {' and '.join(self.sides)} items cannot be added: name the "
                "unchanged set in like"
            )

    @property
    def made_changes(self) -> tuple[Change, ...]:
        """Return the change."""
        return (changes.make(self.change),)

    @property
    def sides(self) -> tuple[str, ...]:
        """Return the sides whose items are changed."""
        return SIDES if self.side == "both" else (self.side,)


@dataclass(frozen=True)
class Variants:
    """Changed items that features are needed of.

    items, changes: names of items and the spellings of their changes, [n]
    is_complete: whether tasks that are drawn again from the same data need no others
    """

    items: pa.Array
    changes: pa.Array
    is_complete: bool

    @classmethod
    def of(cls, tasks: TaskSet, catalog: Catalog) -> Variants:
        """Find the changed items of a task set, and all others that it may have if there are not too many.

        Args:
            tasks: a changed task set
            catalog: the catalog that it was drawn from
        """
        recorded = tasks.record.sampler
        sides = [(pc.list_flatten(tasks.table.column(side)), tasks.changes(side)) for side in SIDES]
        pairs = [(items, spellings) for items, spellings in sides if spellings is not None]
        if recorded is None or recorded.name not in CHANGING:
            return cls(*_distinct(pairs), is_complete=False)
        sampler = samplers.make({"name": recorded.name, **recorded.options})
        assert isinstance(sampler, ChangingSampler)
        every = _every_pair(sampler, tasks, catalog.in_split(tasks.record.split))
        if every is None:
            return cls(*_distinct(pairs), is_complete=False)
        # Those of queries that were changed before are the concern of `like`: of these, the tasks' own are enough.
        return cls(*_distinct([*every, *pairs] if sampler.keeps_changes else every), is_complete=True)

    @property
    def names(self) -> pa.Array:
        """Return the names that features have for them, [n]."""
        return changed_names(self.items, self.changes)


def _every_pair(sampler: ChangingSampler, tasks: TaskSet, split: Catalog) -> list[tuple[Any, Any]] | None:
    """Return all changed items that tasks of a sampler may have, with their changes; None if they are too many."""
    pairs: list[tuple[Any, Any]] = []
    count = 0
    for change, plates in zip(sampler.made_changes, sampler.plates(split), strict=True):
        contexts = np.empty(0, np.int64) if plates is None else plates.contexts_of_variants(tasks.table)
        count += len(split) if plates is None else plates.count_variants(contexts)
        if count > sampler.most_items:
            return None
        every = (split.item_column, pa.repeat(change.spelling, len(split)))
        pairs.append(every if plates is None else plates.every_variant(contexts))
    return pairs


def _distinct(pairs: list[tuple[Any, Any]]) -> tuple[pa.Array, pa.Array]:
    """Return the distinct items with changes, as two arrays."""
    table = pa.concat_tables(pa.table({"item": items, "change": spellings}) for items, spellings in pairs)
    table = table.filter(pc.not_equal(table.column("change"), UNCHANGED_ITEM))
    distinct = table.group_by(["item", "change"], use_threads=False).aggregate([]).combine_chunks()
    items, spellings = (distinct.column(name).combine_chunks() for name in ("item", "change"))
    return items, spellings


class BoundChanged(BoundSampler[Changed]):
    """Notes the change of each item of a task set."""

    def __init__(self, sampler: Changed, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        (self.change,) = sampler.made_changes
        sampler.require_data(inputs)
        catalog = inputs.catalog if inputs.plates is None else inputs.plates
        (self.plates,) = sampler.plates(catalog, inputs.catalog)

    def draw(self, tasks: range) -> pa.Table:
        """Return the rows of these tasks with their changes."""
        assert self.like is not None
        start, stop = self.like.starts[[tasks.start, tasks.stop]]
        table = self.like.table.slice(start, stop - start).select(SCHEMA.names)
        for side in self.sampler.sides:
            counts = pc.list_value_length(table.column(side)).to_numpy()
            if self.plates is None:
                spellings = pa.repeat(self.change.spelling, int(counts.sum()))
            else:
                # If both sides are changed, the supports come first, and the queries show none of their backgrounds.
                is_first = self.sampler.side == "both" and side == SIDES[0]
                spellings = self.plates.spellings(table, side, self.seed, None if is_first else _other(side))
            offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
            table = table.append_column(change_column(side), pa.ListArray.from_arrays(offsets, spellings))
        return table

    def summary(self, tasks: TaskSet) -> Meta:
        """Name the classes that `like` left out, and count the plates that show what the task's other side shows."""
        assert self.like is not None
        summary: Meta = {"classes_left_out": list(self.like.record.classes_left_out)}
        if self.plates is None or self.plates.change.plates is None:
            return summary
        side = self.sampler.sides[-1]
        return {**summary, "backgrounds_shown_twice": self.plates.count_shown_twice(tasks.table, side, _other(side))}


def _other(side: str) -> str:
    """Return the other side."""
    return SIDES[1 - SIDES.index(side)]
