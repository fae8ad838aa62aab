"""Queries that fooled a classifier: it named the class whose support had what the query has, a context or an attribute.

They illustrate a loss that the intervals support: where nobody leans on anything conclusively, there are none.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from shotproof.analysis.inputs import Inputs
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.verdicts import Verdict, verdicts
from shotproof.core.errors import InputError
from shotproof.evaluation.evaluate import predict_queries
from shotproof.results.answers import results_on
from shotproof.results.evaluated import Classifier
from shotproof.results.origin import Design, Origin
from shotproof.stats.costs import AttributeCost
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
    """A classifier that leans on something, and what fooled it in some tasks of a set.

    column: the catalog's column with the contexts; None where it is attributes that it leans on
    tasks: how many were searched; wrong: the wrong answers in them; by_cue: those that went by a cue
    by_chance: how many would, on average, if each named one of the other classes of its task at random
    """

    classifier: Classifier
    design: Design
    label: str
    column: str | None
    examples: list[FooledQuery]
    tasks: int
    wrong: int
    by_cue: int
    by_chance: float
    catalog: Catalog

    @property
    def cue(self) -> str:
        """What it leans on, e.g. `background`, or `attribute`."""
        return self.column.replace("_", " ") if self.column else "attribute"


def find_fooled(comparison: Comparison, inputs: Inputs) -> Fooled | None:
    """Find what fooled the classifier in focus where most is lost to contexts or attributes; None if nothing is.

    Args:
        comparison: of the results, with placebos
        inputs: with the task sets, the catalogs and the features; what is missing leaves out what needs it

    Returns:
        Examples of what costs most first, else in the order of the task set; no two of one class or of one task.
    """
    leaning = [
        one
        for one in verdicts(comparison)
        if one.loss.axis in ("contexts", "attributes") and one.loss.excess is not None and one.losing
    ]
    for one in sorted(leaning, key=lambda verdict: verdict.share_lost, reverse=True):
        assert one.focus is not None  # somebody loses
        costs = comparison.costs.get((one.block.design, one.loss.label), {}).get(one.focus)
        try:
            found = _fooled(one, one.focus, inputs, costs.conclusive if costs else [])
        except InputError:  # something is missing, or cannot be made anew
            continue
        if found.examples:
            return found
    return None


def _fooled(verdict: Verdict, classifier: Classifier, inputs: Inputs, costs: Sequence[AttributeCost]) -> Fooled:
    design = verdict.block.design
    tasks = inputs.task_set(verdict.block.group(verdict.loss.label).digests[0], design.catalog)
    catalog = inputs.catalog(tasks.record.source("catalog"))
    searched = tasks.first(SEARCHED_TASKS)
    wrong = list(_wrong(searched, inputs.cues_of(tasks), _called(tasks, searched, classifier, inputs)))
    fooled = [one for one, _ in wrong if one is not None]
    return Fooled(
        classifier,
        design,
        verdict.loss.label,
        tasks.record.context_column,
        _spread(sorted(fooled, key=partial(_order, costs)))[:EXAMPLES],
        len(searched),
        len(wrong),
        len(fooled),
        math.fsum(chance for _, chance in wrong),
        catalog,
    )


def _order(costs: Sequence[AttributeCost], query: FooledQuery) -> tuple[int, bool]:
    """Put the class that suffers most from the costliest cue first; of equal ones, the order stays."""
    for place, cost in enumerate(costs):
        if query.own_cue in cost.attributes:
            return place, query.label != cost.worst_label
    return len(costs), False


def _spread(fooled: Sequence[FooledQuery]) -> list[FooledQuery]:
    """The first of each class and task."""
    chosen: list[FooledQuery] = []
    for one in fooled:
        if all(one.label != other.label and one.task != other.task for other in chosen):
            chosen.append(one)
    return chosen


def _called(tasks: TaskSet, searched: TaskSet, classifier: Classifier, inputs: Inputs) -> list[list[int]]:
    """The slots that the classifier's results are counts of."""
    for given in results_on(tasks, inputs.results):
        digest = given.record.features_digest
        if Origin.of(given).encoder == classifier.encoder and classifier.method in given.methods and digest:
            features, method = inputs.features_of(classifier.encoder, digest), inputs.method(classifier.method)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # said once already, when the method was evaluated
                return predict_queries(searched, features, method, seed=given.record.seed or 0)
    raise InputError(f"{classifier} has no results that are on features")


def _wrong(
    tasks: TaskSet, cues: Mapping[str, Set[str]], called: list[list[int]]
) -> Iterator[tuple[FooledQuery | None, float]]:
    """Yield for each wrong answer the query, or None if the class that was named does not have its cue.

    Beside it is the share of the other classes of the task that have it.
    """
    rows = tasks.table.select(["task", "slot", "label", "attribute", "support", "query"]).to_pylist()
    by_task: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_task.setdefault(row["task"], []).append(row)
    for own, slots in zip(rows, called, strict=True):
        others = {row["slot"]: row for row in by_task[own["task"]] if row is not own}
        for item, slot in zip(own["query"], slots, strict=True):
            if slot == own["slot"]:
                continue
            has = cues.get(item, ()) if own["attribute"] is not None else ()
            cued = [place for place, row in others.items() if row["attribute"] in has]
            yield _fooled_query(item, own, others[slot]) if slot in cued else None, len(cued) / len(others)


def _fooled_query(item: str, own: Mapping[str, Any], other: Mapping[str, Any]) -> FooledQuery:
    return FooledQuery(
        own["task"],
        item,
        own["label"],
        other["label"],
        own["attribute"],
        other["attribute"],
        own["support"],
        other["support"],
    )
