"""Explanation of why a task set is hard: how its supports and queries differ, compared with other sets and with chance.

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
    """Shares of one attribute in every set, and how much its mismatch in the first set exceeds that in the others."""

    attribute: str
    sets: list[Shares]
    differences: list[Interval]


@dataclass(frozen=True)
class ExplainedSet:
    """Task set under a unique name; `paired`: its tasks correspond to those of the explained set one by one.

    overall: mismatch averaged over all attributes
    difference: overall mismatch of the explained set minus that of this one
    left_out: number of classes, over all tasks, whose support or query the attributes do not cover
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
    """Explained set first, then the sets it is compared with; attributes with the largest difference first.

    reference: index of the set whose difference orders the attributes; None orders them by the difference from chance
    pooled: whether the mismatch pools all classes of a task
    """

    sets: list[ExplainedSet]
    attributes: list[AttributeMismatch]
    reference: int | None
    level: float
    pooled: bool = False

    def excess(self, attribute: AttributeMismatch) -> Interval:
        """Return how much an attribute's mismatch exceeds that in the reference."""
        return attribute.sets[0].beyond_chance if self.reference is None else attribute.differences[self.reference - 1]

    def hardness(self) -> list[list[tuple[str, Hardness]]]:
        """Return each classifier's hardness on every set by name and, if there are several, on all together."""
        by_set = {
            explained_set.name: {(hardness.encoder, hardness.method): hardness for hardness in explained_set.hardness}
            for explained_set in self.sets
        }
        rows = []
        for key in by_set[self.sets[0].name]:
            by_name = [(name, by_classifier[key]) for name, by_classifier in by_set.items() if key in by_classifier]
            joined = [("all", Hardness.joined([hardness for _, hardness in by_name]))] if len(by_name) > 1 else []
            rows.append(by_name + joined)
        return rows

    @property
    def encoder_names(self) -> dict[str, str]:
        """Return the short name of each encoder."""
        return short_encoder_names(
            hardness.encoder for explained_set in self.sets for hardness in explained_set.hardness
        )

    @property
    def reference_name(self) -> str:
        """Return the name of the reference, or `chance`."""
        return "chance" if self.reference is None else self.sets[self.reference].name

    def to_json(self) -> dict[str, Any]:
        """Convert to plain values, in points; an unavailable interval is null."""
        return {
            "unit": "percent points",
            "of": "pooled" if self.pooled else "class",
            "interval": "sampler",
            "level": self.level,
            "reference": self.reference_name,
            "sets": [_set_json(explained_set) for explained_set in self.sets],
            "attributes": [
                {
                    "attribute": attribute.attribute,
                    "sets": {
                        explained_set.name: shares.to_json()
                        for explained_set, shares in zip(self.sets, attribute.sets, strict=True)
                    },
                    "differences": {
                        explained_set.name: interval_json("difference", difference)
                        for explained_set, difference in zip(self.sets[1:], attribute.differences, strict=True)
                    },
                }
                for attribute in self.attributes
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
    """Compute the mismatch between support and query, attribute by attribute, in these tasks and in others.

    Differences from sets with the same queries are computed task by task. Intervals cover new tasks from the same
    items.

    Args:
        tasks: the set to explain
        attributes: attributes of the items
        against: sets to compare with, ideally random tasks with the same queries
        features: features of the items, for the query loss and the accuracy
        results: results whose methods provide the accuracy; by default that of nearest centroid
        mismatch: `class` by class, or `pooled` over the classes of a task (Hard-Meta-Dataset++, Fig. 5)
        level: confidence level of the intervals
        runtime: runtime for the computation; None means the current one

    Returns:
        The sets, and for each attribute its shares and mismatch in each of them, in percent and points.

    Raises:
        InputError: the attributes do not cover the items of a task.
        Mismatch: sets with the same queries have different numbers of tasks.

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
    task_sets = [tasks, *against]
    sides, item_words = sides_of(task_sets, attributes)
    if not item_words.words:
        raise InputError("the attributes have no words for the items of these tasks")
    sides = [side.pooled() for side in sides] if mismatch == "pooled" else sides
    mismatches = mismatch_of_sets(sides, item_words, [task_set.match == tasks.match for task_set in task_sets], current)
    explained = mismatches[0]
    names = set_names(task_sets)
    sets = [
        ExplainedSet(
            name,
            task_set,
            set_mismatch.paired,
            set_mismatch.mismatch.estimate(-1).interval("sampler", level),
            float(set_mismatch.chance[-1]),
            explained.difference(set_mismatch, -1, level) if set_mismatch is not explained else None,
            side.left_out,
            Ways.of(task_set),
            hardness(task_set, features, results, current) if features else [],
        )
        for name, task_set, side, set_mismatch in zip(names, task_sets, sides, mismatches, strict=True)
    ]
    rows = [
        AttributeMismatch(
            word,
            [set_mismatch.shares(column, level) for set_mismatch in mismatches],
            [explained.difference(other_mismatch, column, level) for other_mismatch in mismatches[1:]],
        )
        for column, word in enumerate(item_words.words)
    ]
    reference_indices = [
        index for index, task_set in enumerate(task_sets) if index and task_set.record.sampler_name in REFERENCES
    ]
    reference = next(iter(reference_indices), 1) if against else None
    explanation = Explanation(sets, rows, reference, level, mismatch == "pooled")
    rows.sort(key=lambda row: (-explanation.excess(row).mean, row.attribute))
    return explanation


def check_mismatch(mismatch: str) -> None:
    """Raise InputError if the kind of mismatch is unknown."""
    if mismatch not in MISMATCHES:
        hint = did_you_mean(mismatch, MISMATCHES)
        raise InputError(f"mismatch: expected {' or '.join(MISMATCHES)}, found '{mismatch}'{hint}")


def set_names(sets: Sequence[TaskSet]) -> list[str]:
    """Name each set: its own name, or its sampler with the options that distinguish it from the others."""
    descriptions = [_describe(task_set.record) for task_set in sets]
    names = []
    for task_set, (sampler, options) in zip(sets, descriptions, strict=True):
        same_sampler = [other_options for name, other_options in descriptions if name == sampler]
        differing = {
            key: value for key, value in options.items() if any(other.get(key) != value for other in same_sampler)
        }
        custom_name = task_set.record.name if task_set.record.name != str(task_set.record.sampler or "") else ""
        names.append(custom_name or write_call(sampler, differing))
    repeated_names = {name for name in names if names.count(name) > 1}
    return [
        f"{name} {names[: index + 1].count(name)}" if name in repeated_names else name
        for index, name in enumerate(names)
    ]


def _describe(record: TasksRecord) -> tuple[str, dict[str, Any]]:
    """Return the sampler's name and all options that may distinguish its sets."""
    sizes = {name: getattr(record, name) for name in ("split", "way", "shot", "query", "seed")}
    attributes = record.sources.get("attributes")
    attribute_option = {} if attributes is None else {"attributes": attributes.name or attributes.digest[:8]}
    return record.sampler_name, {**record.options, **sizes, **attribute_option}


def _set_json(explained_set: ExplainedSet) -> dict[str, Any]:
    """Convert a set to plain values."""
    return {
        "name": explained_set.name,
        "digest": explained_set.tasks.digest,
        "tasks": len(explained_set.tasks),
        "paired": explained_set.paired,
        **interval_json("mismatch", explained_set.overall),
        "chance": explained_set.chance,
        **({} if explained_set.difference is None else interval_json("difference", explained_set.difference)),
        "classes_left_out": explained_set.left_out,
        "ways": {str(way): tasks for way, tasks in explained_set.ways.tasks.items()},
        "hardness": [hardness.to_json() for hardness in explained_set.hardness],
    }


EXAMPLES = 4


@dataclass(frozen=True)
class MismatchExample:
    """Class of a task; each item is paired with whether the attribute holds for it."""

    attribute: str
    task: int
    label: str
    support: list[tuple[str, bool]]
    query: list[tuple[str, bool]]


def mismatch_examples(explanation: Explanation, attributes: Attributes, count: int = EXAMPLES) -> list[MismatchExample]:
    """Return one example for each leading attribute with a mismatch above the reference's; no class is shown twice."""
    tasks = explanation.sets[0].tasks
    (sides,), item_words = sides_of([tasks], attributes)
    words = attributes.to_words()
    examples: list[MismatchExample] = []
    used_rows: set[int] = set()
    for attribute in explanation.attributes[:count]:
        if explanation.excess(attribute).mean <= 0 or attribute.attribute not in item_words.words:
            continue
        mismatch = row_mismatch(sides, item_words, item_words.words.index(attribute.attribute))
        row = next(int(row) for row in (-mismatch).argsort(kind="stable") if int(row) not in used_rows)
        used_rows.add(row)
        record = tasks.table.slice(row, 1).to_pylist()[0]
        support, query = (
            [(item, attribute.attribute in (words[item] or ())) for item in record[side]]
            for side in ("support", "query")
        )
        examples.append(MismatchExample(attribute.attribute, record["task"], record["label"], support, query))
    return examples


def explain_hardest(
    inputs: Inputs, *, mismatch: Pooling = "class", level: float = 0.95, runtime: Runtime | None = None
) -> list[tuple[Explanation, Attributes]]:
    """Explain each group of matched sets that has more than reference tasks, with the attributes used.

    For replicates, the set with the lowest seed is used. Groups whose items no attributes cover are skipped.

    Args:
        inputs: task sets and attributes, with the results and features that show how hard each task is
        mismatch, level: as in `explain`
        runtime: runtime for the computation; None means the current one

    Returns:
        One explanation per group, each with its attributes.
    """
    return [
        explain_from_inputs(hard, others, inputs, mismatch=mismatch, level=level, runtime=runtime)
        for hard, *others in _matched_groups(inputs)
        if inputs.attributes_of(hard) is not None
    ]


def explain_from_inputs(
    tasks: TaskSet,
    against: Sequence[TaskSet],
    inputs: Inputs,
    *,
    mismatch: Pooling = "class",
    level: float = 0.95,
    runtime: Runtime | None = None,
) -> tuple[Explanation, Attributes]:
    """Explain a set with the attributes that cover its items and the features it was evaluated on.

    Features without results are used if there is only one encoder.

    Args:
        tasks, against: the set to explain, and the sets to compare it with
        inputs: attributes, features and results to choose from
        mismatch, level: as in `explain`
        runtime: runtime for the computation; None means the current one

    Returns:
        The explanation, and the attributes used.

    Raises:
        InputError: no attributes cover the items.
    """
    attributes = inputs.attributes_of(tasks)
    if attributes is None:
        raise InputError("no attributes cover the items of these tasks")
    digests = {task_results.record.features_digest for task_results in results_on(tasks, inputs.results)}
    evaluated = [candidate for candidate in inputs.features if candidate.digest in digests]
    features = next(iter(evaluated or (inputs.features if len(inputs.features) == 1 else [])), None)
    results = [
        candidate for candidate in inputs.results if features and candidate.record.features_digest == features.digest
    ]
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


def _matched_groups(inputs: Inputs) -> list[list[TaskSet]]:
    """Group matched sets: the hardest first, then the reference, then the others.

    A group without a reference gets that of its design. Sets with changed items are left out: they have the items of
    another set, and attributes describe these as they were before the change.
    """
    sets = [task_set for task_set in _without_replicates(inputs.tasks) if not task_set.is_changed]
    groups: dict[tuple[str | None, str], list[TaskSet]] = {}
    for task_set in sets:
        groups.setdefault((task_set.record.source("catalog"), task_set.match), []).append(task_set)
    explained_groups = []
    for members in groups.values():
        hard = [task_set for task_set in members if not _is_reference(task_set)]
        hard.sort(key=lambda task_set: _accuracy(task_set, inputs.results))
        if hard:
            same_design = [task_set for task_set in sets if _design(task_set) == _design(hard[0])]
            reference = [task_set for task_set in (*members, *same_design) if _is_reference(task_set)][:1]
            explained_groups.append([hard[0], *reference, *hard[1:]])
    return explained_groups


def _without_replicates(tasks: Sequence[TaskSet]) -> list[TaskSet]:
    """Keep one set for each design, sampler and attributes: the one with the lowest seed."""
    selected: dict[tuple[Design, str, str | None], TaskSet] = {}
    for task_set in sorted(tasks, key=lambda task_set: task_set.record.seed or 0):
        key = (_design(task_set), str(task_set.record.sampler or task_set.digest), task_set.record.source("attributes"))
        selected.setdefault(key, task_set)
    return [task_set for task_set in tasks if any(task_set is selected_set for selected_set in selected.values())]


def _accuracy(tasks: TaskSet, results: Sequence[Results]) -> float:
    """Compute the mean accuracy of all results on these tasks, in percent; 100 without results."""
    task_results = results_on(tasks, results)
    values = [
        set_results.counts(method).accuracy_by_task().mean()
        for set_results in task_results
        for method in set_results.methods
    ]
    return float(sum(values) / len(values)) if values else 100.0


def _is_reference(tasks: TaskSet) -> bool:
    """Return whether the tasks come from a reference sampler."""
    return tasks.record.sampler_name in REFERENCES


def _design(tasks: TaskSet) -> Design:
    """Return the design of a task set."""
    return design_of(tasks.record, tasks.record.way, tasks.record.query)
