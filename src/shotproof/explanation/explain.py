"""Why is a task set hard? What its supports have and its queries lack, against other sets and against chance.

explanation = explain(hard, attributes, against=[random, easy], features=features)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shotproof.attributes.attributes import Attributes
from shotproof.errors import InputError
from shotproof.evaluation.results import Results
from shotproof.evaluation.sources import REFERENCES, UNKNOWN, lookup
from shotproof.explanation.hardness import Hardness, Ways, hardness
from shotproof.explanation.measured import Shares, measure, percent_of
from shotproof.explanation.mismatch import sides_of
from shotproof.features.features import Features
from shotproof.stats.intervals import Interval, check_level
from shotproof.tasks.taskset import TaskSet


@dataclass(frozen=True)
class AttributeMismatch:
    """One attribute in every set, and how much larger its mismatch is in the first than in each of the others."""

    attribute: str
    sets: list[Shares]
    differences: list[Interval]


@dataclass(frozen=True)
class ExplainedSet:
    """A task set under a name that tells it apart; `paired`: its tasks are those of the explained set one by one.

    overall: the mismatch in the mean over all attributes; difference: the explained set's minus this one's
    left_out: classes of tasks of whose support or query nothing is known
    """

    name: str
    tasks: TaskSet
    paired: bool
    overall: Interval
    chance: float
    difference: Interval | None
    left_out: int
    ways: Ways
    hardness: list[Hardness]


@dataclass(frozen=True)
class Explanation:
    """The explained set first, then those that it is held against; attributes with the largest difference first.

    reference: the number of the set that attributes are ordered by the difference from; None: by that from chance
    """

    sets: list[ExplainedSet]
    attributes: list[AttributeMismatch]
    reference: int | None
    level: float

    def excess(self, one: AttributeMismatch) -> Interval:
        """How much larger an attribute's mismatch is than in the reference."""
        return one.sets[0].beyond_chance if self.reference is None else one.differences[self.reference - 1]

    def hardness(self) -> list[list[tuple[str, Hardness]]]:
        """For each classifier on the explained set: it on each set by name and, of several, on all together."""
        by_set = {given.name: {(one.encoder, one.method): one for one in given.hardness} for given in self.sets}
        found = []
        for key in by_set[self.sets[0].name]:
            each = [(name, given[key]) for name, given in by_set.items() if key in given]
            joined = [("all", Hardness.joined([one for _, one in each]))] if len(each) > 1 else []
            found.append(each + joined)
        return found

    @property
    def reference_name(self) -> str:
        """The name of the reference, or `chance`."""
        return "chance" if self.reference is None else self.sets[self.reference].name

    def to_json(self) -> dict[str, Any]:
        """As plain values, in percent points; an interval that cannot be given is null."""
        return {
            "unit": "percent points",
            "interval": "sampler",
            "level": self.level,
            "reference": self.reference_name,
            "sets": [_set_json(one) for one in self.sets],
            "attributes": [
                {
                    "attribute": one.attribute,
                    "sets": {given.name: shares.to_json() for given, shares in zip(self.sets, one.sets, strict=True)},
                    "differences": {
                        given.name: percent_of("difference", difference)
                        for given, difference in zip(self.sets[1:], one.differences, strict=True)
                    },
                }
                for one in self.attributes
            ],
        }


def explain(
    tasks: TaskSet,
    attributes: Attributes,
    *,
    against: Sequence[TaskSet] = (),
    features: Features | None = None,
    results: Sequence[Results] = (),
    level: float = 0.95,
) -> Explanation:
    """The mismatch between support and query, attribute by attribute, in these tasks and in others.

    Differences from sets with the same queries are taken task by task. `features` give the query loss beside the
    accuracy: of nearest centroid, or of the methods of `results`. Intervals cover new tasks from the same items.
    """
    check_level(level)
    given = [tasks, *against]
    sides, held = sides_of(given, attributes)
    if not held.words:
        raise InputError("the attributes have no word for any item of these tasks")
    measured = measure(sides, held, [one.match == tasks.match for one in given])
    names = set_names(given)
    sets = [
        ExplainedSet(
            name,
            one,
            in_set.paired,
            in_set.mismatch.estimate(-1).interval("sampler", level),
            float(in_set.chance[-1]),
            measured[0].difference(in_set, -1, level) if in_set is not measured[0] else None,
            side.left_out,
            Ways.of(one),
            hardness(one, features, results) if features else [],
        )
        for name, one, side, in_set in zip(names, given, sides, measured, strict=True)
    ]
    rows = [
        AttributeMismatch(
            word,
            [one.shares(column, level) for one in measured],
            [measured[0].difference(other, column, level) for other in measured[1:]],
        )
        for column, word in enumerate(held.words)
    ]
    usual = [number for number, one in enumerate(given) if number and _sampler(one) in REFERENCES]
    reference = next(iter(usual), 1) if against else None
    explanation = Explanation(sets, rows, reference, level)
    rows.sort(key=lambda row: (-explanation.excess(row).mean, row.attribute))
    return explanation


def set_names(sets: Sequence[TaskSet]) -> list[str]:
    """The sampler of each set; where that is not enough, with the options in which they differ, or with a number."""
    options = [dict(lookup(one.meta, "made_by") or {}) for one in sets]
    names = []
    for made_by in options:
        alike = [other for other in options if other.get("sampler") == made_by.get("sampler")]
        differing = [key for key in made_by if any(other.get(key) != made_by[key] for other in alike)]
        listed = ", ".join(f"{key}={made_by[key]}" for key in differing)
        names.append(f"{made_by.get('sampler', UNKNOWN)}{f' ({listed})' if listed else ''}")
    repeated = {name for name in names if names.count(name) > 1}
    return [f"{name} {names[: n + 1].count(name)}" if name in repeated else name for n, name in enumerate(names)]


def _set_json(one: ExplainedSet) -> dict[str, Any]:
    return {
        "name": one.name,
        "digest": one.tasks.digest,
        "tasks": len(one.tasks),
        "paired": one.paired,
        **percent_of("mismatch", one.overall),
        "chance": 100 * one.chance,
        **({} if one.difference is None else percent_of("difference", one.difference)),
        "classes_left_out": one.left_out,
        "ways": {str(way): tasks for way, tasks in one.ways.tasks.items()},
        "hardness": [given.to_json() for given in one.hardness],
    }


def _sampler(tasks: TaskSet) -> str:
    return str(lookup(tasks.meta, "made_by", "sampler") or UNKNOWN)
