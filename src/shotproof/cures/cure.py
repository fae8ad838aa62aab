"""Outcome of a search for a cure: remedies with their effects, what to take, and what to collect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from shotproof.core.errors import InputError, error_prefix
from shotproof.core.plain_values import plain, typed
from shotproof.core.storage.files import is_folder, path_exists, read_json
from shotproof.core.storage.whole_files import write_text
from shotproof.cures.class_parts import CHOOSE, CONFIRM, FIT
from shotproof.cures.effects import Effect
from shotproof.cures.remedy import Treatment
from shotproof.stats.intervals import Interval
from shotproof.stats.pairs import Conclusion

KIND, FORMAT = "cure", 1
CURE_FILE = "cure.json"


@dataclass(frozen=True)
class TriedRemedy:
    """Remedy with the setting that the classes to choose on preferred, and its effects on the classes to confirm on.

    remedy: its spelling; treatment: the setting that was chosen
    baseline: what it is compared with: the classifier as it is, or with random supports
    settings: number of settings that were compared
    plain: label of the tasks that accuracy is measured on: random ones
    accuracy_before, accuracy_after, accuracy_difference: on these, in percent and points
    accuracy_conclusion: whether the accuracy is conclusively higher (+) or lower (-)
    score: mean accuracy on stressed tasks of the classes to choose on, in percent; None without such tasks
    apply: how to apply it, in lines
    needs: what it takes beyond the supports and queries themselves; empty if nothing
    """

    remedy: str
    family: str
    treatment: str
    baseline: str
    settings: int
    plain: str
    accuracy_before: Interval
    accuracy_after: Interval
    accuracy_difference: Interval
    effects: tuple[Effect, ...]
    accuracy_conclusion: Conclusion = "0"
    score: float | None = None
    apply: tuple[str, ...] = ()
    needs: str = ""

    @property
    def helps(self) -> bool:
        """Return whether it lowers a loss conclusively, at no conclusive cost."""
        outcomes = {effect.outcome for effect in self.effects}
        return "helps" in outcomes and "hurts" not in outcomes and self.accuracy_conclusion != "-"

    @property
    def title(self) -> str:
        """Return the name of the treatment, with the number of trainings if effects are means over several."""
        trainings = max((len(effect.trainings) for effect in self.effects), default=0)
        return f"{self.treatment} (mean of {trainings} trainings)" if trainings else self.treatment


@dataclass(frozen=True)
class NotTried:
    """Remedy that could not be tried on this data, and why."""

    remedy: str
    reason: str


@dataclass(frozen=True)
class SupportPoint:
    """Share of the skill that is lost with supports of this number of shots, or from this number of contexts.

    contexts: number of contexts that the supports of a class come from; None if they are as in the tasks
    """

    axis: str
    shots: int
    contexts: int | None
    lost: Interval


@dataclass(frozen=True)
class ToCollect:
    """Items to collect: a class whose items mostly show a context or word, and what that costs.

    cost: accuracy on the reference minus that on rows with this class and cue, in points
    """

    label: str
    cue: str
    having: int
    lacking: int
    cost: float
    tasks: int


@dataclass(frozen=True)
class Cure:
    """Remedies that were tried on a classifier, what they do, and which one to take.

    parts: number of classes that remedies were fitted, chosen and confirmed on
    tasks: number of tasks of each set that confirms
    recommended: treatment to take; None if none conclusively lowers a loss at no conclusive cost
    treatments: the chosen treatments, by remedy; not stored
    """

    encoder: str
    method: str
    data_set: str
    design: str
    medium: str | None
    parts: Mapping[str, int]
    tasks: int
    level: float
    tried: tuple[TriedRemedy, ...]
    not_tried: tuple[NotTried, ...] = ()
    supports: tuple[SupportPoint, ...] = ()
    collect: tuple[ToCollect, ...] = ()
    notes: tuple[str, ...] = ()
    recommended: str | None = None
    treatments: Mapping[str, Treatment] = field(default_factory=dict, compare=False, repr=False)

    def row(self, remedy: str | None) -> TriedRemedy | None:
        """Return the row of a remedy."""
        return next((row for row in self.tried if row.remedy == remedy), None)

    def sentences(self) -> list[str]:
        """State what was found, in at most five sentences."""
        from shotproof.cures.cure_sentences import cure_sentences

        return cure_sentences(self)

    def to_json(self) -> dict[str, Any]:
        """Return plain values; a field without a value is null."""
        return {"kind": KIND, "format": FORMAT, **plain(replace(self, treatments={}), complete=True)}

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a cure from its file, or from the folder of a run.

        Raises:
            InputError: there is no such file, or it is not a cure.
        """
        path = Path(path)
        if is_folder(path):
            if not path_exists(path / CURE_FILE):
                raise InputError(f"{path} has no {CURE_FILE}: shotproof cure {path} writes one")
            path /= CURE_FILE
        content = read_json(path, f"cure {path}")
        with error_prefix(f"cure {path}: "):
            if not isinstance(content, Mapping) or content.get("kind") != KIND:
                raise InputError(f'expected a cure, with "kind": "{KIND}"')
            if content.get("format") != FORMAT:
                version = content.get("format")
                raise InputError(
                    f"format: expected {FORMAT}, found {version!r}: written by another version of Shotproof"
                )
            values = {key: value for key, value in content.items() if key not in ("kind", "format", "treatments")}
            cure: Self = typed(values, cls, strict=True)
            if cure.parts.keys() != {FIT, CHOOSE, CONFIRM}:
                raise InputError(f"parts: expected {FIT}, {CHOOSE} and {CONFIRM}, found {', '.join(cure.parts)}")
            if not any(row.effects for row in cure.tried):
                raise InputError("tried: expected a remedy with effects, found none")
            return cure

    def write(self, path: str | Path) -> None:
        """Write cure.json."""
        write_text(Path(path), json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
