"""Re-evaluation on halves of a catalog: from task sets and features to the arrays of `halves.py`.

A task set is drawn again on each half with its sampler, options and design, and all methods are evaluated on it. Both
halves of a halving share one seed: on halves of the items, a random task then has the same classes in both, and the
difference between the halves is free of the variation between classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
# The default number of halvings is lower for many classifiers or sets. With fewer than the minimum, or with fewer
# tasks, the variance estimate would be too imprecise for a narrow interval.
HALVINGS, FEWEST_HALVINGS = 100, 20
MOST_EVALUATIONS = 120_000  # tasks times the cost of a task over all classifiers
_BLOCK = 5  # halvings evaluated together, sharing the items' inner products
_SIDES, _TASKS = 0, 1  # keys of the random numbers


@dataclass(frozen=True)
class _Work:
    """Work shared by worker processes."""

    catalog: Catalog
    classifiers: RepeatedClassifiers
    drawings: list[Drawing]
    sides: npt.NDArray[np.int8]
    unit_of_item: npt.NDArray[np.int64]
    tasks: int

    def tables(self, halvings: range) -> tuple[list[pa.Table | None], dict[int, str]]:
        """Draw tasks by halving, half and drawing, and report which drawings failed and why.

        A drawing is abandoned once a half is too small for it, since retrying may be slow.
        """
        tables: list[pa.Table | None] = []
        reasons: dict[int, str] = {}
        for halving in halvings:
            seed = int(draws.bits(self.classifiers.seed, _TASKS, halving) >> np.uint64(1))
            side = self.sides[halving, self.unit_of_item]
            for half in (1, -1):
                items = Catalog(self.catalog.table.filter(pa.array(side == half)), self.catalog.root)
                drawn_tables: dict[int, pa.Table] = {}
                for number, drawing in enumerate(self.drawings):
                    try:
                        table = None if number in reasons else drawing.draw(items, seed, self.tasks, drawn_tables)
                    except InsufficientData as error:
                        reasons[number] = str(error)
                        table = None
                    tables.append(table)
        return tables, reasons

    def block(self, halvings: range) -> tuple[FloatArray, dict[int, str]]:
        """Evaluate both halves, task by task, and report which drawings failed and why.

        The values are [2, halvings, tasks, drawings, k]. If a half is too small for a drawing, its values there and on
        later halves are NaN.
        """
        tables, reasons = self.tables(halvings)
        indices = [number for number, table in enumerate(tables) if table is not None]
        drawn_tables = [table for table in tables if table is not None]
        if not drawn_tables:
            k = len(self.classifiers.names) * len(METRICS)
            return np.full((2, len(halvings), self.tasks, len(self.drawings), k), np.nan), reasons
        sizes = np.array([len(np.unique(table.column("task").to_numpy())) for table in drawn_tables])
        tasks = int(sizes.min())
        first_tasks = ((np.cumsum(sizes) - sizes)[:, None] + np.arange(tasks)).ravel()
        columns = [
            values_by_task[first_tasks].reshape(-1, tasks)
            for counts in self.classifiers.counts(drawn_tables)
            for values_by_task in (counts.accuracy_by_task(), counts.worst_by_task())
        ]
        values = np.full((len(tables), tasks, len(columns)), np.nan)
        values[indices] = np.stack(columns, axis=-1)
        by_half = values.reshape(len(halvings), 2, len(self.drawings), tasks, -1).transpose(1, 0, 3, 2, 4)
        # Contiguous, like an array from another process, so that sums round the same way.
        return np.ascontiguousarray(by_half), reasons


def affordable_halvings(cost: int) -> int:
    """Return the default number of halvings, by the cost of one halving (`MOST_EVALUATIONS`)."""
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
        task_sets: task sets of one catalog and split; all are drawn on the same halves
        catalog: the catalog they were drawn from
        classifiers: name, features and methods of each encoder
        units: the units to halve
        inputs: data that the samplers need besides the catalog
        halvings: number of halvings; None means that of the inputs, or else as many as take some seconds, 20 to 100
        seed: seed of the halvings (default: that of the inputs)
        tasks: number of tasks drawn on each half; None means that of the inputs, or else 200
        runtime: runtime for the evaluation; the result does not depend on it

    Returns:
        The means, by task set (its digest), classifier and metric.

    Raises:
        InsufficientData: the data is too small for halves.
        Mismatch: no task set can be drawn again, since the data it was drawn with is missing.
    """
    inputs = inputs or Inputs()
    seed = inputs.seed if seed is None else seed
    tasks = tasks or inputs.tasks_per_half or TASKS_PER_HALF
    drawings, reasons_by_digest = _rebuild_drawings(task_sets, inputs)
    used_catalog = _select_used_classes(catalog, task_sets)
    pool = ItemPool.of(used_catalog)
    variants = [drawing.variants for drawing in drawings.values() if drawing.variants is not None]
    items = pa.concat_arrays([pool.items, *variants])
    repeated_classifiers = RepeatedClassifiers.of(classifiers, pc.unique(items), seed)
    noun = nouns(catalog.medium) if units == "images" else units
    for digest, drawing in drawings.items():
        if drawing.shape and (reason := _reason_too_small(pool, units, noun, drawing.shape)):
            reasons_by_digest[digest] = reason
    digests = _remaining_digests(drawings, reasons_by_digest)
    halvings = (
        halvings or inputs.halvings or affordable_halvings(2 * tasks * len(digests) * repeated_classifiers.task_cost)
    )
    groups = None
    if units == "images" and pool.sources is None:  # the catalog does not record sources
        features = repeated_classifiers.encoders[0][1]
        groups = near_duplicates(features.array[features.rows_of(pool.items)], pool.class_of)
    unit_of_item, freedom = _assign_units(pool, units, groups)
    sides = _draw_sides(pool, unit_of_item, units, halvings, seed)
    unit_of_row = np.empty_like(unit_of_item)
    unit_of_row[pool.rows] = unit_of_item
    work = _Work(
        used_catalog, repeated_classifiers, [drawings[digest] for digest in digests], sides, unit_of_row, tasks
    )

    def exclude(reasons: Mapping[int, str]) -> list[str]:
        """Record why halves are too small for these drawings, and return the digests of the remaining ones."""
        for index, reason in reasons.items():
            reasons_by_digest.setdefault(digests[index], f"half of the {noun} are too few: {reason}")
        return _remaining_digests(digests, reasons_by_digest)

    # Halves that are too small for a drawing mostly fail at once, and failing is slow: try one halving first.
    digests = exclude(work.tables(range(1))[1])
    work = replace(work, drawings=[drawings[digest] for digest in digests])
    blocks = [range(start, min(start + _BLOCK, halvings)) for start in range(0, halvings, _BLOCK)]
    progress_label = f"evaluating on halves of the {noun}"
    block_results = list(resolve(runtime).map(work.block, blocks, title=progress_label, steps=len, needs="share"))
    remaining = exclude(
        {number: reason for _, reasons in reversed(block_results) for number, reason in reasons.items()}
    )
    n_tasks = min(values.shape[2] for values, _ in block_results)
    columns = [digests.index(digest) for digest in remaining]
    first, second = np.concatenate([values[:, :, :n_tasks, columns] for values, _ in block_results], axis=1).reshape(
        2, halvings, n_tasks, -1
    )
    names: list[MeanOf] = [
        (digest, name, metric) for digest in remaining for name in repeated_classifiers.names for metric in METRICS
    ]
    halves = Halves.of_tasks(first, second, freedom, sides if units == "classes" else None)
    n_near_duplicates = 0 if groups is None else int((np.bincount(groups)[groups] > 1).sum())
    return HalvedMeans(halves, list(names), reasons_by_digest, n_near_duplicates)


def _rebuild_drawings(task_sets: Sequence[TaskSet], inputs: Inputs) -> tuple[dict[str, Drawing], dict[str | None, str]]:
    """Rebuild how each task set was drawn, or explain why not, by digest. Raise Mismatch if all fail."""
    cache: dict[str, Drawing] = {}
    drawings: dict[str, Drawing] = {}
    errors: dict[str, Mismatch] = {}
    for task_set in task_sets:
        try:
            drawings[task_set.digest] = Drawing.of(task_set, inputs, cache)
        except Mismatch as error:
            errors[task_set.digest] = error
    if not drawings:
        raise next(iter(errors.values()))
    reasons: dict[str | None, str] = {digest: str(error) for digest, error in errors.items()}
    reasons |= {digest: drawing.refused for digest, drawing in drawings.items() if drawing.refused is not None}
    return drawings, reasons


def _remaining_digests(digests: Iterable[str], reasons: Mapping[str | None, str]) -> list[str]:
    """Return the task sets without a reason for exclusion. Raise InsufficientData if none remains."""
    remaining = [digest for digest in digests if digest not in reasons]
    if not remaining:
        raise InsufficientData(next(iter(reasons.values())))
    return remaining


def _select_used_classes(catalog: Catalog, task_sets: Sequence[TaskSet]) -> Catalog:
    """Return the catalog that the task sets were drawn from, without the classes that their samplers left out."""
    splits = {task_set.record.split for task_set in task_sets}
    if len(splits) > 1:
        raise Mismatch(f"the task sets are of different splits: {', '.join(sorted(map(str, splits)))}")
    for task_set in task_sets:
        catalog_digest = task_set.record.source("catalog")
        if catalog_digest != catalog.digest:
            raise Mismatch(f"the task set was drawn from catalog {catalog_digest}, not from {catalog.digest}")
    split_catalog = catalog.in_split(splits.pop())
    left_out = {label for task_set in task_sets for label in task_set.record.classes_left_out}
    is_used = np.array([label not in left_out for label in split_catalog.table.column("label").to_pylist()])
    return (
        split_catalog if is_used.all() else Catalog(split_catalog.table.filter(pa.array(is_used)), split_catalog.root)
    )


def _reason_too_small(pool: ItemPool, units: Units, noun: str, shape: TaskShape) -> str | None:
    """Explain why halves of the data are too small for tasks of this shape; None if they are not."""
    if units == "classes":
        if len(pool.classes) >= 2 * shape.way:
            return None
        return (
            f"halves of the classes need {2 * shape.way} classes ({shape.way} ways in each half), the data has "
            f"{len(pool.classes)}"
        )
    items_needed = 2 * (shape.shot + shape.query)
    smallest = int(np.argmin(pool.sizes))
    if pool.sizes[smallest] >= items_needed:
        return None
    return (
        f"halves of the {noun} need {items_needed} of each class (support and query in each half), class "
        f"'{pool.classes[smallest]}' has {pool.sizes[smallest]}"
    )


def _assign_units(
    pool: ItemPool, units: Units, duplicate_groups: npt.NDArray[np.int64] | None
) -> tuple[npt.NDArray[np.int64], int]:
    """Return the unit of each position, and the number of units minus the number of groups they are divided within.

    Images of one source stay together, and so do near-duplicates: they are not independent draws.
    """
    if units == "classes":
        return pool.class_of, len(pool.classes) - 1
    groups = np.arange(len(pool.rows)) if duplicate_groups is None else duplicate_groups
    sources = groups if pool.sources is None else pool.sources
    _, unit = np.unique(np.stack([pool.class_of, sources]), axis=1, return_inverse=True)
    unit = unit.ravel()
    return unit, int(unit.max()) + 1 - len(pool.classes)


def _draw_sides(
    pool: ItemPool, unit: npt.NDArray[np.int64], units: Units, halvings: int, seed: int
) -> npt.NDArray[np.int8]:
    """Draw random halves of the classes, or of each class's units: [halvings, units], 1 or -1."""
    count = int(unit.max()) + 1
    group = np.zeros(count, dtype=np.int64)
    if units == "images":
        group[unit] = pool.class_of
    sides = np.empty((halvings, count), dtype=np.int8)
    for halving in range(halvings):
        order = np.lexsort((draws.bits(seed, _SIDES, halving, np.arange(count)), group))
        group_start = np.searchsorted(group[order], group[order])
        parity = draws.bits(seed, _SIDES, halving, count + group[order]) & np.uint64(1)
        sides[halving, order] = np.where((np.arange(count) - group_start + parity.astype(np.int64)) % 2, 1, -1)
    return sides
