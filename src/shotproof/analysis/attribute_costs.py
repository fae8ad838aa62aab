"""From task sets with their placebos to what each planted attribute, or context, costs each classifier."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np
import pyarrow.compute as pc

from shotproof.analysis.cues import cues_of
from shotproof.analysis.reevaluation.material import Material
from shotproof.core.arrays import FloatArray
from shotproof.core.errors import InputError
from shotproof.evaluation.answers import answers_on
from shotproof.evaluation.evaluated import Classifier
from shotproof.evaluation.origin import Design
from shotproof.stats.block import Loss
from shotproof.stats.comparison import Comparison
from shotproof.stats.costs import AttributeCosts, PlantedRows, attribute_costs, mismatches
from shotproof.stats.evidence import Reevaluated
from shotproof.tasks.taskset import TaskSet

_COSTLY = ("attributes", "contexts")  # axes whose tasks name what is planted


def costs_of(
    comparison: Comparison, material: Material, reevaluated: Mapping[Design, Reevaluated]
) -> dict[tuple[Design, str], dict[Classifier, AttributeCosts]]:
    """Estimate the costs on each task set that has a placebo and was evaluated with shuffled words.

    Args:
        comparison: of the material's results
        material: with the task sets, their placebos, the catalogs and the attributes; sets that lack some are left out
        reevaluated: what was evaluated anew, by design

    Returns:
        By design and label, and by classifier; of replicates, those of the first seed.
    """
    costs = {}
    for block in comparison.blocks:
        for loss in block.losses:
            if loss.axis in _COSTLY and loss.is_shuffled:
                try:
                    costs[block.design, loss.label] = _of_loss(loss, block.design, material, reevaluated, comparison)
                except InputError:  # something is not there
                    continue
    return costs


def _of_loss(
    loss: Loss,
    design: Design,
    material: Material,
    reevaluated: Mapping[Design, Reevaluated],
    comparison: Comparison,
) -> dict[Classifier, AttributeCosts]:
    digest = next(one.digests[0] for one in comparison.groups if one.label == loss.label)
    tasks = material.task_set(digest, design.catalog)
    placebo = next(one for one in material.tasks if one.record.source("like") == digest)
    rows = _planted_rows(tasks, placebo, cues_of(tasks, material))
    accuracy, sham = (
        {one.classifier: one.counts.accuracy() for one in answers_on(each, material.results).answers}
        for each in (tasks, placebo)
    )
    shuffled = reevaluated[design].shuffled
    assert shuffled is not None
    return {
        row.classifier: attribute_costs(
            rows,
            sham[row.classifier] - accuracy[row.classifier],
            shuffled.by_row[tasks.digest, row.classifier],
            comparison.level,
        )
        for row in loss.gap.rows
    }


def _planted_rows(tasks: TaskSet, placebo: TaskSet, cues: Mapping[str, Set[str]]) -> PlantedRows:
    planted = pc.index_in(
        tasks.table.column("attribute"),
        value_set=(words := pc.unique(tasks.table.column("attribute")).drop_null().sort()),
    )
    task = np.unique(tasks.task_of_row, return_inverse=True)[1]
    mismatch = [
        mismatches(*(_shares(each, side, words.to_pylist(), cues) for side in ("support", "query")), task)
        for each in (tasks, placebo)
    ]
    return PlantedRows(
        words.to_pylist(),
        pc.fill_null(planted, -1).to_numpy().astype(np.int64),
        mismatch[0] - mismatch[1],
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
    return sums / np.maximum(counts, 1)[:, None]
