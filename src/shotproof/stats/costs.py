"""What each planted attribute, or context, costs, with the others held constant.

A class whose support holds a word that its queries lack loses accuracy if the classifier relies on the word; but also
if the word merely goes with another that the classifier relies on. So what each class of each task loses against its
placebo, which has the same classes and tasks, is regressed on the mismatches of all words at once. Contexts exclude
each other: theirs is the mean loss where they are planted. How much the coefficients vary if no word means anything is
told by shuffled words, as in `shuffles`; intervals are corrected for the number of words (Bonferroni).

Arrays only: whoever has the task sets makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from shotproof.core.arrays import FloatArray, IntArray
from shotproof.stats.intervals import Estimate, Interval
from shotproof.stats.shuffles import ShuffledMeans

MIN_TASKS = 10  # words that are planted in fewer are left out: an interval over so few says little
_SAME, _ALIKE = 0.98, 0.8  # correlation of the mismatches of words that are always, or if need be, taken as one


@dataclass(frozen=True)
class AttributeCost:
    """What a planted attribute costs the classes that it is planted in, in points of accuracy.

    attributes: the attribute; of several that go together too often to be told apart, all of them
    cost: against the placebo, the other attributes held constant; the interval is corrected for their number
    tasks, labels: in how many tasks, and in how many classes, it was planted
    worst_label, worst_name: of the classes that it was planted in, the one that most surely loses much, and what people
        call it
    """

    attributes: tuple[str, ...]
    cost: Interval
    tasks: int
    labels: int
    worst_label: str
    worst_name: str

    @property
    def name(self) -> str:
        """The attributes as a phrase, e.g. `snow`, or `snow or white border`."""
        return " or ".join(self.attributes)

    @property
    def is_conclusive(self) -> bool:
        """Return whether it conclusively costs something."""
        return not self.cost.refused and self.cost.low > 0


@dataclass(frozen=True)
class AttributeCosts:
    """The costs of the attributes of one task set for one classifier, conclusive ones first, then the costliest.

    planted: how many attributes were planted at all
    """

    planted: int
    costs: list[AttributeCost]

    @property
    def conclusive(self) -> list[AttributeCost]:
        """Those that conclusively cost something."""
        return [cost for cost in self.costs if cost.is_conclusive]


@dataclass(frozen=True)
class PlantedRows:
    """The rows of a task set, one per class of a task, with what was planted in them.

    words: the attributes, [words]
    planted: the place of the planted one, [rows]; -1 if it is none of them
    mismatch: how far the support and the queries of a row differ in each word, beyond those of its placebo,
        [rows, words]
    task: numbered from 0 without gaps, in order, [rows]
    labels: the classes, [rows]
    class_names: what people call them
    """

    words: Sequence[str]
    planted: IntArray
    mismatch: FloatArray
    task: IntArray
    labels: Sequence[str]
    class_names: Mapping[str, str] = field(default_factory=dict)


def mismatches(support: FloatArray, query: FloatArray, task: IntArray) -> FloatArray:
    """Measure how far each word pulls the queries of a row from their own class to the others of its task.

    For a classifier by class means, a word adds to the squared distance of query q and class k the square of
    (q holds it - share of k's support that holds it); the mismatch is that of the own class minus the mean of the
    others.

    Args:
        support, query: the share of a row's support, and of its queries, that holds each word: [rows, words]
        task: of each row, in order

    Returns:
        Means over the queries of each row: [rows, words].
    """
    starts = np.flatnonzero(np.diff(task, prepend=-1))
    ways = np.diff(np.append(starts, len(task)))
    others = np.repeat(np.maximum(ways - 1, 1), ways)[:, None]

    def mean_of_others(values: FloatArray) -> FloatArray:
        total = np.repeat(np.add.reduceat(values, starts, axis=0), ways, axis=0)
        mean: FloatArray = (total - values) / others
        return mean

    return support**2 - mean_of_others(support**2) - 2 * query * (support - mean_of_others(support))


def attribute_costs(rows: PlantedRows, lost: FloatArray, shuffled: FloatArray, level: float = 0.95) -> AttributeCosts:
    """Estimate what each planted attribute costs.

    Args:
        rows: of all tasks
        lost: the accuracy on each row's placebo minus that on the row, in points; NaN without queries
        shuffled: the accuracy on the rows of the first tasks with words shuffled, in percent: [shuffles, rows]
        level: of all intervals together

    Returns:
        The costs of attributes that are planted in at least `MIN_TASKS` tasks.
    """
    tasks_of = [np.unique(rows.task[rows.planted == place]) for place in range(len(rows.words))]
    words = [place for place, tasks in enumerate(tasks_of) if len(tasks) >= MIN_TASKS]
    planted = len(np.unique(rows.planted[rows.planted >= 0]))
    if not words:
        return AttributeCosts(planted, [])
    lost, shuffled = np.nan_to_num(lost), np.nan_to_num(shuffled, nan=100.0)
    correlation = _correlation(rows.mismatch[:, words])
    single = _components(correlation >= _SAME)
    costs = _costs(rows, words, single, lost, shuffled, level)
    unclear = np.array([not cost.is_conclusive for cost in costs])[single]
    merged = _components((correlation >= _ALIKE) & unclear & unclear[:, None] | (single == single[:, None]))
    if merged.max() < single.max():
        together = _costs(rows, words, merged, lost, shuffled, level)
        if sum(cost.is_conclusive for cost in together) > sum(cost.is_conclusive for cost in costs):
            costs = together
    return AttributeCosts(planted, sorted(costs, key=_order))


def _costs(
    rows: PlantedRows,
    words: Sequence[int],
    unit_of_word: IntArray,
    lost: FloatArray,
    shuffled: FloatArray,
    level: float,
) -> list[AttributeCost]:
    """Estimate the cost of each unit of words, by least squares on all of them at once."""
    units = int(unit_of_word.max()) + 1
    member = np.equal(unit_of_word, np.arange(units)[:, None]).astype(np.float64)
    mismatch = rows.mismatch[:, words] @ (member / member.sum(axis=1, keepdims=True)).T
    tasks = int(rows.task.max()) + 1
    # coefficients = influence @ lost: of each row its part in them, [units, rows]
    influence = np.linalg.pinv(mismatch, rcond=1e-6)
    place_of_word = np.full(len(rows.words) + 1, -1)
    place_of_word[list(words)] = unit_of_word
    unit_of_row = place_of_word[rows.planted]
    planted_in = [np.flatnonzero(unit_of_row == unit) for unit in range(units)]
    # In points: what the mismatch is, on average, where the unit is planted.
    influence *= np.array([mismatch[places, unit].mean() for unit, places in enumerate(planted_in)])[:, None]
    means = influence @ lost
    first = shuffled.shape[1]
    starts = np.flatnonzero(np.diff(rows.task[:first], prepend=-1))
    by_task = np.add.reduceat(shuffled[:, :, None] * influence[:, :first].T, starts, axis=1) * tasks
    null = ShuffledMeans.of_values(by_task, range(units))
    corrected = 1 - (1 - level) / units
    labels = np.asarray(rows.labels, dtype=object)
    costs = []
    for unit, places in enumerate(planted_in):
        spread = null.spread({unit: 1.0}, {unit: 1.0}, tasks)
        worst = _worst(labels[places], lost[places])
        estimate = Estimate(float(means[unit]), spread if spread.variance > 0 else None, "no task tells")
        costs.append(
            AttributeCost(
                tuple(rows.words[word] for word, of in zip(words, unit_of_word, strict=True) if of == unit),
                estimate.interval("images", corrected),
                len(np.unique(rows.task[places])),
                len(set(labels[places])),
                worst,
                rows.class_names.get(worst, worst),
            )
        )
    return costs


def _worst(labels: npt.NDArray[np.object_], lost: FloatArray) -> str:
    """Return the class that most surely loses much: by its mean less its standard error, so that no lucky one leads."""
    names, place = np.unique(labels.astype(str), return_inverse=True)
    count = np.bincount(place)
    means = np.bincount(place, weights=lost) / count
    spread = float(((lost - means[place]) ** 2).sum() / max(len(lost) - len(names), 1))
    return str(names[int(np.argmax(means - np.sqrt(spread / count)))])


def _order(cost: AttributeCost) -> tuple[bool, float, tuple[str, ...]]:
    return not cost.is_conclusive, -cost.cost.mean, cost.attributes


def _correlation(columns: FloatArray) -> FloatArray:
    """Correlate columns around zero, [k, k]; 0 of a column that is zero."""
    lengths = np.linalg.norm(columns, axis=0)
    scaled = columns / np.where(lengths > 0, lengths, 1.0)
    correlation: FloatArray = scaled.T @ scaled
    return correlation


def _components(linked: npt.NDArray[np.bool_]) -> IntArray:
    """Number the connected components in the order of their first member: [k]."""
    from scipy.sparse.csgraph import connected_components

    number: IntArray = connected_components(linked, directed=False)[1].astype(np.int64)
    return number
