"""Remedies of features: transforms in closed form, fitted on classes that are not evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.spelling import write_call
from shotproof.cures.remedy import Remedy, RemedyData, Treatment
from shotproof.features.features import Features
from shotproof.features.transforms import Center, Standardize, Transform

UNIT = "l2"
# Earlier steps: features as they are, and scaled to length 1, as most heads scale them first.
_BEFORE: tuple[tuple[str, ...], ...] = ((UNIT,), ())


@dataclass(frozen=True)
class WccnRemedy(Remedy):
    """Within-class covariance normalization."""

    about = "shrink directions in which items of a class differ"
    paper = (
        "Hatch, Kajarekar and Stolcke, Within-Class Covariance Normalization for SVM-Based Speaker Recognition, 2006"
    )
    family = "features"

    ridges: tuple[float, ...] = option((1.0, 10.0, 100.0), "ridges to try, in mean eigenvalues", above=0)

    def treatments(self, data: RemedyData) -> list[Treatment]:
        """Propose a normalization for each ridge."""
        from shotproof.features.nuisance_transforms import Wccn

        steps = [(before, Wccn(base=base, catalog=data.base_catalog)) for before, base in _bases(data)]
        return [
            _treatment("wccn", {"ridge": ridge}, before, step.varied(ridge=ridge))
            for before, step in steps
            for ridge in self.ridges
        ]


@dataclass(frozen=True)
class _NuisanceRemedy(Remedy):
    """Remedy that removes what differs within classes by contexts, words or changes."""

    by: Literal["contexts", "words", "changes"] = option(help="what should not matter")

    def require(self, data: RemedyData) -> dict[str, Any]:
        """Return the data that tells what should not matter, or say why there is none."""
        options: dict[str, Any] = {"by": self.by, "catalog": data.base_catalog}
        if self.by == "words":
            if data.attributes is None:
                raise InputError("the data has no attributes: detect some, e.g. shotproof detect catalog.parquet")
            return {**options, "attributes": data.attributes}
        if self.by == "contexts":
            return {**options, "context_column": data.require_contexts()}
        data.require_changed()
        return options


@dataclass(frozen=True)
class NapRemedy(_NuisanceRemedy):
    """Nuisance attribute projection: remove the directions in which items differ that should not."""

    about = "remove directions of what should not matter, within classes"
    paper = "Solomonoff, Quillen and Campbell, Channel Compensation for SVM Speaker Recognition, 2004"
    example = "nap(by='words')"
    family = "features"

    directions: tuple[int, ...] = option((5, 10, 15, 20, 30, 40), "numbers of directions to try", least=1)

    def treatments(self, data: RemedyData) -> list[Treatment]:
        """Propose a projection for each number of directions."""
        from shotproof.features.nuisance_transforms import Nap

        options = self.require(data)
        changed = data.changed if self.by == "changes" else None
        proposals = []
        for before, base in _bases(data, changed):
            most = base.array.shape[1] - 1
            step = Nap(base=base, **options)
            for directions in dict.fromkeys(min(count, most) for count in self.directions):
                if step.available >= directions:
                    varied = step.varied(directions=directions)
                    proposals.append(_treatment("nap", {"by": self.by, "directions": directions}, before, varied))
        if not proposals:
            raise InputError(f"the {self.by} within classes differ in too few directions")
        return proposals


@dataclass(frozen=True)
class LeaceRemedy(_NuisanceRemedy):
    """Least-squares concept erasure: the smallest change after which no linear rule can tell what should not matter."""

    about = "erase contexts or words, as far as linear rules can tell"
    paper = "Belrose et al., LEACE: Perfect Linear Concept Erasure in Closed Form, NeurIPS 2023"
    example = "leace(by='contexts')"
    family = "features"

    def treatments(self, data: RemedyData) -> list[Treatment]:
        """Propose the erasure."""
        from shotproof.features.nuisance_transforms import Leace

        if self.by == "changes":
            raise InputError("changes are erased by nap(by='changes')")
        options = self.require(data)
        return [
            _treatment("leace", {"by": self.by}, before, Leace(base=base, **options)) for before, base in _bases(data)
        ]


@dataclass(frozen=True)
class CenterContextsRemedy(Remedy):
    """Each item minus the mean of its context, which must be known when the classifier is used."""

    about = "subtract the mean of each item's context"
    family = "features"
    needs = "the context of each item, supports and queries alike"

    def treatments(self, data: RemedyData) -> list[Treatment]:
        """Propose the centering."""
        from shotproof.features.nuisance_transforms import CenterContexts

        column = data.require_contexts()
        return [
            _treatment(
                "center-contexts",
                {},
                before,
                CenterContexts(base=base, catalog=data.catalog, context_column=column),
            )
            for before, base in _bases(data)
        ]


@dataclass(frozen=True)
class PreprocessRemedy(Remedy):
    """Usual preprocessing: unit length, centering (CL2N), standardizing, a power."""

    about = "usual preprocessing: unit length, centering, standardizing, a power"
    paper = "Wang et al., SimpleShot: Revisiting Nearest-Neighbor Classification for Few-Shot Learning, 2019"
    family = "features"

    def treatments(self, data: RemedyData) -> list[Treatment]:
        """Propose each chain of steps."""
        center, standardize = Center(base=data.base()), Standardize(base=data.base())
        chains: dict[str, tuple[Transform | str, ...]] = {
            "l2": (UNIT,),
            "center > l2": (center, UNIT),
            "standardize": (standardize,),
            "power > l2": ("power(power=0.5)", UNIT),
        }
        return [Treatment(name, steps=steps, apply=apply_steps(steps)) for name, steps in chains.items()]


def _bases(data: RemedyData, changed: Features | None = None) -> list[tuple[tuple[str, ...], Features]]:
    """Return the features to fit on, for each choice of earlier steps."""
    from shotproof.features.transforms import transform

    if changed is None:
        return [(before, data.base(before)) for before in _BEFORE]
    return [(before, transform(changed, before) if before else changed) for before in _BEFORE]


def _treatment(name: str, options: dict[str, Any], before: Sequence[str], step: Transform) -> Treatment:
    """Name a treatment by its earlier steps and the options that were chosen."""
    steps: tuple[Transform | str, ...] = (*before, step)
    return Treatment(" > ".join([*before, write_call(name, options)]), steps=steps, apply=apply_steps(steps))


def apply_steps(steps: Sequence[Transform | str]) -> tuple[str, ...]:
    """Spell the flags that apply some steps."""
    return tuple(f'--transform "{step}"' for step in steps)
