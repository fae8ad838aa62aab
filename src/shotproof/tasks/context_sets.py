"""The four matched sets of context tasks: one class a set, and all of them together."""

from __future__ import annotations

from typing import Any, ClassVar

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.contexts import clean_context
from shotproof.errors import InputError
from shotproof.tasks.context import BoolArray, ContextSampler
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet


class IidSampler(ContextSampler):
    """Queries in the context of the class's own support."""

    about: ClassVar[str] = "queries in the context of their class's support"

    def allowed(self, own: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """The class's own context."""
        return own


class OodSampler(ContextSampler):
    """Queries in other contexts, those of the other classes' supports first."""

    about: ClassVar[str] = "queries in other contexts than their class's support"

    def allowed(self, own: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """All others."""
        return ~own & ~clean


class HardOodSampler(ContextSampler):
    """Queries in the contexts of the other classes' supports, evenly in each."""

    about: ClassVar[str] = "queries in the contexts of the other classes' supports"

    def refuse_options(self) -> None:
        """It is the set that the others may do without."""
        if not self.hard_ood:
            raise InputError("sampler 'hard_ood' cannot be drawn without hard_ood (--no-hard-ood)")

    def allowed(self, own: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """Those of the others' supports."""
        return others


class CleanSampler(ContextSampler):
    """Queries without a context."""

    about: ClassVar[str] = "queries in the context that means none"

    def refuse_options(self) -> None:
        """It must know which context that is."""
        if self.clean_value is None:
            raise InputError("sampler 'clean' needs the context that means none (--clean-value NAME)")

    def allowed(self, own: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """The clean one."""
        return clean


def sample_context(
    catalog: Catalog,
    *,
    context_column: str = "context",
    clean_value: str | None = None,
    hard_ood: bool = True,
    **options: Any,
) -> dict[str, TaskSet]:
    """Draw `iid`, `ood`, `hard_ood` unless it is not wanted, and `clean` where `clean_value`, or else the catalog, says
    what that is.

    Task t of each has the same classes and the very same support items. `options` are those of `sample` (split, way,
    shot, query, tasks, seed, workers) and of the samplers (max_tries, skip_small_classes).
    """
    clean_value = clean_context(catalog, context_column) if clean_value is None else clean_value
    names = ["iid", "ood"] + ["hard_ood"] * hard_ood + ["clean"] * (clean_value is not None)
    options |= {"context_column": context_column, "clean_value": clean_value, "hard_ood": hard_ood}
    return {name: sample(catalog, name, **options) for name in names}
