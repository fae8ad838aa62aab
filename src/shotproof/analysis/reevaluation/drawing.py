"""How a task set was drawn, so that it can be drawn anew from other data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from shotproof.analysis.inputs import Inputs, with_digest
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData, Mismatch
from shotproof.core.storage.files import is_there
from shotproof.core.trust import NotTrusted
from shotproof.tasks.sampler import BoundSampler, Sampler, samplers
from shotproof.tasks.taskset import TaskSet, TaskShape


@dataclass(frozen=True)
class Drawing:
    """A sampler with the shape of its tasks and its data; `like` is the drawing that it takes its queries from.

    The shape is None where tasks differ in size, by the sampler's own rules.
    """

    sampler: Sampler
    shape: TaskShape | None
    data: Mapping[str, Any]
    like: Drawing | None = None

    @classmethod
    def of(cls, tasks: TaskSet, inputs: Inputs | None = None, known: dict[str, Drawing] | None = None) -> Drawing:
        """From a task set's record; what its sampler was given is found in the inputs, by digest.

        `known` has the drawings made so far, by the digest of the task set: one that others are like is drawn once.
        """
        known = {} if known is None else known
        if tasks.digest not in known:
            known[tasks.digest] = cls._of(tasks, inputs or Inputs(), known)
        return known[tasks.digest]

    @classmethod
    def _of(cls, tasks: TaskSet, inputs: Inputs, drawings: dict[str, Drawing]) -> Drawing:
        record = tasks.record
        if record.sampler is None:
            raise InputError(
                "the task set does not say how it was drawn, so it cannot be drawn anew on halves of the data: "
                "use one that `sample` made"
            )
        known: dict[str, Sequence[Any]] = {
            "attributes": inputs.attributes,
            "features": inputs.with_transforms(record.sources["features"]) if "features" in record.sources else (),
            "like": inputs.tasks,
        }
        drawn = f"the {record.sampler} tasks were drawn with the"
        data: dict[str, Any] = {
            role: with_digest(known[role], source.digest, f"{drawn} {'tasks' if role == 'like' else role}")
            for role, source in record.sources.items()
            if role in known
        }
        like = data.pop("like", None)
        try:
            with inputs.trusted():
                sampler = samplers.make({"name": record.sampler.name, **record.sampler.options})
        except NotTrusted:
            raise
        except InputError as error:
            raise Mismatch(
                f"the {record.sampler} tasks were drawn by another version, and cannot be drawn anew on halves of the "
                f"data: {error}; draw them again"
            ) from error
        missing = next((file for file in sampler.files() if not is_there(file)), None)
        if missing is not None:
            raise Mismatch(f"{drawn} file {missing}, which is not here")
        sizes = [record.way, record.shot, record.query]
        return cls(
            sampler,
            None if None in sizes else TaskShape(*sizes),  # type: ignore[arg-type]
            data,
            None if like is None else cls.of(like, inputs, drawings),
        )

    def draw(self, catalog: Catalog, seed: int, tasks: int, drawn: dict[int, pa.Table] | None = None) -> pa.Table:
        """The rows of the first tasks; `drawn` keeps them, so that those that others are like are drawn once."""
        drawn = {} if drawn is None else drawn
        if id(self) not in drawn:
            like = None if self.like is None else TaskSet(self.like.draw(catalog, seed, tasks, drawn))
            bound = self._bound(catalog, seed, like)
            drawn[id(self)] = bound.draw(range(min(tasks, bound.available() or tasks)))
        return drawn[id(self)]

    def _bound(self, catalog: Catalog, seed: int, like: TaskSet | None) -> BoundSampler[Any]:
        """Bind the sampler to data. What is wrong with a file that a record names is told without its content."""
        try:
            return self.sampler.bind(catalog, self.shape or TaskShape(), seed, like=like, **self.data)
        except (InsufficientData, Mismatch):
            raise
        except InputError:
            files = ", ".join(map(str, self.sampler.files()))
            if not files:
                raise
            told = f"the {self.sampler.name} tasks cannot be drawn anew: {files} does not fit the data"
            raise Mismatch(told) from None
