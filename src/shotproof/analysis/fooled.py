"""Queries that fooled a classifier: it named the class whose support had what the query has, a context or an attribute.

They illustrate a loss that the intervals support: where nobody leans on anything conclusively, there are none.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from shotproof.analysis.reevaluation.material import Material, with_digest
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.contexts import contexts_of
from shotproof.core.errors import InputError
from shotproof.evaluation.answers import results_on
from shotproof.evaluation.evaluate import predict_queries
from shotproof.evaluation.evaluated import Classifier
from shotproof.evaluation.origin import Design, Origin
from shotproof.stats.comparison import Comparison
from shotproof.stats.verdicts import Verdict, verdicts
from shotproof.tasks.taskset import TaskSet

EXAMPLES = 3
SEARCHED_TASKS = 100  # at the beginning of the task set


@dataclass(frozen=True)
class FooledQuery:
    """A query of one class that was called another.

    own_cue, called_cue: the context, or the attribute, of either support; the query has that of `called`
    """

    task: int
    item: str
    label: str
    called: str
    own_cue: str
    called_cue: str
    own_support: list[str]
    called_support: list[str]


@dataclass(frozen=True)
class Fooled:
    """The classifier that leans most on something, and what fooled it in some tasks of a set.

    column: the catalog's column with the contexts; None where it is attributes that it leans on
    tasks: how many were searched; wrong: the wrong answers in them; by_cue: those that went by a cue
    """

    classifier: Classifier
    design: Design
    label: str
    column: str | None
    examples: list[FooledQuery]
    tasks: int
    wrong: int
    by_cue: int
    catalog: Catalog

    @property
    def cue(self) -> str:
        """What it leans on, e.g. `background`, or `attribute`."""
        return self.column.replace("_", " ") if self.column else "attribute"


def find_fooled(comparison: Comparison, material: Material) -> Fooled | None:
    """What fooled the classifier that leans most on contexts or attributes; None where none conclusively does.

    Args:
        comparison: of the results, with placebos
        material: with the task sets, the catalogs and the features; what is missing leaves out what needs it

    Returns:
        Examples in the order of the task set, no two of one class or of one task.
    """
    leaning = [
        one
        for one in verdicts(comparison)
        if one.loss.axis in ("contexts", "attributes") and one.loss.excess is not None and one.losing
    ]
    for one in sorted(leaning, key=_most_lost, reverse=True):
        try:
            found = _fooled(one, material)
        except InputError:  # something is missing, or cannot be made anew
            continue
        if found.examples:
            return found
    return None


def _most_lost(one: Verdict) -> float:
    """The largest share of skill that is lost."""
    row = one.loss.skill.row(one.losing[0])
    assert row is not None
    return row.intervals[one.metric][one.covers].mean


def _fooled(verdict: Verdict, material: Material) -> Fooled:
    classifier, design = verdict.losing[0], verdict.block.design
    tasks = material.task_set(verdict.block.group(verdict.loss.label).digests[0], design.catalog)
    catalog = material.catalog(tasks.record.source("catalog"))
    searched = tasks.first(SEARCHED_TASKS)
    wrong = list(_wrong(searched, _cues(tasks, catalog, material), _called(tasks, searched, classifier, material)))
    fooled = [one for one in wrong if one is not None]
    return Fooled(
        classifier,
        design,
        verdict.loss.label,
        tasks.record.context_column,
        _spread(fooled)[:EXAMPLES],
        len(searched),
        len(wrong),
        len(fooled),
        catalog,
    )


def _spread(fooled: Sequence[FooledQuery]) -> list[FooledQuery]:
    """The first of each class and task."""
    chosen: list[FooledQuery] = []
    for one in fooled:
        if all(one.label != other.label and one.task != other.task for other in chosen):
            chosen.append(one)
    return chosen


def _called(tasks: TaskSet, searched: TaskSet, classifier: Classifier, material: Material) -> list[list[int]]:
    """The slots that the classifier's results are counts of."""
    for given in results_on(tasks, material.results):
        digest = given.record.features_digest
        if Origin.of(given).encoder == classifier.encoder and classifier.method in given.methods and digest:
            features, method = material.features_of(classifier.encoder, digest), material.method(classifier.method)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # said once already, when the method was evaluated
                return predict_queries(searched, features, method, seed=given.record.seed or 0)
    raise InputError(f"{classifier} has no results that are on features")


def _cues(tasks: TaskSet, catalog: Catalog, material: Material) -> Mapping[str, Set[str]]:
    """What each item has: its context, or its attributes; an item may have neither."""
    column = tasks.record.context_column
    if column is None:
        words = with_digest(
            material.attributes, tasks.record.source("attributes"), "the tasks were drawn by attributes"
        )
        return {item: set(found or ()) for item, found in words.to_words().items()}
    contexts = contexts_of(catalog, column)
    return {item: {context} for item, context in zip(catalog.items, contexts, strict=True) if context is not None}


def _wrong(tasks: TaskSet, cues: Mapping[str, Set[str]], called: list[list[int]]) -> Iterator[FooledQuery | None]:
    """One for each wrong answer; None where the class that was named did not have the query's cue."""
    rows = tasks.table.select(["task", "slot", "label", "attribute", "support", "query"]).to_pylist()
    for place, (own, slots) in enumerate(zip(rows, called, strict=True)):
        for item, slot in zip(own["query"], slots, strict=True):
            if slot == own["slot"]:
                continue
            other = rows[place - own["slot"] + slot]
            if own["attribute"] is None or other["attribute"] not in cues.get(item, ()):
                yield None
            else:
                yield FooledQuery(
                    own["task"],
                    item,
                    own["label"],
                    other["label"],
                    own["attribute"],
                    other["attribute"],
                    own["support"],
                    other["support"],
                )
