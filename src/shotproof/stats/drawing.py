"""How a task set was drawn, so that it can be drawn anew from other data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, Mismatch
from shotproof.features.features import Features
from shotproof.tasks.pool import Design
from shotproof.tasks.sampler import samplers
from shotproof.tasks.taskset import TaskSet

_NOT_OPTIONS = ("sampler", "split", "way", "shot", "query", "tasks")


@dataclass(frozen=True)
class Inputs:
    """What samplers may need beside a catalog; features and task sets are found by their digest."""

    attributes: Attributes | None = None
    features: Sequence[Features] = ()
    tasks: Sequence[TaskSet] = ()


NO_INPUTS = Inputs()


@dataclass(frozen=True)
class Drawing:
    """A sampler with its design and options; `like` is the drawing of the task set that it takes its queries from.

    The design is None where tasks differ in size, by the sampler's own rules.
    """

    sampler: str
    design: Design | None
    options: dict[str, Any]
    like: Drawing | None = None

    @classmethod
    def of(cls, tasks: TaskSet, inputs: Inputs = NO_INPUTS) -> Drawing:
        """From a task set's metadata."""
        made_by = tasks.meta.get("made_by")
        if not isinstance(made_by, dict) or not {"sampler", "way", "shot", "query"} <= made_by.keys():
            raise InputError(
                "the task set does not say how it was drawn, so it cannot be drawn anew on halves of the data: "
                "use one made by shotproof sample"
            )
        options = {name: value for name, value in made_by.items() if name not in _NOT_OPTIONS}
        made_from = tasks.meta.get("from", {})
        if "attributes" in made_from:
            options["attributes"] = inputs.attributes
        if "features" in made_from:
            options["features"] = _found(inputs.features, made_from["features"], made_by["sampler"], "features")
        like = made_from.get("like")
        sizes = [made_by[name] for name in ("way", "shot", "query")]
        return cls(
            made_by["sampler"],
            None if None in sizes else Design(*sizes),
            options,
            None if like is None else cls.of(_found(inputs.tasks, like, made_by["sampler"], "tasks"), inputs),
        )

    def draw(self, catalog: Catalog, seed: int, tasks: int) -> pa.Table:
        """The rows of the first tasks."""
        like = {} if self.like is None else {"like": TaskSet(self.like.draw(catalog, seed, tasks))}
        sampler = samplers.make(self.sampler, catalog, self.design or Design(), seed, **self.options, **like)
        return sampler.draw(range(min(tasks, sampler.available() or tasks)))


def _found(given: Sequence[Any], digest: str, sampler: str, name: str) -> Any:
    for one in given:
        if one.digest == digest:
            return one
    known = ", ".join(one.digest for one in given) or "none"
    raise Mismatch(
        f"the {sampler} tasks were drawn with the {name} {digest}, which drawing them anew needs too (--{name}); "
        f"given: {known}"
    )
