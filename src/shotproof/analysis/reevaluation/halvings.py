"""Re-evaluation on halves of a catalog: from task sets and features to the arrays of `halves.py`.

A task set is drawn anew on each half with its own sampler, options and design, and all methods are evaluated on it.
Both halves of a halving use one seed: on halves of the items a random task then meets the same classes in both, and
the difference between the halves is free of the luck of the classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof.analysis.inputs import Inputs
from shotproof.analysis.reevaluation.drawing import Drawing
from shotproof.analysis.reevaluation.near_duplicates import near_duplicates
from shotproof.analysis.reevaluation.repeated import Classifiers, RepeatedClassifiers
from shotproof.catalog.catalog import Catalog
from shotproof.core import draws
from shotproof.core.errors import InsufficientData, Mismatch
from shotproof.core.nouns import nouns
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.results.evaluated import METRICS
from shotproof.stats.evidence import MeanOf, Units
from shotproof.stats.halves import HalvedMeans, Halves
from shotproof.stats.intervals import FloatArray
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.taskset import TaskSet, TaskShape

TASKS_PER_HALF = 200
# Where the number of halvings is left to us, fewer are made where there are many classifiers or sets. With fewer still,
# or with fewer tasks, the variance would be known so badly that no interval is narrow.
HALVINGS, FEWEST_HALVINGS = 100, 20
MOST_EVALUATIONS = 120_000  # tasks times what each costs all classifiers together
_BLOCK = 5  # halvings that are evaluated together, which share the items' inner products
_SIDES, _TASKS = 0, 1  # what a random number is drawn for


@dataclass(frozen=True)
class _Work:
    """All that a worker process needs."""

    catalog: Catalog
    classifiers: RepeatedClassifiers
    drawings: list[Drawing]
    sides: npt.NDArray[np.int8]
    unit_of_item: npt.NDArray[np.int64]
    tasks: int

    def tables(self, halvings: range) -> tuple[list[pa.Table | None], dict[int, str]]:
        """Draw tasks by halving, half and drawing, and say which drawings had none.

        What one half is too little for is given up: to try again may take long.
        """
        tables: list[pa.Table | None] = []
        refused: dict[int, str] = {}
        for halving in halvings:
            seed = int(draws.bits(self.classifiers.seed, _TASKS, halving) >> np.uint64(1))
            side = self.sides[halving, self.unit_of_item]
            for half in (1, -1):
                items = Catalog(self.catalog.table.filter(pa.array(side == half)), self.catalog.root)
                drawn: dict[int, pa.Table] = {}
                for number, drawing in enumerate(self.drawings):
                    try:
                        table = None if number in refused else drawing.draw(items, seed, self.tasks, drawn)
                    except InsufficientData as error:
                        refused[number] = str(error)
                        table = None
                    tables.append(table)
        return tables, refused

    def block(self, halvings: range) -> tuple[FloatArray, dict[int, str]]:
        """The values on both halves, task by task, [2, halvings, tasks, drawings, k], and which drawings had no tasks.

        Where a half is too little for a drawing, its values there and on later halves are NaN and the reason is told.
        """
        tables, refused = self.tables(halvings)
        place = [number for number, table in enumerate(tables) if table is not None]
        there = [table for table in tables if table is not None]
        if not there:
            k = len(self.classifiers.names) * len(METRICS)
            return np.full((2, len(halvings), self.tasks, len(self.drawings), k), np.nan), refused
        sizes = np.array([len(np.unique(table.column("task").to_numpy())) for table in there])
        tasks = int(sizes.min())
        chosen = ((np.cumsum(sizes) - sizes)[:, None] + np.arange(tasks)).ravel()
        columns = [
            of_metric[chosen].reshape(-1, tasks)
            for counts in self.classifiers.counts(there)
            for of_metric in (counts.accuracy_by_task(), counts.worst_by_task())
        ]
        values = np.full((len(tables), tasks, len(columns)), np.nan)
        values[place] = np.stack(columns, axis=-1)
        by_half = values.reshape(len(halvings), 2, len(self.drawings), tasks, -1).transpose(1, 0, 3, 2, 4)
        # In one layout, as an array that comes from another process is: sums over it round alike.
        return np.ascontiguousarray(by_half), refused


def affordable_halvings(cost: int) -> int:
    """Return how often the data is halved if nobody has said it, by what one halving costs (`MOST_EVALUATIONS`)."""
    return min(HALVINGS, max(FEWEST_HALVINGS, MOST_EVALUATIONS // cost))


def means_on_halves(
    task_sets: Sequence[TaskSet],
    catalog: Catalog,
    classifiers: Classifiers,
    units: Units,
    *,
    inputs: Inputs | None = None,
    halvings: int | None = None,
    tasks: int | None = None,
    seed: int | None = None,
    runtime: Runtime | None = None,
) -> HalvedMeans:
    """Re-evaluate classifiers on halves of every class's items (`images`) or of the classes (`classes`).

    Args:
        task_sets: of one catalog and split; all are drawn on the same halves
        catalog: that they were drawn from
        classifiers: each encoder's name, features and methods
        units: what is halved
        inputs: what the samplers need besides the catalog
        halvings: how many; None is that of the inputs, or else as many as take some seconds, from 20 to 100
        seed: of the halves (default: that of the inputs)
        tasks: how many are drawn on each half; None is that of the inputs, or else 200
        runtime: how it is computed; the result is the same for any

    Returns:
        The means, by task set (its digest), classifier and metric.

    Raises:
        InsufficientData: the data is too small for halves.
        Mismatch: none of the task sets can be drawn anew, since what it was drawn with is not there.
    """
    inputs = inputs or Inputs()
    seed = inputs.seed if seed is None else seed
    tasks = tasks or inputs.tasks_per_half or TASKS_PER_HALF
    drawings, refused = _drawings(task_sets, inputs)
    kept = _used(catalog, task_sets)
    pool = ItemPool.of(kept)
    again = RepeatedClassifiers.of(classifiers, pool.items, seed)
    called = nouns(catalog.medium) if units == "images" else units
    for digest, drawing in drawings.items():
        if drawing.shape and (reason := _too_small(pool, units, called, drawing.shape)):
            refused[digest] = reason
    drawn = _not_refused(drawings, refused)
    halvings = halvings or inputs.halvings or affordable_halvings(2 * tasks * len(drawn) * again.task_cost)
    groups = None
    if units == "images" and pool.sources is None:  # nobody has said which items share a source
        features = again.encoders[0][1]
        groups = near_duplicates(features.array[features.rows_of(pool.items)], pool.class_of)
    unit_of_item, freedom = _units(pool, units, groups)
    sides = _sides(pool, unit_of_item, units, halvings, seed)
    unit_of_row = np.empty_like(unit_of_item)
    unit_of_row[pool.rows] = unit_of_item
    work = _Work(kept, again, [drawings[digest] for digest in drawn], sides, unit_of_row, tasks)

    def refuse(reasons: Mapping[int, str]) -> list[str]:
        """Note why halves are too little for drawings of these numbers; give those that are left."""
        for number, reason in reasons.items():
            refused.setdefault(drawn[number], f"a half of the {called} is too little: {reason}")
        return _not_refused(drawn, refused)

    # Halves that are too little for a drawing mostly are so at once, and to find that out takes long: it is tried once.
    drawn = refuse(work.tables(range(1))[1])
    work = replace(work, drawings=[drawings[digest] for digest in drawn])
    blocks = [range(start, min(start + _BLOCK, halvings)) for start in range(0, halvings, _BLOCK)]
    what = f"evaluating on halves of the {called}"
    done = list(resolve(runtime).map(work.block, blocks, what=what, steps=len, needs="share"))
    left = refuse({number: reason for _, reasons in reversed(done) for number, reason in reasons.items()})
    fewest = min(values.shape[2] for values, _ in done)
    numbers = [drawn.index(digest) for digest in left]
    first, second = np.concatenate([values[:, :, :fewest, numbers] for values, _ in done], axis=1).reshape(
        2, halvings, fewest, -1
    )
    names: list[MeanOf] = [(digest, name, metric) for digest in left for name in again.names for metric in METRICS]
    halves = Halves.of_tasks(first, second, freedom, sides if units == "classes" else None)
    together = 0 if groups is None else int((np.bincount(groups)[groups] > 1).sum())
    return HalvedMeans(halves, list(names), refused, together)


def _drawings(task_sets: Sequence[TaskSet], inputs: Inputs) -> tuple[dict[str, Drawing], dict[str | None, str]]:
    """How each task set was drawn, by its digest, or why it cannot be drawn anew; Mismatch if none can."""
    known: dict[str, Drawing] = {}
    drawings: dict[str, Drawing] = {}
    lacking: dict[str, Mismatch] = {}
    for task_set in task_sets:
        try:
            drawings[task_set.digest] = Drawing.of(task_set, inputs, known)
        except Mismatch as error:
            lacking[task_set.digest] = error
    if not drawings:
        raise next(iter(lacking.values()))
    return drawings, {digest: str(error) for digest, error in lacking.items()}


def _not_refused(digests: Iterable[str], refused: Mapping[str | None, str]) -> list[str]:
    """The task sets that are left; InsufficientData if none is."""
    left = [digest for digest in digests if digest not in refused]
    if not left:
        raise InsufficientData(next(iter(refused.values())))
    return left


def _used(catalog: Catalog, task_sets: Sequence[TaskSet]) -> Catalog:
    """The catalog that the task sets were drawn from, without the classes that their samplers left out."""
    splits = {task_set.record.split for task_set in task_sets}
    if len(splits) > 1:
        raise Mismatch(f"the task sets are of different splits: {', '.join(sorted(map(str, splits)))}")
    for task_set in task_sets:
        made_from = task_set.record.source("catalog")
        if made_from != catalog.digest:
            raise Mismatch(f"the task set was drawn from catalog {made_from}, not from {catalog.digest}")
    kept = catalog.in_split(splits.pop())
    left_out = {label for task_set in task_sets for label in task_set.record.classes_left_out}
    keep = np.array([label not in left_out for label in kept.table.column("label").to_pylist()])
    return kept if keep.all() else Catalog(kept.table.filter(pa.array(keep)), kept.root)


def _too_small(pool: ItemPool, units: Units, called: str, shape: TaskShape) -> str | None:
    """Why halves of the data cannot have tasks of this shape; None where they can."""
    if units == "classes":
        if len(pool.classes) >= 2 * shape.way:
            return None
        return (
            f"halves of the classes need {2 * shape.way} classes ({shape.way} ways in each half), the data has "
            f"{len(pool.classes)}"
        )
    need = 2 * (shape.shot + shape.query)
    smallest = int(np.argmin(pool.sizes))
    if pool.sizes[smallest] >= need:
        return None
    return (
        f"halves of the {called} need {need} of each class (support and query in each half), class "
        f"'{pool.classes[smallest]}' has {pool.sizes[smallest]}"
    )


def _units(pool: ItemPool, units: Units, near: npt.NDArray[np.int64] | None) -> tuple[npt.NDArray[np.int64], int]:
    """The unit of each position, and how many units there are beyond the groups that they are divided within.

    Images of one source stay together, and so do near-duplicates: they are no independent draws.
    """
    if units == "classes":
        return pool.class_of, len(pool.classes) - 1
    alone = np.arange(len(pool.rows)) if near is None else near
    sources = alone if pool.sources is None else pool.sources
    _, unit = np.unique(np.stack([pool.class_of, sources]), axis=1, return_inverse=True)
    unit = unit.ravel()
    return unit, int(unit.max()) + 1 - len(pool.classes)


def _sides(pool: ItemPool, unit: npt.NDArray[np.int64], units: Units, halvings: int, seed: int) -> npt.NDArray[np.int8]:
    """Random halves of the classes, or of each class's units: [halvings, units], 1 or -1; an odd one goes to either."""
    count = int(unit.max()) + 1
    group = np.zeros(count, dtype=np.int64)
    if units == "images":
        group[unit] = pool.class_of
    sides = np.empty((halvings, count), dtype=np.int8)
    for halving in range(halvings):
        order = np.lexsort((draws.bits(seed, _SIDES, halving, np.arange(count)), group))
        first = np.searchsorted(group[order], group[order])
        start = draws.bits(seed, _SIDES, halving, count + group[order]) & np.uint64(1)
        sides[halving, order] = np.where((np.arange(count) - first + start.astype(np.int64)) % 2, 1, -1)
    return sides
