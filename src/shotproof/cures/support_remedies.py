"""Remedies of the support set: which items to label, and changed copies of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shotproof.changes.change import BackgroundChange, changes
from shotproof.core.errors import InputError
from shotproof.core.nouns import counted
from shotproof.core.options import option
from shotproof.core.spelling import write_call
from shotproof.cures.remedy import Remedy, RemedyData, Treatment

RANDOM_SUPPORTS = "random supports"
EASY_CANDIDATES = 8  # a quarter of the sampler's own: they are scored again on each half of the images


def choose_supports(choose: str, data: RemedyData) -> str:
    """Spell the sampler that chooses supports from all labeled items of a class."""
    options: dict[str, object] = {"choose": choose}
    if choose == "spread" and data.context_column is not None:
        options["context_column"] = data.context_column
    if choose == "easy":
        options["candidates"] = EASY_CANDIDATES
    return write_call("chosen", options)


@dataclass(frozen=True)
class SupportsRemedy(Remedy):
    """Supports chosen from more labeled items than shots, compared with random ones of the same number."""

    about = "which items of a class to take as supports"
    example = "supports(choose='spread')"
    family = "supports"
    needs = "more labeled items of each class than shots, to choose from"

    choose: Literal["spread", "typical", "easy"] = option(
        help="spread: cover contexts or words evenly; typical: near the mean of the class; easy: the set that "
        "classifies the other labeled items best",
    )

    def treatments(self, data: RemedyData) -> list[Treatment]:
        """Propose the choice of supports."""
        if self.choose == "spread" and data.context_column is None and data.attributes is None:
            raise InputError("the data has no contexts and no attributes that supports could be spread over")
        sampler = choose_supports(self.choose, data)
        return [
            Treatment(
                f"{self.choose} supports",
                sampler=sampler,
                apply=(f'sp.sample(catalog, "{sampler}", like=tasks, ...).table["support"]  # from a larger pool',),
            )
        ]


@dataclass(frozen=True)
class CopiesRemedy(Remedy):
    """Each support item joined by changed copies of itself."""

    about = "changed copies of the supports beside them"
    example = "copies(copies=2)"
    family = "copies"

    copies: int = option(3, "copies with other backgrounds", least=1, most=20)

    def treatments(self, data: RemedyData) -> list[Treatment]:
        """Propose copies by each change that the features have changed items of."""
        if not data.copies:
            raise InputError(
                "there are no changed items: evaluate a changed set first, e.g. study.change('mixed-random')"
            )
        return [self._treatment(change) for change in data.copies]

    def _treatment(self, change: str) -> Treatment:
        """Propose copies by one change, of which only those that show other backgrounds give more than one."""
        made = changes.make(change)
        count = self.copies if isinstance(made, BackgroundChange) and made.plates is not None else 1
        copies = counted(count, "copy", "copies")
        return Treatment(
            f"{copies} by {change}",
            sampler=write_call("copied", {"changes": (change,), "copies": count}),
            apply=(f"add {copies} of each support with the change {change}",),
        )
