"""Record of how a task set was drawn, so that it can be drawn again from other data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from shotproof.analysis.inputs import Inputs, with_digest
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData, Mismatch
from shotproof.core.storage.files import path_exists
from shotproof.core.trust import NotTrusted
from shotproof.tasks.changed import ChangingSampler, Variants
from shotproof.tasks.sampler import BoundSampler, Sampler, samplers
from shotproof.tasks.taskset import TaskSet, TaskShape


@dataclass(frozen=True)
class Drawing:
    """Sampler with the shape of its tasks and its data; `like` is the drawing that provides its queries.

    `variants` are the names of all changed items that its tasks may have; None if it changes none.
    `refused` is the reason why no other tasks can be drawn, although nothing is missing.

    The shape is None if the sampler itself varies the size of tasks.
    """

    sampler: Sampler
    shape: TaskShape | None
    data: Mapping[str, Any]
    like: Drawing | None = None
    variants: pa.Array | None = None
    refused: str | None = None

    @classmethod
    def of(cls, tasks: TaskSet, inputs: Inputs | None = None, drawings: dict[str, Drawing] | None = None) -> Drawing:
        """Rebuild the drawing of a task set from its record; the sampler's data is found in the inputs by digest.

        `drawings` caches them by task-set digest, so that a set that others share queries with is drawn once.
        """
        drawings = {} if drawings is None else drawings
        if tasks.digest not in drawings:
            drawings[tasks.digest] = cls._of(tasks, inputs or Inputs(), drawings)
        return drawings[tasks.digest]

    @classmethod
    def _of(cls, tasks: TaskSet, inputs: Inputs, drawings: dict[str, Drawing]) -> Drawing:
        """Rebuild the drawing of a task set that is not cached."""
        record = tasks.record
        if record.sampler is None:
            raise InputError(
                "the task set does not record how it was drawn, so it cannot be drawn again on halves of the data: "
                "use one made by `sample`"
            )
        candidates: dict[str, Sequence[Any]] = {
            "attributes": inputs.attributes,
            "features": inputs.with_transforms(record.sources["features"]) if "features" in record.sources else (),
            "like": inputs.tasks,
        }
        prefix = f"the {record.sampler} tasks were drawn with the"
        data: dict[str, Any] = {
            role: with_digest(candidates[role], source.digest, f"{prefix} {'tasks' if role == 'like' else role}")
            for role, source in record.sources.items()
            if role in candidates
        }
        like = data.pop("like", None)
        try:
            with inputs.trusted():
                sampler = samplers.make({"name": record.sampler.name, **record.sampler.options})
        except NotTrusted:
            raise
        except InputError as error:
            raise Mismatch(
                f"the {record.sampler} tasks were drawn by another version of Shotproof and cannot be drawn again on "
                f"halves of the data: {error}; draw the task set with this version"
            ) from error
        missing = next((file for file in sampler.files() if not path_exists(file)), None)
        if missing is not None:
            raise Mismatch(f"{prefix} file {missing}, which does not exist here")
        like_drawing = None if like is None else cls.of(like, inputs, drawings)
        variants = refused = None
        if isinstance(sampler, ChangingSampler):
            catalog = inputs.catalog(record.source("catalog"))
            data["plates"] = catalog.in_split(record.split)
            needed = Variants.of(tasks, catalog)
            if not needed.is_complete:
                refused = (
                    f"{record.sampler} tasks would need over {sampler.most_items:,} changed items to be drawn again "
                    "(the option most_items allows more)"
                )
            variants = needed.names
        if sampler.keeps_changes and like_drawing is not None and like_drawing.variants is not None:
            variants = (
                like_drawing.variants if variants is None else pa.concat_arrays([variants, like_drawing.variants])
            )
            refused = refused or like_drawing.refused
        sizes = [record.way, record.shot, record.query]
        return cls(
            sampler,
            None if None in sizes else TaskShape(*sizes),  # type: ignore[arg-type]
            data,
            like_drawing,
            variants,
            refused,
        )

    def draw(self, catalog: Catalog, seed: int, tasks: int, tables: dict[int, pa.Table] | None = None) -> pa.Table:
        """Draw the rows of the first tasks; `tables` caches them, so that shared queries are drawn once."""
        tables = {} if tables is None else tables
        if id(self) not in tables:
            like = None if self.like is None else TaskSet(self.like.draw(catalog, seed, tasks, tables))
            bound = self._bind(catalog, seed, like)
            tables[id(self)] = bound.draw(range(min(tasks, bound.available() or tasks)))
        return tables[id(self)]

    def _bind(self, catalog: Catalog, seed: int, like: TaskSet | None) -> BoundSampler[Any]:
        """Bind the sampler to data.

        An error about a file that a record names must not reveal the file's content.
        """
        try:
            return self.sampler.bind(catalog, self.shape or TaskShape(), seed, like=like, **self.data)
        except (InsufficientData, Mismatch):
            raise
        except InputError:
            files = ", ".join(map(str, self.sampler.files()))
            if not files:
                raise
            message = f"the {self.sampler.name} tasks cannot be drawn again: {files} does not match the data"
            raise Mismatch(message) from None
