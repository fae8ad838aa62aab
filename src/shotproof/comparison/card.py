"""Robustness card: the measurements of one classifier on every axis, as a versioned record that tools read.

Accuracies are in percent, gaps in points, skill lost in percent of the accuracy above chance. The metrics are `acc` and
`wacc`, the accuracy on the worst class of a task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from shotproof.comparison.numbers import listed
from shotproof.core.errors import InputError, error_prefix
from shotproof.core.nouns import counted
from shotproof.core.plain_values import plain, typed
from shotproof.core.records import Source
from shotproof.core.storage.files import is_folder, path_exists, read_json
from shotproof.core.storage.whole_files import write_text
from shotproof.results.applied_change import AppliedChange
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
SHOTS = "shots"  # the axis of random tasks, which stress only the small number of examples
UNBALANCED = "unbalanced"
_FOLDERS = re.compile(r"(?<![^:])[^:]*/(?=[^/:]+)")


@dataclass(frozen=True)
class CardTasks:
    """Task set of a card; two cards are on the same tasks if the digests are equal.

    searched_in: digest of the features that the tasks were searched in; None if the tasks do not depend on features
    changed: what is changed in the items; None if nothing is
    """

    sampler: str
    digest: str
    tasks: int
    seed: int | None = None
    searched_in: str | None = None
    changed: AppliedChange | None = None


@dataclass(frozen=True)
class CardRemedy:
    """Remedy that the classifier was measured with.

    family: what it treats: `features` by a transform that was fitted on classes, `supports` that were chosen anew, or
        `copies` of supports
    name: its setting, without the data that it was fitted on, e.g. `nap(by='words', directions=15)`
    classes: number of classes that it was fitted on; None if it was not fitted, or if that is unknown
    axes: axes on which supports were treated; empty for all
    """

    family: Literal["features", "supports", "copies"]
    name: str
    classes: int | None = None
    axes: tuple[str, ...] = ()

    def __str__(self) -> str:
        described = {"supports": "supports by ", "copies": "copies of supports by "}.get(self.family, "") + self.name
        fitted = f", fitted on {counted(self.classes, 'class', 'classes')}" if self.classes else ""
        return f"{described}{fitted}{f' on {listed(list(self.axes))} tasks' if self.axes else ''}"


@dataclass(frozen=True)
class CardBaseline:
    """Baseline classifier on the same tasks: mean accuracy and skill lost, by metric."""

    encoder: str
    method: str
    accuracy: Mapping[str, float]
    skill_lost: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CardExample:
    """Example of one class in one task: its support and its misclassified queries, as items of the catalog."""

    task: int
    label: str
    support: tuple[str, ...]
    missed: tuple[str, ...]


@dataclass(frozen=True)
class CardCost:
    """Conclusive cost of an attribute planted in a class's support, or of a context that the support is in.

    attribute: its name; attributes that occur together too often to be separated are joined: `snow or white border`
    cost: points of accuracy below the placebo, with the other attributes held constant; the interval is corrected for
        the number of attributes
    tasks, labels: number of tasks and of classes in which it was planted
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
    """Definition of an axis: a task set that stresses something, with its reference and its placebo.

    name: name of the axis, also in the limits of a gate: `fewstab`, `hard-ood`, `hardest`, `random-5-shot`
    axis: what the tasks stress: attributes, contexts, difficulty, classes, queries; `shots` for random tasks; empty for
        other references
    way, shot, query: size of the tasks; 0 if tasks differ in it
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

    @property
    def swaps_background(self) -> bool:
        """Return whether only the background differs from the reference, so that a loss is reliance on it."""
        changed, reference = self.tasks.changed, self.reference
        return changed is not None and reference is not None and changed.swaps_background(reference.changed)

    @property
    def is_background_alone(self) -> bool:
        """Return whether items are shown without their foreground, so that no accuracy is due."""
        return self.tasks.changed is not None and self.tasks.changed.is_background_alone


@dataclass(frozen=True, kw_only=True)
class CardAxis(AxisTasks):
    """Results of the classifier on one task set: alone, or against its reference and its placebo.

    name, axis, way, shot, query, tasks, reference, placebo: as in `AxisTasks`
    estimates: numbers of the classifier on this axis, by quantity and metric: `accuracy`; with a reference also
        `reference_accuracy`, `gap` (the reference minus the task set, in points), `placebo` (the gap of the placebo),
        `excess` (the gap minus that of the placebo) and `skill_lost` (the share of the accuracy above chance that is
        lost, beyond the placebo if there is one)
    by_task: accuracy on each task, in the order of the task set, by metric; rounded to BY_TASK_DIGITS digits
    rank: rank among all classifiers, by `accuracy` and by `skill_lost`, in the card's metric
    conclusion: whether accuracy is lost (+), gained (-) or neither is conclusive (0), after Holm's correction for all
        losses of the comparison
    is_shuffled: whether attributes or contexts were shuffled to estimate the loss by chance, so that a loss may be
        called reliance
    at_most: upper bound of the skill lost, in percent, corrected likewise; None if there is no such bound
    verdict, advice: statements in plain words
    costs: attributes or contexts that conclusively cost accuracy, the costliest first
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
        """Return one of the estimates; None if it is missing."""
        return self.estimates.get(quantity, {}).get(metric)

    def lost(self, metric: str) -> Interval:
        """Return the loss that statements are about, in points: the excess, or without a placebo the gap."""
        return (self.estimates.get("excess") or self.estimates["gap"])[metric]


@dataclass(frozen=True)
class MissingAxis:
    """Axis that was not measured, with the reason."""

    name: str
    reason: str


@dataclass(frozen=True)
class Card:
    """Robustness card of one classifier.

    name: name of the data set
    sources: digests of the catalog and of the features
    encoder, method: the classifier, as in tables; files without their folders
    remedies: what was done against a loss before the classifier was measured; empty if nothing was
    metric: metric of statements and ranks
    level, covers: level and name of the intervals
    verdict: statements in plain words, each supported by an interval
    version: version of Shotproof

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
    remedies: tuple[CardRemedy, ...] = ()
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
        """Return the method and its encoder, as in a sentence."""
        return f"{self.method} on {self.encoder}" if self.encoder else self.method

    @property
    def stresses(self) -> list[CardAxis]:
        """Return the axes that have a reference."""
        return [axis for axis in self.axes if axis.reference is not None]

    @property
    def has_other_references(self) -> bool:
        """Return whether an axis is compared with other than random tasks, so that tables have to name references."""
        return any(axis.reference is not None and axis.reference.sampler != RANDOM for axis in self.axes)

    def to_json(self) -> dict[str, Any]:
        """Return plain values that conform to the JSON Schema of cards; a field without a value is null."""
        return {"kind": KIND, "format": FORMAT, **plain(self, complete=True)}

    @classmethod
    def from_json(cls, content: Any) -> Card:
        """Build a card from the output of `to_json`.

        Raises:
            InputError: if the content is not a card, has another format, or a value has the wrong type.
        """
        if not isinstance(content, Mapping) or content.get("kind") != KIND:
            raise InputError(f'expected a robustness card, with "kind": "{KIND}"')
        if content.get("format") != FORMAT:
            raise InputError(
                f"format: expected {FORMAT}, found {content.get('format')!r}: written by another version of Shotproof"
            )
        values = {key: value for key, value in content.items() if key not in ("kind", "format")}
        card: Card = typed(values, cls, strict=True)
        return card

    @classmethod
    def read(cls, path: str | Path, *, checked: bool = True) -> Card:
        """Read a card from its file, or from the folder of a profile.

        Args:
            path: the file or the folder
            checked: reject a card whose numbers contradict each other

        Raises:
            InputError: if there is no such file, it is not a card, or its numbers contradict each other.
        """
        from shotproof.comparison.card_contradictions import contradictions

        path = Path(path)
        if is_folder(path):
            if not path_exists(path / CARD_FILE):
                raise InputError(f"{path} has no {CARD_FILE}: shotproof profile writes one, shotproof run does not")
            path /= CARD_FILE
        description = f"card {path}"
        content = read_json(path, description)
        with error_prefix(f"{description}: "):
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
        group: accuracies on the set
        loss: loss on the set; None if it has no reference
        tasks_of: function that describes a task set
        label: label of the set; None for that of the group
    """
    design = block.design
    way, shot, query = (size or 0 for size in (design.way, design.shot, design.query))
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
    """Remove the folders of files from the spelling of a method, because they differ between machines.

    Example:
        >>> without_folders("nets/mine.py:Mine")
        'mine.py:Mine'
    """
    return _FOLDERS.sub("", method) if method.startswith("model:") or ".py:" in method else method
