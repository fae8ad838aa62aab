"""The four matched sets of context tasks, and all of them together."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.contexts import clean_context
from shotproof.core.arrays import BoolArray
from shotproof.core.errors import InputError
from shotproof.tasks.context.context_sampler import ContextOptions, ContextSet
from shotproof.tasks.sampler import BoundSampler, Sampler, SamplerInputs


@dataclass(frozen=True)
class Iid(ContextSet):
    """Queries in the context of the class's own support."""

    about = "queries in the context of their class's support"
    axis = None

    def allowed(self, own: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """The class's own context."""
        return own


@dataclass(frozen=True)
class Ood(ContextSet):
    """Queries in other contexts, those of the other classes' supports first."""

    about = "queries in other contexts than their class's support"

    def allowed(self, own: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """All others."""
        return ~own & ~clean


@dataclass(frozen=True)
class HardOod(ContextSet):
    """Queries in the contexts of the other classes' supports, evenly in each."""

    about = "queries in the contexts of the other classes' supports"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hard_ood:
            raise InputError(
                f"sampler '{self.name}': hard_ood: expected True, found False, which is for the other sets"
            )

    def allowed(self, own: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """Those of the others' supports."""
        return others


@dataclass(frozen=True)
class Clean(ContextSet):
    """Queries without a context."""

    about = "queries in the context that means none"
    example = "clean(clean_value='none')"

    def allowed(self, own: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """The clean one."""
        return clean

    def bound(self, inputs: SamplerInputs) -> BoundSampler[ContextSet]:
        """Tasks with the contexts of these inputs, of which one must mean none."""
        if self.clean_value is None and clean_context(inputs.catalog, self.context_column) is None:
            raise InputError(
                f"sampler '{self.name}' needs the context that means none, e.g. {self.example}; sounds that are mixed "
                "with --clean (in an experiment, [mix] clean = true) have one"
            )
        return super().bound(inputs)


@dataclass(frozen=True)
class Context(ContextOptions):
    """All matched sets with the same options: task t of each has the same classes and the very same support items."""

    about = "the matched sets iid, ood, hard-ood and clean together"
    example = "context(clean_value='none')"

    def sets(self, catalog: Catalog | None = None) -> dict[str, Sampler]:
        """`iid`, `ood`, `hard-ood` unless it is not wanted, and `clean` where one knows which context that is.

        Args:
            catalog: it may say which context means none
        """
        clean_value = self.clean_value
        if clean_value is None and catalog is not None:
            clean_value = clean_context(catalog, self.context_column)
        kinds: list[type[ContextSet]] = [Iid, Ood, *[HardOod] * self.hard_ood, *[Clean] * (clean_value is not None)]
        made = [kind(**self.parameters()) for kind in kinds]
        return {one.name: one for one in made}

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Sampler]:
        """Refused: it is several sets."""
        raise InputError(
            f"sampler '{self.name}' draws several matched sets ({', '.join(self.sets(inputs.catalog))}): "
            "draw each by its name, from one seed, or evaluate a study on all of them: on='context'"
        )
