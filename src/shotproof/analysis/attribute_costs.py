"""From task sets with their placebos to what each planted attribute, or context, costs each classifier."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from shotproof.analysis.cues import cues_of
from shotproof.analysis.reevaluation.material import Material
from shotproof.core.arrays import FloatArray
from shotproof.core.errors import InputError
from shotproof.evaluation.answers import answers_on
from shotproof.evaluation.evaluated import Classifier
from shotproof.evaluation.origin import Design
from shotproof.stats.comparison import Comparison
from shotproof.stats.costs import AttributeCosts, PlantedRows, attribute_costs, mismatches
from shotproof.stats.evidence import Reevaluated
from shotproof.stats.shuffles import ShuffledTasks
from shotproof.stats.verdicts import Verdict, verdicts
from shotproof.tasks.taskset import TaskSet


def costs_of(
    comparison: Comparison, material: Material, reevaluated: Mapping[Design, Reevaluated]
) -> dict[tuple[Design, str], dict[Classifier, AttributeCosts]]:
    """Estimate the costs on each task set for the classifiers that conclusively lose something on it.

    Of others nothing is estimated: if nothing is lost, no attribute can be said to cost anything.

    Args:
        comparison: of the material's results
        material: with the task sets, their placebos, the catalogs and the attributes; sets that lack some are left out
        reevaluated: what was evaluated with shuffled words, by design

    Returns:
        By design and label, and by classifier; of replicates, those of the first seed.
    """
    costs = {}
    for verdict in verdicts(comparison):
        shuffled = reevaluated.get(verdict.block.design, Reevaluated()).shuffled
        if verdict.losing and verdict.loss.is_shuffled and shuffled is not None:
            try:
                costs[verdict.block.design, verdict.loss.label] = _costs(verdict, material, shuffled, comparison.level)
            except InputError:  # something is not there
                continue
    return costs


def _costs(
    verdict: Verdict, material: Material, shuffled: ShuffledTasks, level: float
) -> dict[Classifier, AttributeCosts]:
    digest = verdict.block.group(verdict.loss.label).digests[0]
    tasks = material.task_set(digest, verdict.block.design.catalog)
    placebo = next(one for one in material.tasks if one.record.source("like") == digest)
    class_names = material.catalog(verdict.block.design.catalog).class_names
    rows = replace(_planted_rows(tasks, placebo, cues_of(tasks, material)), class_names=class_names)
    accuracy, of_placebo = (
        {one.classifier: one.counts.accuracy() for one in answers_on(each, material.results).answers}
        for each in (tasks, placebo)
    )
    return {
        one: attribute_costs(rows, of_placebo[one] - accuracy[one], shuffled.by_row[tasks.digest, one], level)
        for one in verdict.losing
    }


def _planted_rows(tasks: TaskSet, placebo: TaskSet, cues: Mapping[str, Set[str]]) -> PlantedRows:
    column = tasks.table.column("attribute").combine_chunks()
    words = pc.unique(column).drop_null().sort()
    task = np.unique(tasks.task_of_row, return_inverse=True)[1]
    of_tasks, of_placebo = (
        mismatches(
            _shares(each, "support", words.to_pylist(), cues), _shares(each, "query", words.to_pylist(), cues), task
        )
        for each in (tasks, placebo)
    )
    return PlantedRows(
        words.to_pylist(),
        pc.fill_null(pc.index_in(column, value_set=words), -1).to_numpy().astype(np.int64),
        of_tasks - of_placebo,
        task,
        tasks.table.column("label").to_pylist(),
    )


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
