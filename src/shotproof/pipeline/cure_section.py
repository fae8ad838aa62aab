"""Section [cure] of an experiment: remedies are tried on a classifier after the evaluation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shotproof.core.errors import InputError, UnknownName
from shotproof.core.limits import SEED, SHOT
from shotproof.core.options import option
from shotproof.core.sections import Section
from shotproof.cures.remedy import DEFAULT_REMEDIES, REMEDIES_ON_REQUEST, Remedy, remedies
from shotproof.cures.search import TASKS_TO_CHOOSE
from shotproof.stats.intervals import check_level


@dataclass(frozen=True)
class CureSection(Section):
    """Search for a cure: the classifier to treat, and the remedies to try."""

    method: str | None = option(None, "method of the classifier to treat; by default the first")
    encoder: str | None = option(None, "its encoder; by default the first")
    shot: int | None = option(None, "shots of the tasks; by default the most", within=SHOT)
    remedies: tuple[str, ...] = option(
        (),
        "remedies to try, or families of them: features, supports, copies, heads, encoders, training; by default all "
        "but training",
    )
    tasks: int = option(TASKS_TO_CHOOSE, "tasks of each set that remedies are chosen on", least=2)
    budget: str | None = option(
        None, "time after which no further remedy is tried, e.g. 90s, 5m or 1h; by default all are tried"
    )
    level: float = option(0.95, "confidence level of the intervals", above=0, most=1)
    seed: int = option(0, "random seed of the division of classes", within=SEED)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_level(self.level)
        self.chosen_remedies()
        self.seconds()

    @property
    def _title(self) -> str:
        return "cure"

    def seconds(self) -> float | None:
        """Return the budget in seconds. Raise InputError if it is no time."""
        if self.budget is None:
            return None
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh])\s*", self.budget)
        if match is None or not float(match[1]):
            raise InputError(f"budget: expected a time such as 90s, 5m or 1h, found {self.budget!r}")
        return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]

    def chosen_remedies(self) -> list[Remedy]:
        """Return the remedies to try.

        Raises:
            UnknownName: there is no remedy and no family of this name.
        """
        if not self.remedies:
            return [remedies.make(spelling) for spelling in DEFAULT_REMEDIES]
        every = [remedies.make(spelling) for spelling in (*DEFAULT_REMEDIES, *REMEDIES_ON_REQUEST)]
        chosen: list[Remedy] = []
        for entry in self.remedies:
            matching = [remedy for remedy in every if entry in (remedy.family, remedy.name)]
            if not matching and "(" not in entry and entry not in remedies:
                raise UnknownName("remedy or family", entry, {*remedies, *(remedy.family for remedy in every)})
            chosen += matching or [remedies.make(entry)]
        return list(dict.fromkeys(chosen))
