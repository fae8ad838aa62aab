"""Interventions: the tasks of another set, with one thing changed in the items of one side or of both.

Items keep their names. What was done to them stands beside them, in the columns `support_change` and `query_change`.
If a task plants a context in the supports of a class, as `iid` does, backgrounds of this class are from that context.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import changed_names
from shotproof.changes.change import BackgroundChange, Change, changes
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks.plates import Plates
from shotproof.tasks.sampler import BoundSampler, Sampler, SamplerInputs, samplers
from shotproof.tasks.taskset import SCHEMA, SIDES, UNCHANGED_ITEM, TaskSet, change_column

Side = Literal["query", "support", "both"]


@dataclass(frozen=True)
class Changed(Sampler):
    """The tasks of `like`, item by item, with one thing changed.

    Both sets have the same items, so whatever accuracy is lost is lost because of the change. Changed on both sides,
    support and query sets agree again: what is then lost is due to the change itself and not to the difference.
    """

    about = "the tasks of another set with one thing changed in their items, e.g. blur or another background"
    example = "changed(change='blur(severity=3)')"
    takes = ("like", "plates")
    needs = ("like",)
    axis = "changes"

    change: str = option("blur", "what is changed, e.g. blur(severity=5) or mixed-rival")
    side: Side = option("query", "which items are changed: those of the query sets, the support sets, or both")
    most_items: int = option(
        30_000,
        "most changed items to encode so that tasks can be drawn again on other images; if there are more, only those "
        "of the tasks at hand are, and the `images` interval is refused",
        least=1,
    )
    context_column: str | None = option(
        None,
        "column of the catalog with the contexts that the tasks plant, which their backgrounds are then from; by "
        "default that of the tasks in like",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        change = changes.make(self.change)
        if isinstance(change, BackgroundChange) and change.plate is not None:
            raise InputError(f"change '{change}': the sampler chooses the plate of each item: leave plate out")
        object.__setattr__(self, "change", change.spelling)

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
        spelled = [pc.unique(like.changes(side)).to_pylist()[0] for side in sides]
        kinds = [changes.make(spelling) for spelling in (*spelled, self.change) if spelling != UNCHANGED_ITEM]
        if sides != self.sides or not all(isinstance(change, BackgroundChange) for change in kinds):
            raise InputError(
                f"sampler 'changed': the {' and '.join(sides)} items of '{like.record.name}' have the change "
                f"'{kinds[0].name}', and '{self.change}' of {' and '.join(self.sides)} items cannot be added: name the "
                "unchanged set in like"
            )

    @property
    def made_change(self) -> Change:
        """Return the change."""
        return changes.make(self.change)

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
        if recorded is not None and recorded.name == "changed":
            sampler = samplers.make({"name": recorded.name, **recorded.options})
            assert isinstance(sampler, Changed)
            change = changes.make(sampler.change)
            split = catalog.in_split(tasks.record.split)
            if isinstance(change, BackgroundChange):
                plates = Plates.of(split, change, context_column=sampler.context_column)
                contexts = plates.contexts_of_variants(tasks.table)
                if plates.count_variants(contexts) <= sampler.most_items:
                    return cls(*plates.every_variant(contexts), is_complete=True)
            elif len(split) <= sampler.most_items:
                return cls(split.item_column, pa.repeat(change.spelling, len(split)), is_complete=True)
        pairs = [(pc.list_flatten(tasks.table.column(side)), tasks.changes(side)) for side in SIDES]
        table = pa.concat_tables(
            pa.table({"item": items, "change": spellings}) for items, spellings in pairs if spellings is not None
        )
        table = table.filter(pc.not_equal(table.column("change"), UNCHANGED_ITEM))
        distinct = table.group_by(["item", "change"], use_threads=False).aggregate([]).combine_chunks()
        items, spellings = (distinct.column(name).combine_chunks() for name in ("item", "change"))
        return cls(items, spellings, is_complete=False)

    @property
    def names(self) -> pa.Array:
        """Return the names that features have for them, [n]."""
        return changed_names(self.items, self.changes)


class BoundChanged(BoundSampler[Changed]):
    """Notes the change of each item of a task set."""

    def __init__(self, sampler: Changed, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        self.change = sampler.made_change
        self.change.require_medium(inputs.catalog.medium)
        catalog = inputs.catalog if inputs.plates is None else inputs.plates
        self.plates = None
        if isinstance(self.change, BackgroundChange):
            self.plates = Plates.of(catalog, self.change, inputs.catalog, sampler.context_column)

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
