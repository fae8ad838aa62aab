"""Costs of planted attributes and contexts per classifier, estimated from task sets and their placebos."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from shotproof.analysis.inputs import Inputs
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.verdicts import Verdict, verdicts
from shotproof.core.arrays import FloatArray
from shotproof.core.errors import InputError, Mismatch
from shotproof.results.answers import answers_on
from shotproof.results.evaluated import Classifier
from shotproof.results.origin import PLACEBO, Design
from shotproof.stats.conclusions import RISK_OF_COSTS
from shotproof.stats.costs import AttributeCosts, PlantedRows, attribute_costs, mismatches
from shotproof.stats.evidence import Reevaluated
from shotproof.stats.shuffles import ShuffledTasks
from shotproof.tasks.taskset import TaskSet


def costs_of(
    comparison: Comparison, inputs: Inputs, reevaluated: Mapping[Design, Reevaluated]
) -> dict[tuple[Design, str], dict[Classifier, AttributeCosts]]:
    """Estimate attribute costs on each task set that was also evaluated with shuffled words.

    For classifiers that conclusively lose accuracy on a set, the intervals are at the comparison's level, jointly for
    all attributes of the set. A single attribute may be costly even if no overall loss is shown: for the other
    classifiers, the intervals are at a stricter level that keeps the error rate of the whole comparison.

    Args:
        comparison: comparison of the inputs' results
        inputs: task sets, their placebos, catalogs and attributes; sets that lack any of these are skipped
        reevaluated: re-evaluations with shuffled words, by design

    Returns:
        Costs by design and label, then by classifier; for replicates, the costs on the first seed.
    """
    shuffled_verdicts = [
        verdict for verdict in verdicts(comparison) if verdict.loss.is_shuffled and verdict.block.design in reevaluated
    ]
    n_not_losing = sum(len(verdict.unclear) + len(verdict.gaining) for verdict in shuffled_verdicts)
    risk_per_classifier = (1 - comparison.level) * RISK_OF_COSTS / max(n_not_losing, 1)
    costs = {}
    for verdict in shuffled_verdicts:
        shuffled = reevaluated[verdict.block.design].shuffled
        assert shuffled is not None  # the loss is shuffled
        level = dict.fromkeys(verdict.losing, comparison.level)
        level |= dict.fromkeys([*verdict.unclear, *verdict.gaining], 1 - risk_per_classifier)
        try:
            costs[verdict.block.design, verdict.loss.label] = _costs(verdict, inputs, shuffled, level)
        except InputError:  # an input is missing
            continue
    return costs


def _costs(
    verdict: Verdict, inputs: Inputs, shuffled: ShuffledTasks, level: Mapping[Classifier, float]
) -> dict[Classifier, AttributeCosts]:
    """Estimate the costs of one task set's attributes for each classifier in `level`."""
    block, loss = verdict.block, verdict.loss
    tasks = inputs.task_set(block.group(loss.label).digests[0], block.design.catalog)
    weights = {loss.label: -1.0}
    if loss.axis == "contexts":  # relative to the reference, which is built from contexts too
        weights[loss.reference] = 1.0
    accuracy: dict[Classifier, FloatArray] = {}
    null: dict[Classifier, FloatArray] = {}
    for label, weight in weights.items():
        task_set = inputs.task_set(block.group(label).digests[0], block.design.catalog)
        for evaluated_tasks, sign in ((task_set, weight), (_find_placebo(task_set, inputs), -weight)):
            for answers in answers_on(evaluated_tasks, inputs.results).answers:
                accuracy[answers.classifier] = accuracy.get(answers.classifier, 0.0) + sign * answers.counts.accuracy()
        for classifier in level:
            null[classifier] = null.get(classifier, 0.0) - weight * shuffled.by_row[task_set.digest, classifier]
    class_names = inputs.catalog(block.design.catalog).class_names
    rows = replace(_planted_rows(tasks, _find_placebo(tasks, inputs), inputs), class_names=class_names)
    return {
        classifier: attribute_costs(rows, accuracy[classifier], null[classifier], level[classifier])
        for classifier in level
    }


def _find_placebo(tasks: TaskSet, inputs: Inputs) -> TaskSet:
    """Return the placebo of a task set. Raise Mismatch if the inputs lack it."""
    for placebo in inputs.tasks:
        if placebo.record.source("like") == tasks.digest and placebo.record.sampler_name == PLACEBO:
            return placebo
    raise Mismatch(f"task set {tasks.digest} has no placebo among the inputs")


def _planted_rows(tasks: TaskSet, placebo: TaskSet, inputs: Inputs) -> PlantedRows:
    """Return the attribute planted in each row and the row's mismatch in every attribute.

    Contexts exclude each other, so a row's mismatch in a context is 1 if that context was planted, else 0.
    """
    column = tasks.table.column("attribute").combine_chunks()
    words = pc.unique(column).drop_null().sort()
    names = words.to_pylist()
    planted = pc.fill_null(pc.index_in(column, value_set=words), -1).to_numpy().astype(np.int64)
    task = np.unique(tasks.task_of_row, return_inverse=True)[1]
    if tasks.record.context_column is None:
        cues = inputs.cues_of(tasks)
        task_mismatch, placebo_mismatch = (
            mismatches(_shares(task_set, "support", names, cues), _shares(task_set, "query", names, cues), task)
            for task_set in (tasks, placebo)
        )
        mismatch = task_mismatch - placebo_mismatch
    else:
        mismatch = np.equal(planted[:, None], np.arange(len(words))).astype(np.float64)
    return PlantedRows(names, planted, mismatch, task, tasks.table.column("label").to_pylist())


def _shares(tasks: TaskSet, side: str, words: list[str], cues: Mapping[str, Set[str]]) -> FloatArray:
    """Compute the share of each row's items that hold each word: [rows, words]; 0 for a row without items."""
    items = pc.list_flatten(tasks.table.column(side)).combine_chunks().dictionary_encode()
    column_of_word = {word: column for column, word in enumerate(words)}
    holds = np.zeros((len(items.dictionary), len(words)))
    for row, item in enumerate(items.dictionary.to_pylist()):
        holds[row, [column_of_word[word] for word in cues.get(item, ()) if word in column_of_word]] = 1
    counts = pc.list_value_length(tasks.table.column(side)).to_numpy()
    sums = np.zeros((len(counts), len(words)))
    np.add.at(sums, np.repeat(np.arange(len(counts)), counts), holds[items.indices.to_numpy()])
    shares: FloatArray = sums / np.maximum(counts, 1)[:, None]
    return shares
