"""Cost of each planted attribute, or context, with the others held constant.

A class whose support set has a word that its queries lack loses accuracy if the classifier relies on the word, but also
if the word merely occurs together with another that the classifier relies on. So the loss of each class of each task
against its placebo, which has the same classes and tasks, is regressed on the mismatches of all words at once. Contexts
exclude each other: the cost of one is the mean loss of the classes it is planted in. Shuffled words show how much the
coefficients vary if no word matters, as in `shuffles`; intervals are corrected for the number of words (Bonferroni).

This module works on arrays only; callers compute them from task sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from shotproof.core.arrays import FloatArray, IntArray
from shotproof.stats.intervals import Estimate, Interval
from shotproof.stats.shuffles import ShuffledMeans

MIN_TASKS = 10  # words planted in fewer tasks are left out: their intervals would be too wide to be useful
_SAME, _ALIKE = 0.98, 0.8  # correlation of mismatches above which words are merged always, or if needed


@dataclass(frozen=True)
class AttributeCost:
    """Cost of a planted attribute for the classes that it is planted in, in points of accuracy.

    attributes: the attribute, or several that occur together too often to be separated
    cost: the cost against the placebo, with the other attributes held constant; its interval is corrected for their
        number
    tasks, labels: the number of tasks, and of classes, that it was planted in
    worst_label, worst_name: the label and the display name of the class with the surest large loss, among those
        that it was planted in
    """

    attributes: tuple[str, ...]
    cost: Interval
    tasks: int
    labels: int
    worst_label: str
    worst_name: str

    @property
    def name(self) -> str:
        """Join the attributes to a phrase, e.g. `snow`, or `snow or white border`."""
        return " or ".join(self.attributes)

    @property
    def is_conclusive(self) -> bool:
        """Return whether the cost is conclusively above zero."""
        return not self.cost.refused and self.cost.low > 0


@dataclass(frozen=True)
class AttributeCosts:
    """Costs of a task set's attributes for one classifier: conclusive ones first, then by size.

    planted: the number of attributes that were planted at all
    """

    planted: int
    costs: list[AttributeCost]

    @property
    def conclusive(self) -> list[AttributeCost]:
        """Return the costs that are conclusively above zero."""
        return [cost for cost in self.costs if cost.is_conclusive]


@dataclass(frozen=True)
class PlantedRows:
    """Rows of a task set, one per class of a task, with the attribute that was planted in each.

    words: the attributes, [words]
    planted: the index of the planted attribute, [rows]; -1 if it is not among the words
    mismatch: how far the support and the queries of a row differ in each word, beyond those of its placebo,
        [rows, words]
    task: numbered from 0 without gaps, in order, [rows]
    labels: the classes, [rows]
    class_names: their display names
    """

    words: Sequence[str]
    planted: IntArray
    mismatch: FloatArray
    task: IntArray
    labels: Sequence[str]
    class_names: Mapping[str, str] = field(default_factory=dict)


def mismatches(support: FloatArray, query: FloatArray, task: IntArray) -> FloatArray:
    """Measure how far each word pulls the queries of a row from their own class to the others of its task.

    In a nearest-mean classifier, a word adds to the squared distance between query q and class k the square of
    (1 if q has it, else 0) - (share of k's support that has it). The mismatch is this value for the query's class
    minus its mean over the other classes.

    Args:
        support, query: the share of a row's support, and of its queries, that has each word: [rows, words]
        task: the task of each row, in order

    Returns:
        Means over the queries of each row: [rows, words].
    """
    starts = np.flatnonzero(np.diff(task, prepend=-1))
    ways = np.diff(np.append(starts, len(task)))
    other_classes = np.repeat(np.maximum(ways - 1, 1), ways)[:, None]

    def mean_of_others(values: FloatArray) -> FloatArray:
        total = np.repeat(np.add.reduceat(values, starts, axis=0), ways, axis=0)
        mean: FloatArray = (total - values) / other_classes
        return mean

    return support**2 - mean_of_others(support**2) - 2 * query * (support - mean_of_others(support))


def attribute_costs(rows: PlantedRows, lost: FloatArray, shuffled: FloatArray, level: float = 0.95) -> AttributeCosts:
    """Estimate the cost of each planted attribute.

    Args:
        rows: the rows of all tasks
        lost: the accuracy on each row's placebo minus that on the row, in points; NaN without queries
        shuffled: the accuracy on the rows of the first tasks with shuffled words, in percent: [shuffles, rows]
        level: the joint confidence level of all intervals

    Returns:
        The costs of attributes that are planted in at least `MIN_TASKS` tasks.
    """
    tasks_by_word = [np.unique(rows.task[rows.planted == word]) for word in range(len(rows.words))]
    words = [word for word, tasks in enumerate(tasks_by_word) if len(tasks) >= MIN_TASKS]
    planted = len(np.unique(rows.planted[rows.planted >= 0]))
    if not words:
        return AttributeCosts(planted, [])
    lost, shuffled = np.nan_to_num(lost), np.nan_to_num(shuffled, nan=100.0)
    correlation = _correlation(rows.mismatch[:, words])
    single = _components(correlation >= _SAME)
    costs = _costs(rows, words, single, lost, shuffled, level)
    is_unclear = np.array([not cost.is_conclusive for cost in costs])[single]
    merged = _components((correlation >= _ALIKE) & is_unclear & is_unclear[:, None] | (single == single[:, None]))
    if merged.max() < single.max():
        merged_costs = _costs(rows, words, merged, lost, shuffled, level)
        if sum(cost.is_conclusive for cost in merged_costs) > sum(cost.is_conclusive for cost in costs):
            costs = merged_costs
    return AttributeCosts(planted, sorted(costs, key=_sort_key))


def _costs(
    rows: PlantedRows,
    words: Sequence[int],
    unit_of_word: IntArray,
    lost: FloatArray,
    shuffled: FloatArray,
    level: float,
) -> list[AttributeCost]:
    """Estimate the cost of each unit of words, by least squares on all units at once."""
    units = int(unit_of_word.max()) + 1
    member = np.equal(unit_of_word, np.arange(units)[:, None]).astype(np.float64)
    mismatch = rows.mismatch[:, words] @ (member / member.sum(axis=1, keepdims=True)).T
    tasks = int(rows.task.max()) + 1
    # coefficients = influence @ lost, [units, rows]
    influence = np.linalg.pinv(mismatch, rcond=1e-6)
    unit_by_word = np.full(len(rows.words) + 1, -1)
    unit_by_word[list(words)] = unit_of_word
    unit_of_row = unit_by_word[rows.planted]
    planted_in = [np.flatnonzero(unit_of_row == unit) for unit in range(units)]
    # Scale to points: multiply by the mean mismatch of the rows in which the unit is planted.
    influence *= np.array([mismatch[positions, unit].mean() for unit, positions in enumerate(planted_in)])[:, None]
    means = influence @ lost
    shuffled_rows = shuffled.shape[1]
    starts = np.flatnonzero(np.diff(rows.task[:shuffled_rows], prepend=-1))
    by_task = np.add.reduceat(shuffled[:, :, None] * influence[:, :shuffled_rows].T, starts, axis=1) * tasks
    null_means = ShuffledMeans.of_values(by_task, range(units))
    corrected_level = 1 - (1 - level) / units
    labels = np.asarray(rows.labels, dtype=object)
    costs = []
    for unit, positions in enumerate(planted_in):
        spread = null_means.spread({unit: 1.0}, {unit: 1.0}, tasks)
        worst = _worst(labels[positions], lost[positions])
        estimate = Estimate(
            float(means[unit]),
            spread if spread.variance > 0 else None,
            "shuffled words do not change any task, so there is no variance to estimate",
        )
        costs.append(
            AttributeCost(
                tuple(
                    rows.words[word] for word, word_unit in zip(words, unit_of_word, strict=True) if word_unit == unit
                ),
                estimate.interval("images", corrected_level),
                len(np.unique(rows.task[positions])),
                len(set(labels[positions])),
                worst,
                rows.class_names.get(worst, worst),
            )
        )
    return costs


def _worst(labels: npt.NDArray[np.object_], lost: FloatArray) -> str:
    """Return the class with the surest large loss: the highest mean minus standard error, so that luck does not win."""
    names, class_index = np.unique(labels.astype(str), return_inverse=True)
    count = np.bincount(class_index)
    means = np.bincount(class_index, weights=lost) / count
    variance = float(((lost - means[class_index]) ** 2).sum() / max(len(lost) - len(names), 1))
    return str(names[int(np.argmax(means - np.sqrt(variance / count)))])


def _sort_key(cost: AttributeCost) -> tuple[bool, float, tuple[str, ...]]:
    """Return the sort key: conclusive costs first, then the largest."""
    return not cost.is_conclusive, -cost.cost.mean, cost.attributes


def _correlation(columns: FloatArray) -> FloatArray:
    """Compute the correlation of columns around zero, [k, k]; 0 for a column of zeros."""
    lengths = np.linalg.norm(columns, axis=0)
    scaled = columns / np.where(lengths > 0, lengths, 1.0)
    correlation: FloatArray = scaled.T @ scaled
    return correlation


def _components(is_linked: npt.NDArray[np.bool_]) -> IntArray:
    """Compute the index of each word's connected component, in the order of their first members: [k]."""
    from scipy.sparse.csgraph import connected_components

    components: IntArray = connected_components(is_linked, directed=False)[1].astype(np.int64)
    return components
