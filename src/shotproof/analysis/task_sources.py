"""What a task set was drawn from, among what is there: its catalog and its attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow.compute as pc

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.tasks.taskset import TaskSet


def catalog_of(tasks: TaskSet, catalogs: Sequence[Catalog]) -> Catalog | None:
    """The catalog that the tasks were drawn from; where only one was given, that one."""
    own = next((one for one in catalogs if one.digest == tasks.record.source("catalog")), None)
    return catalogs[0] if own is None and len(catalogs) == 1 else own


def attributes_of(tasks: TaskSet, attributes: Sequence[Attributes]) -> Attributes | None:
    """Those that the tasks were drawn with, or that are of the same catalog, or that know the first item."""
    item, catalog = tasks.table.column("support")[0][0], tasks.record.source("catalog")
    rules: list[Callable[[Attributes], bool]] = [
        lambda one: one.digest == tasks.record.source("attributes"),
        lambda one: catalog is not None and one.record.source("catalog") == catalog,
        lambda one: pc.index(one.table.column("item"), item).as_py() >= 0,
    ]
    return next((one for fits in rules for one in attributes if fits(one)), None)
