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

    def allowed(self, support: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """Allow the context of the class's own support."""
        return support


@dataclass(frozen=True)
class Ood(ContextSet):
    """Queries in other contexts, first in those of the other classes' supports."""

    about = "queries in other contexts than their class's support"

    def allowed(self, support: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """Allow all contexts but that of the class's own support and the clean one."""
        return ~support & ~clean


@dataclass(frozen=True)
class HardOod(ContextSet):
    """Queries in the contexts of the other classes' supports, divided evenly."""

    about = "queries in the contexts of the other classes' supports"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hard_ood:
            raise InputError(f"sampler '{self.name}': hard_ood=False is only for iid, ood and clean")

    def allowed(self, support: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """Allow the contexts of the other classes' supports."""
        return others


@dataclass(frozen=True)
class Clean(ContextSet):
    """Queries without a context."""

    about = "queries without a context"
    example = "clean(clean_value='none')"

    def allowed(self, support: BoolArray, others: BoolArray, clean: BoolArray) -> BoolArray:
        """Allow only the clean context."""
        return clean

    def bound(self, inputs: SamplerInputs) -> BoundSampler[ContextSet]:
        """Bind the sampler to these inputs. Raise InputError if no value marks items without a context."""
        if self.clean_value is None and clean_context(inputs.catalog, self.context_column) is None:
            raise InputError(
                f"sampler '{self.name}' needs the value that marks items without a context, e.g. {self.example}; "
                "sounds that were mixed with --clean (in an experiment, [mix] clean = true) have one"
            )
        return super().bound(inputs)


@dataclass(frozen=True)
class Context(ContextOptions):
    """All matched sets with the same options: task t of each set has the same classes and support items."""

    about = "the matched sets iid, ood, hard-ood and clean together"
    example = "context(clean_value='none')"

    def sets(self, catalog: Catalog | None = None) -> dict[str, Sampler]:
        """Return `iid`, `ood`, `hard-ood` unless left out, and `clean` if a value marks items without a context.

        Args:
            catalog: catalog that may name the value that marks items without a context
        """
        clean_value = self.clean_value
        if clean_value is None and catalog is not None:
            clean_value = clean_context(catalog, self.context_column)
        kinds: list[type[ContextSet]] = [Iid, Ood, *[HardOod] * self.hard_ood, *[Clean] * (clean_value is not None)]
        samplers = [kind(**self.parameters()) for kind in kinds]
        return {sampler.name: sampler for sampler in samplers}

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Sampler]:
        """Raise InputError, because this stands for several sets."""
        raise InputError(
            f"sampler '{self.name}' draws several matched sets ({', '.join(self.sets(inputs.catalog))}): "
            "draw each by its name, with the same seed, or evaluate a study on all of them: on='context'"
        )
