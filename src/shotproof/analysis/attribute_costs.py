"""From task sets with their placebos to what each planted attribute, or context, costs each classifier."""

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
    """Estimate the costs on each task set that was evaluated with shuffled words too.

    The intervals are at the comparison's level, for all attributes of a set together, for classifiers that conclusively
    lose something on it. One attribute may cost much although over all of them nothing is shown to be lost: of the
    other classifiers the intervals are at a level that keeps the risk of the whole comparison.

    Args:
        comparison: of the inputs' results
        inputs: with the task sets, their placebos, the catalogs and the attributes; sets that lack some are left out
        reevaluated: what was evaluated with shuffled words, by design

    Returns:
        By design and label, and by classifier; of replicates, those of the first seed.
    """
    told = [one for one in verdicts(comparison) if one.loss.is_shuffled and one.block.design in reevaluated]
    others = sum(len(one.unclear) + len(one.gaining) for one in told)
    risk = (1 - comparison.level) * RISK_OF_COSTS / max(others, 1)
    costs = {}
    for verdict in told:
        shuffled = reevaluated[verdict.block.design].shuffled
        assert shuffled is not None  # the loss is shuffled
        level = dict.fromkeys(verdict.losing, comparison.level)
        level |= dict.fromkeys([*verdict.unclear, *verdict.gaining], 1 - risk)
        try:
            costs[verdict.block.design, verdict.loss.label] = _costs(verdict, inputs, shuffled, level)
        except InputError:  # something is not there
            continue
    return costs


def _costs(
    verdict: Verdict, inputs: Inputs, shuffled: ShuffledTasks, level: Mapping[Classifier, float]
) -> dict[Classifier, AttributeCosts]:
    block, loss = verdict.block, verdict.loss
    tasks = inputs.task_set(block.group(loss.label).digests[0], block.design.catalog)
    weights = {loss.label: -1.0}
    if loss.axis == "contexts":  # against the reference, which contexts decide as well
        weights[loss.reference] = 1.0
    accuracy: dict[Classifier, FloatArray] = {}
    null: dict[Classifier, FloatArray] = {}
    for label, weight in weights.items():
        own = inputs.task_set(block.group(label).digests[0], block.design.catalog)
        for each, sign in ((own, weight), (_placebo_of(own, inputs), -weight)):
            for one in answers_on(each, inputs.results).answers:
                accuracy[one.classifier] = accuracy.get(one.classifier, 0.0) + sign * one.counts.accuracy()
        for classifier in level:
            null[classifier] = null.get(classifier, 0.0) - weight * shuffled.by_row[own.digest, classifier]
    class_names = inputs.catalog(block.design.catalog).class_names
    rows = replace(_planted_rows(tasks, _placebo_of(tasks, inputs), inputs), class_names=class_names)
    return {one: attribute_costs(rows, accuracy[one], null[one], level[one]) for one in level}


def _placebo_of(tasks: TaskSet, inputs: Inputs) -> TaskSet:
    """Find the placebo of a task set; Mismatch if it is not there."""
    for one in inputs.tasks:
        if one.record.source("like") == tasks.digest and one.record.sampler_name == PLACEBO:
            return one
    raise Mismatch(f"the placebo of {tasks.digest} is not there")


def _planted_rows(tasks: TaskSet, placebo: TaskSet, inputs: Inputs) -> PlantedRows:
    """Give what is planted in each row, and the mismatches in attributes; contexts exclude each other: as planted."""
    column = tasks.table.column("attribute").combine_chunks()
    words = pc.unique(column).drop_null().sort()
    names = words.to_pylist()
    planted = pc.fill_null(pc.index_in(column, value_set=words), -1).to_numpy().astype(np.int64)
    task = np.unique(tasks.task_of_row, return_inverse=True)[1]
    if tasks.record.context_column is None:
        cues = inputs.cues_of(tasks)
        of_tasks, of_placebo = (
            mismatches(_shares(each, "support", names, cues), _shares(each, "query", names, cues), task)
            for each in (tasks, placebo)
        )
        mismatch = of_tasks - of_placebo
    else:
        mismatch = np.equal(planted[:, None], np.arange(len(words))).astype(np.float64)
    return PlantedRows(names, planted, mismatch, task, tasks.table.column("label").to_pylist())


def _shares(tasks: TaskSet, side: str, words: list[str], cues: Mapping[str, Set[str]]) -> FloatArray:
    """Measure which share of each row's items holds each word: [rows, words]; 0 of a row without items."""
    items = pc.list_flatten(tasks.table.column(side)).combine_chunks().dictionary_encode()
    places = {word: place for place, word in enumerate(words)}
    holds = np.zeros((len(items.dictionary), len(words)))
    for row, item in enumerate(items.dictionary.to_pylist()):
        holds[row, [places[word] for word in cues.get(item, ()) if word in places]] = 1
    counts = pc.list_value_length(tasks.table.column(side)).to_numpy()
    sums = np.zeros((len(counts), len(words)))
    np.add.at(sums, np.repeat(np.arange(len(counts)), counts), holds[items.indices.to_numpy()])
    shares: FloatArray = sums / np.maximum(counts, 1)[:, None]
    return shares
