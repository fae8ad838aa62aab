"""The robustness card: what was measured of one classifier on every axis, as a versioned record that tools read.

Accuracies are in percent, gaps in points, skill lost in percent of the accuracy above chance. What is by metric is by
`acc` and by `wacc`, the accuracy on the worst class of a task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError, placed
from shotproof.core.nouns import counted
from shotproof.core.plain_values import plain, typed
from shotproof.core.records import Source
from shotproof.core.storage.files import is_folder, is_there, read_json
from shotproof.core.storage.whole_files import write_text
from shotproof.results.evaluated import check_metric
from shotproof.results.origin import RANDOM
from shotproof.stats.block import Block, Group, Loss
from shotproof.stats.intervals import Interval
from shotproof.stats.pairs import Conclusion
from shotproof.stats.ranks import RankRange
from shotproof.version import __version__

KIND, FORMAT = "card", 1
CARD_FILE = "card.json"
BY_TASK_DIGITS = 4  # of the accuracies of single tasks
SHOTS = "shots"  # the axis of random tasks, which stress nothing but how few the examples are
UNBALANCED = "unbalanced"
_FOLDERS = re.compile(r"(?<![^:])[^:]*/(?=[^/:]+)")


@dataclass(frozen=True)
class CardTasks:
    """A task set: two cards are of the same tasks where the digests are the same.

    searched_in: the digest of the features that the tasks were searched in; None where no features decide them
    """

    sampler: str
    digest: str
    tasks: int
    seed: int | None = None
    searched_in: str | None = None


@dataclass(frozen=True)
class CardBaseline:
    """A classifier that was measured beside, on the same tasks; mean accuracy and skill lost, by metric."""

    encoder: str
    method: str
    accuracy: Mapping[str, float]
    skill_lost: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CardExample:
    """One class of one task: its support, and queries that were missed, by the catalog's items."""

    task: int
    label: str
    support: tuple[str, ...]
    missed: tuple[str, ...]


@dataclass(frozen=True)
class CardCost:
    """What it conclusively costs that an attribute is planted in a class's support, or that this is in a context.

    attribute: its name; of several that go together too often to be told apart, all of them: `snow or white border`
    cost: points of accuracy below the placebo, the other attributes held constant; the interval is corrected for
        their number
    tasks, labels: in how many tasks, and in how many classes, it was planted
    worst_label: the class that loses most of these
    advice: what to do about it
    """

    attribute: str
    cost: Interval
    tasks: int
    labels: int
    worst_label: str
    advice: str
    examples: tuple[CardExample, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AxisTasks:
    """What an axis is: a task set that stresses something, with its reference and its placebo.

    name: what it is called, also by a gate: `fewstab`, `hard-ood`, `hardest`, `random-5-shot`
    axis: what the tasks stress: attributes, contexts, difficulty, classes, queries; `shots` of random tasks; of
        other references it is empty
    way, shot, query: their size; 0 where tasks differ
    tasks, reference, placebo: the task sets
    """

    name: str
    axis: str
    way: int
    shot: int
    query: int
    tasks: CardTasks
    reference: CardTasks | None = None
    placebo: CardTasks | None = None


@dataclass(frozen=True, kw_only=True)
class CardAxis(AxisTasks):
    """The classifier on one task set: alone, or against its own reference and its placebo.

    name, axis, way, shot, query, tasks, reference, placebo: of `AxisTasks`
    estimates: the rows of the classifier on this axis, by quantity and metric: `accuracy`; where there is a reference
        also `reference_accuracy`, `gap` (the reference minus the task set, in points), `placebo` (likewise of the
        placebo), `excess` (the gap minus the placebo's) and `skill_lost` (what is lost, beyond the placebo where there
        is one, of the accuracy above chance)
    by_task: the accuracy on each task, in the order of the task set, by metric; rounded to BY_TASK_DIGITS digits
    rank: among all classifiers, by `accuracy` and by `skill_lost`, in the card's metric
    conclusion: whether something is lost (+), gained (-) or neither can be told (0), after Holm's correction for all
        losses of the comparison
    is_shuffled: whether words were shuffled to tell what chance would lose, so that a loss may be called leaning
    at_most: the most of the skill that is lost, in percent, corrected likewise; None if there is no such bound
    verdict, advice: in plain words
    costs: the attributes or contexts that conclusively cost something, the costliest first
    """

    estimates: Mapping[str, Mapping[str, Interval]]
    chance: Mapping[str, float]
    rank: Mapping[str, RankRange]
    verdict: str
    by_task: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    baselines: tuple[CardBaseline, ...] = ()
    conclusion: Conclusion | None = None
    is_shuffled: bool = False
    at_most: float | None = None
    advice: str = ""
    costs: tuple[CardCost, ...] = ()

    def number(self, quantity: str, metric: str) -> Interval | None:
        """One of the estimates; None if it is not there."""
        return self.estimates.get(quantity, {}).get(metric)

    def lost(self, metric: str) -> Interval:
        """What statements are about, in points: the excess, or without a placebo the gap."""
        return (self.estimates.get("excess") or self.estimates["gap"])[metric]


@dataclass(frozen=True)
class MissingAxis:
    """An axis that was not measured, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Card:
    """The robustness card of one classifier.

    name: of the data set; sources: the digests of the catalog and of the features
    encoder, method: the classifier, as tables call it; files by their names
    metric: what statements and ranks are by; level, covers: of the intervals
    verdict: in plain words; nothing that an interval does not support
    version: of Shotproof

    Example:
        >>> card = Card(name="birds", encoder="lite0", method="cosine", version="1")
        >>> card
        <Card of cosine on lite0, birds: 0 axes>
        >>> Card.from_json(card.to_json()) == card
        True
    """

    name: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)
    encoder: str = ""
    method: str = ""
    split: str | None = None
    medium: str | None = None
    quick: bool = False
    metric: str = "acc"
    level: float = 0.95
    covers: str = "images"
    context: str = "context"
    axes: tuple[CardAxis, ...] = ()
    missing: tuple[MissingAxis, ...] = ()
    verdict: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __post_init__(self) -> None:
        check_metric(self.metric)

    def __repr__(self) -> str:
        axes = counted(len(self.axes), "axis", "axes")
        return f"<Card of {', '.join(filter(None, (self.title, self.name)))}: {axes}>"

    @property
    def title(self) -> str:
        """The method and its encoder, as in a sentence."""
        return f"{self.method} on {self.encoder}" if self.encoder else self.method

    @property
    def stresses(self) -> list[CardAxis]:
        """The axes that have a reference."""
        return [one for one in self.axes if one.reference is not None]

    def to_json(self) -> dict[str, Any]:
        """As plain values, by the JSON Schema of cards; every field is there, null where there is no value."""
        return {"kind": KIND, "format": FORMAT, **plain(self, whole=True)}

    @classmethod
    def from_json(cls, content: Any) -> Card:
        """From what `to_json` gave.

        Raises:
            InputError: it is no card, of a newer format, or a value is of another type; the message says which.
        """
        if not isinstance(content, Mapping) or content.get("kind") != KIND:
            raise InputError(f'expected a robustness card, with "kind": "{KIND}"')
        if content.get("format") != FORMAT:
            raise InputError(f"format: expected {FORMAT}, found {content.get('format')!r}: made by another version")
        given = {key: value for key, value in content.items() if key not in ("kind", "format")}
        read: Card = typed(given, cls, strict=True)
        return read

    @classmethod
    def read(cls, path: str | Path, *, checked: bool = True) -> Card:
        """Read card.json, or that of a profile's folder.

        Args:
            path: the file or the folder
            checked: refuse a card whose numbers contradict each other

        Raises:
            InputError: there is no such file, it is no card, or its numbers contradict each other.
        """
        from shotproof.comparison.card_contradictions import contradictions

        path = Path(path)
        if is_folder(path):
            if not is_there(path / CARD_FILE):
                raise InputError(f"{path} has no {CARD_FILE}: shotproof profile writes one, shotproof run does not")
            path /= CARD_FILE
        what = f"card {path}"
        content = read_json(path, what)
        with placed(f"{what}: "):
            card = cls.from_json(content)
            problem = next(contradictions(card), None) if checked else None
            if problem is not None:
                raise InputError(problem)
            return card

    def write(self, path: str | Path) -> None:
        """Write card.json."""
        write_text(Path(path), json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def axis_tasks(
    block: Block, group: Group, loss: Loss | None, tasks_of: Callable[[Group], CardTasks], label: str | None = None
) -> AxisTasks:
    """Describe a task set of a comparison as an axis.

    Args:
        block: the design
        group: the accuracies on the set
        loss: what is lost on it; None of a set without a reference
        tasks_of: what to say of a task set
        label: of the set; None is the group's
    """
    design = block.design
    way, shot, query = (one or 0 for one in (design.way, design.shot, design.query))
    placebo = block.placebos.get(loss.label) if loss and loss.placebo else None
    axis = SHOTS if group.is_random else loss.axis if loss else group.axis
    names = {SHOTS: f"{RANDOM}-{design.shot}-shot", "queries": UNBALANCED}
    return AxisTasks(
        name=names.get(axis or "", label or group.label),
        axis=axis or "",
        way=way,
        shot=shot,
        query=query,
        tasks=tasks_of(group),
        reference=tasks_of(block.group(loss.reference)) if loss else None,
        placebo=tasks_of(block.group(placebo)) if placebo else None,
    )


def without_folders(method: str) -> str:
    """A method's spelling with a file that it names told by its name alone: folders are of one machine.

    Example:
        >>> without_folders("nets/mine.py:Mine")
        'mine.py:Mine'
    """
    return _FOLDERS.sub("", method) if method.startswith("model:") or ".py:" in method else method
