"""Queries that fooled a classifier: it predicted the class whose support shares the query's context or attribute.

They illustrate a loss that the intervals support: if no classifier conclusively relies on anything, there are none.
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
SEARCHED_TASKS = 100  # from the start of the task set


@dataclass(frozen=True)
class FooledQuery:
    """Query of one class that was classified as another.

    own_cue, called_cue: context or attribute of the true and of the predicted class's support; the query has the latter
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
    """Classifier that relies on a cue, and queries that fooled it in some tasks of a set.

    column: catalog column of the contexts; None if the cue is an attribute
    tasks: number of tasks searched; wrong: wrong answers in them; by_cue: wrong answers that follow a cue
    by_chance: expected number of these if each wrong answer were a random other class of its task
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
        """Return the kind of cue, e.g. `background`, or `attribute`."""
        return self.column.replace("_", " ") if self.column else "attribute"


def find_fooled(comparison: Comparison, inputs: Inputs) -> Fooled | None:
    """Find queries that fooled the classifier in focus on the set with the largest loss to contexts or attributes.

    Args:
        comparison: comparison of the results, with placebos
        inputs: task sets, catalogs and features; sets that lack any of these are skipped

    Returns:
        Examples, the costliest cue first, then in the order of the task set; no two share a class or a task. None if no
        loss is conclusive.
    """
    losses = [
        verdict
        for verdict in verdicts(comparison)
        if verdict.loss.axis in ("contexts", "attributes") and verdict.loss.excess is not None and verdict.losing
    ]
    for verdict in sorted(losses, key=lambda verdict: verdict.share_lost, reverse=True):
        assert verdict.focus is not None  # some classifier loses
        costs = comparison.costs.get((verdict.block.design, verdict.loss.label), {}).get(verdict.focus)
        try:
            fooled = _find_in_set(verdict, verdict.focus, inputs, costs.conclusive if costs else [])
        except InputError:  # an input is missing or cannot be rebuilt
            continue
        if fooled.examples:
            return fooled
    return None


def _find_in_set(verdict: Verdict, classifier: Classifier, inputs: Inputs, costs: Sequence[AttributeCost]) -> Fooled:
    """Collect the wrong answers of a classifier on the first tasks of a set."""
    design = verdict.block.design
    tasks = inputs.task_set(verdict.block.group(verdict.loss.label).digests[0], design.catalog)
    catalog = inputs.catalog(tasks.record.source("catalog"))
    searched = tasks.first(SEARCHED_TASKS)
    wrong_answers = list(
        _wrong_answers(searched, inputs.cues_of(tasks), _predict_slots(tasks, searched, classifier, inputs))
    )
    fooled_queries = [query for query, _ in wrong_answers if query is not None]
    return Fooled(
        classifier,
        design,
        verdict.loss.label,
        tasks.record.context_column,
        _select_distinct(sorted(fooled_queries, key=partial(_sort_key, costs)))[:EXAMPLES],
        len(searched),
        len(wrong_answers),
        len(fooled_queries),
        math.fsum(chance for _, chance in wrong_answers),
        catalog,
    )


def _sort_key(costs: Sequence[AttributeCost], query: FooledQuery) -> tuple[int, bool]:
    """Return a key that puts the class hurt most by the costliest cue first; ties keep their order."""
    for index, cost in enumerate(costs):
        if query.own_cue in cost.attributes:
            return index, query.label != cost.worst_label
    return len(costs), False


def _select_distinct(fooled: Sequence[FooledQuery]) -> list[FooledQuery]:
    """Keep the first query of each class and task."""
    selected: list[FooledQuery] = []
    for query in fooled:
        if all(query.label != other.label and query.task != other.task for other in selected):
            selected.append(query)
    return selected


def _predict_slots(tasks: TaskSet, searched: TaskSet, classifier: Classifier, inputs: Inputs) -> list[list[int]]:
    """Predict the slots of the searched queries as in the classifier's results."""
    for results in results_on(tasks, inputs.results):
        digest = results.record.features_digest
        if Origin.of(results).encoder == classifier.encoder and classifier.method in results.methods and digest:
            features, method = inputs.features_of(classifier.encoder, digest), inputs.method(classifier.method)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # already shown when the method was evaluated
                return predict_queries(searched, features, method, seed=results.record.seed or 0)
    raise InputError(f"no results of {classifier} were computed on features")


def _wrong_answers(
    tasks: TaskSet, cues: Mapping[str, Set[str]], predicted_slots: list[list[int]]
) -> Iterator[tuple[FooledQuery | None, float]]:
    """Yield each wrong answer: the query, or None if the predicted class does not share its cue.

    With it comes the share of the task's other classes that share the cue.
    """
    rows = tasks.table.select(["task", "slot", "label", "attribute", "support", "query"]).to_pylist()
    by_task: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_task.setdefault(row["task"], []).append(row)
    for true_row, slots in zip(rows, predicted_slots, strict=True):
        other_rows = {row["slot"]: row for row in by_task[true_row["task"]] if row is not true_row}
        for item, slot in zip(true_row["query"], slots, strict=True):
            if slot == true_row["slot"]:
                continue
            query_cues = cues.get(item, ()) if true_row["attribute"] is not None else ()
            cued_slots = [other_slot for other_slot, row in other_rows.items() if row["attribute"] in query_cues]
            yield (
                _fooled_query(item, true_row, other_rows[slot]) if slot in cued_slots else None,
                len(cued_slots) / len(other_rows),
            )


def _fooled_query(item: str, true_row: Mapping[str, Any], predicted_row: Mapping[str, Any]) -> FooledQuery:
    """Build the record of a fooled query."""
    return FooledQuery(
        true_row["task"],
        item,
        true_row["label"],
        predicted_row["label"],
        true_row["attribute"],
        predicted_row["attribute"],
        true_row["support"],
        predicted_row["support"],
    )
