"""Why is a task set hard? What its supports have and its queries lack, against other sets and against chance.

explanation = explain(hard, attributes, against=[random, easy], features=features)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shotproof.analysis.explanation.hardness import Hardness, Ways, hardness
from shotproof.analysis.explanation.mismatch import (
    MISMATCHES,
    Pooling,
    Shares,
    interval_json,
    mismatch_of_sets,
    row_mismatch,
    sides_of,
)
from shotproof.analysis.inputs import Inputs
from shotproof.attributes.attributes import Attributes
from shotproof.core.errors import InputError, did_you_mean
from shotproof.core.records import TasksRecord
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.spelling import write_call
from shotproof.features.features import Features
from shotproof.results.answers import results_on
from shotproof.results.encoder_names import short_encoder_names
from shotproof.results.origin import REFERENCES, Design, design_of
from shotproof.results.results import Results
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

    overall: the mismatch, averaged over all attributes
    difference: the explained set's overall mismatch minus this one's
    left_out: the number of classes of tasks whose support or query the attributes do not know
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
    """The explained set first, then those that it is compared with; attributes with the largest difference first.

    reference: the number of the set that attributes are ordered by the difference from; None: by that from chance
    pooled: whether the mismatch is that of all classes of a task as one
    """

    sets: list[ExplainedSet]
    attributes: list[AttributeMismatch]
    reference: int | None
    level: float
    pooled: bool = False

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
    def encoder_names(self) -> dict[str, str]:
        """What people read in place of each encoder's spelling."""
        return short_encoder_names(one.encoder for given in self.sets for one in given.hardness)

    @property
    def reference_name(self) -> str:
        """The name of the reference, or `chance`."""
        return "chance" if self.reference is None else self.sets[self.reference].name

    def to_json(self) -> dict[str, Any]:
        """As plain values, in points; an interval that cannot be given is null."""
        return {
            "unit": "percent points",
            "of": "pooled" if self.pooled else "class",
            "interval": "sampler",
            "level": self.level,
            "reference": self.reference_name,
            "sets": [_set_json(one) for one in self.sets],
            "attributes": [
                {
                    "attribute": one.attribute,
                    "sets": {given.name: shares.to_json() for given, shares in zip(self.sets, one.sets, strict=True)},
                    "differences": {
                        given.name: interval_json("difference", difference)
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
    mismatch: Pooling = "class",
    level: float = 0.95,
    runtime: Runtime | None = None,
) -> Explanation:
    """The mismatch between support and query, attribute by attribute, in these tasks and in others.

    Differences from sets with the same queries are taken task by task. Intervals cover new tasks from the same items.

    Args:
        tasks: the set to explain
        attributes: the words of the items
        against: sets to compare it with, best random tasks with the same queries
        features: of the items; they give the query loss as well as the accuracy
        results: whose methods' accuracies to take; without them nearest centroid's
        mismatch: `class` by class, or `pooled` over the classes of a task (Hard-Meta-Dataset++, Fig. 5)
        level: of the intervals
        runtime: how it is computed; None is the current one

    Returns:
        The sets, and per attribute its shares and mismatch in each of them, in percent and points.

    Raises:
        InputError: the attributes know nothing of the items of a task.
        Mismatch: sets with the same queries have unequal numbers of tasks.

    Example:
        >>> import shotproof as sp
        >>> world = sp.worlds.ShapesWorld(classes=6, items=40)
        >>> catalog, words = world.catalog(), world.attributes()
        >>> random = sp.sample(catalog, "random", shot=1, tasks=50)
        >>> biased = sp.sample(catalog, "fewstab", shot=1, tasks=50, attributes=words)
        >>> explanation = sp.explain(biased, words, against=[random])
        >>> [one.name for one in explanation.sets]
        ['fewstab', 'random']
    """
    check_level(level)
    check_mismatch(mismatch)
    current = resolve(runtime)
    given = [tasks, *against]
    sides, held = sides_of(given, attributes)
    if not held.words:
        raise InputError("the attributes have no word for any item of these tasks")
    sides = [one.pooled() for one in sides] if mismatch == "pooled" else sides
    mismatches = mismatch_of_sets(sides, held, [one.match == tasks.match for one in given], current)
    explained = mismatches[0]
    names = set_names(given)
    sets = [
        ExplainedSet(
            name,
            one,
            in_set.paired,
            in_set.mismatch.estimate(-1).interval("sampler", level),
            float(in_set.chance[-1]),
            explained.difference(in_set, -1, level) if in_set is not explained else None,
            side.left_out,
            Ways.of(one),
            hardness(one, features, results, current) if features else [],
        )
        for name, one, side, in_set in zip(names, given, sides, mismatches, strict=True)
    ]
    rows = [
        AttributeMismatch(
            word,
            [one.shares(column, level) for one in mismatches],
            [explained.difference(other, column, level) for other in mismatches[1:]],
        )
        for column, word in enumerate(held.words)
    ]
    usual = [number for number, one in enumerate(given) if number and one.record.sampler_name in REFERENCES]
    reference = next(iter(usual), 1) if against else None
    explanation = Explanation(sets, rows, reference, level, mismatch == "pooled")
    rows.sort(key=lambda row: (-explanation.excess(row).mean, row.attribute))
    return explanation


def check_mismatch(mismatch: str) -> None:
    """Refuse what is no kind of mismatch."""
    if mismatch not in MISMATCHES:
        near = did_you_mean(mismatch, MISMATCHES)
        raise InputError(f"mismatch: expected {' or '.join(MISMATCHES)}, found '{mismatch}'{near}")


def set_names(sets: Sequence[TaskSet]) -> list[str]:
    """What each set is called: its own name, or its sampler with the options that tell it from the others."""
    told = [_described(one.record) for one in sets]
    names = []
    for one, (sampler, described) in zip(sets, told, strict=True):
        alike = [other for name, other in told if name == sampler]
        differing = {key: value for key, value in described.items() if any(o.get(key) != value for o in alike)}
        chosen = one.record.name if one.record.name != str(one.record.sampler or "") else ""
        names.append(chosen or write_call(sampler, differing))
    repeated = {name for name in names if names.count(name) > 1}
    return [f"{name} {names[: n + 1].count(name)}" if name in repeated else name for n, name in enumerate(names)]


def _described(record: TasksRecord) -> tuple[str, dict[str, Any]]:
    """The sampler's name, and all that may tell its sets apart."""
    sizes = {name: getattr(record, name) for name in ("split", "way", "shot", "query", "seed")}
    attributes = record.sources.get("attributes")
    whose = {} if attributes is None else {"attributes": attributes.name or attributes.digest[:8]}
    return record.sampler_name, {**record.options, **sizes, **whose}


def _set_json(one: ExplainedSet) -> dict[str, Any]:
    return {
        "name": one.name,
        "digest": one.tasks.digest,
        "tasks": len(one.tasks),
        "paired": one.paired,
        **interval_json("mismatch", one.overall),
        "chance": one.chance,
        **({} if one.difference is None else interval_json("difference", one.difference)),
        "classes_left_out": one.left_out,
        "ways": {str(way): tasks for way, tasks in one.ways.tasks.items()},
        "hardness": [given.to_json() for given in one.hardness],
    }


EXAMPLES = 4


@dataclass(frozen=True)
class MismatchExample:
    """A class of a task; each item with whether the attribute holds of it."""

    attribute: str
    task: int
    label: str
    support: list[tuple[str, bool]]
    query: list[tuple[str, bool]]


def mismatch_examples(explanation: Explanation, attributes: Attributes, count: int = EXAMPLES) -> list[MismatchExample]:
    """One example for each of the first attributes whose mismatch is above the reference's; no class is shown twice."""
    tasks = explanation.sets[0].tasks
    (sides,), held = sides_of([tasks], attributes)
    words = attributes.to_words()
    examples: list[MismatchExample] = []
    used: set[int] = set()
    for one in explanation.attributes[:count]:
        if explanation.excess(one).mean <= 0 or one.attribute not in held.words:
            continue
        distance = row_mismatch(sides, held, held.words.index(one.attribute))
        row = next(int(row) for row in (-distance).argsort(kind="stable") if int(row) not in used)
        used.add(row)
        record = tasks.table.slice(row, 1).to_pylist()[0]
        support, query = (
            [(item, one.attribute in (words[item] or ())) for item in record[side]] for side in ("support", "query")
        )
        examples.append(MismatchExample(one.attribute, record["task"], record["label"], support, query))
    return examples


def explain_hardest(
    inputs: Inputs, *, mismatch: Pooling = "class", level: float = 0.95, runtime: Runtime | None = None
) -> list[tuple[Explanation, Attributes]]:
    """An explanation for each group of matched sets that is not random alone, with the attributes it is by.

    Of replicates, the one with the lowest seed is taken. A group whose items no attributes know is left out.

    Args:
        inputs: the task sets, the attributes, and the results and features that tell how hard each task is
        mismatch, level: as `explain` takes them
        runtime: how it is computed; None is the current one

    Returns:
        One explanation per group, each with its attributes.
    """
    return [
        explain_by_material(hard, others, inputs, mismatch=mismatch, level=level, runtime=runtime)
        for hard, *others in _groups(inputs)
        if inputs.attributes_of(hard) is not None
    ]


def explain_by_material(
    tasks: TaskSet,
    against: Sequence[TaskSet],
    inputs: Inputs,
    *,
    mismatch: Pooling = "class",
    level: float = 0.95,
    runtime: Runtime | None = None,
) -> tuple[Explanation, Attributes]:
    """Explain a set with the attributes that know its items, and the features that it was evaluated on.

    Features without results on them are used where there is one encoder only.

    Args:
        tasks, against: the set to explain, and those that it is compared with
        inputs: where attributes, features and results are looked for
        mismatch, level: as `explain` takes them
        runtime: how it is computed; None is the current one

    Returns:
        The explanation, and the attributes that it is by.

    Raises:
        InputError: no attributes know the items.
    """
    attributes = inputs.attributes_of(tasks)
    if attributes is None:
        raise InputError("no attributes say which words hold of the items of these tasks")
    used = {given.record.features_digest for given in results_on(tasks, inputs.results)}
    evaluated = [one for one in inputs.features if one.digest in used]
    features = next(iter(evaluated or (inputs.features if len(inputs.features) == 1 else [])), None)
    results = [given for given in inputs.results if features and given.record.features_digest == features.digest]
    explanation = explain(
        tasks,
        attributes,
        against=against,
        features=features,
        results=results,
        mismatch=mismatch,
        level=level,
        runtime=runtime,
    )
    return explanation, attributes


def _groups(inputs: Inputs) -> list[list[TaskSet]]:
    """Matched sets together, the hardest first, then the reference; a set that matches none gets that of its design."""
    sets = _without_replicates(inputs.tasks)
    groups: dict[tuple[str | None, str], list[TaskSet]] = {}
    for one in sets:
        groups.setdefault((one.record.source("catalog"), one.match), []).append(one)
    found = []
    for members in groups.values():
        hard = [one for one in members if not _is_reference(one)]
        hard.sort(key=lambda one: _accuracy(one, inputs.results))
        if hard:
            alike = [one for one in sets if _design(one) == _design(hard[0])]
            usual = [one for one in (*members, *alike) if _is_reference(one)][:1]
            found.append([hard[0], *usual, *hard[1:]])
    return found


def _without_replicates(tasks: Sequence[TaskSet]) -> list[TaskSet]:
    """One set for each design, sampler and attributes: the one with the lowest seed."""
    chosen: dict[tuple[Design, str, str | None], TaskSet] = {}
    for one in sorted(tasks, key=lambda one: one.record.seed or 0):
        key = (_design(one), str(one.record.sampler or one.digest), one.record.source("attributes"))
        chosen.setdefault(key, one)
    return [one for one in tasks if any(one is kept for kept in chosen.values())]


def _accuracy(tasks: TaskSet, results: Sequence[Results]) -> float:
    """The mean accuracy of all results on these tasks, in percent."""
    own = results_on(tasks, results)
    values = [given.counts(method).accuracy_by_task().mean() for given in own for method in given.methods]
    return float(sum(values) / len(values)) if values else 100.0


def _is_reference(tasks: TaskSet) -> bool:
    return tasks.record.sampler_name in REFERENCES


def _design(tasks: TaskSet) -> Design:
    return design_of(tasks.record, tasks.record.way, tasks.record.query)
