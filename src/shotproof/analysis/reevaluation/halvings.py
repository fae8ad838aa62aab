"""Re-evaluation on halves of a catalog: from task sets and features to the arrays of `halves.py`.

A task set is drawn anew on each half with its own sampler, options and design, and all methods are evaluated on it.
Both halves of a halving use one seed: on halves of the items a random task then meets the same classes in both, and
the difference between the halves is free of the luck of the classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof.analysis.reevaluation.drawing import Drawing
from shotproof.analysis.reevaluation.material import Material
from shotproof.analysis.reevaluation.near_duplicates import near_duplicates
from shotproof.catalog.catalog import Catalog
from shotproof.core import draws
from shotproof.core.errors import InsufficientData, Mismatch
from shotproof.core.nouns import nouns
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.evaluation.evaluate import evaluate
from shotproof.evaluation.evaluated import METRICS, Classifier
from shotproof.features.features import Features
from shotproof.methods.method import AnyMethod, Method, make_method
from shotproof.stats.evidence import MeanOf, Units
from shotproof.stats.halves import HalvedMeans, Halves
from shotproof.stats.intervals import FloatArray
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.shape import TaskShape
from shotproof.tasks.taskset import TaskSet

Classifiers = Sequence[tuple[str, Features, Sequence[AnyMethod]]]  # each encoder, its features, and its methods
TASKS_PER_HALF = 200
# Where the number of halvings is left to us, fewer are made where there are many classifiers or sets. With fewer still,
# or with fewer tasks, the variance would be known so badly that no interval is narrow.
HALVINGS, FEWEST_HALVINGS = 100, 20
MOST_EVALUATIONS = 120_000  # tasks times classifiers
_BLOCK = 5  # halvings that are evaluated together, which share the items' inner products
_SIDES, _TASKS = 0, 1  # what a random number is drawn for


@dataclass(frozen=True)
class _Work:
    """All that a worker process needs."""

    catalog: Catalog
    classifiers: list[tuple[str, Features, list[Method]]]
    drawings: list[Drawing]
    sides: npt.NDArray[np.int8]
    unit_of_item: npt.NDArray[np.int64]
    tasks: int
    seed: int

    def block(self, halvings: range) -> tuple[FloatArray, dict[int, str]]:
        """The values on both halves, task by task, [2, halvings, tasks, drawings, k], and which drawings had no tasks.

        Where a half is too little for a drawing, its values there and on later halves are NaN and the reason is told.
        """
        tables: list[pa.Table | None] = []
        refused: dict[int, str] = {}
        for halving in halvings:
            seed = int(draws.bits(self.seed, _TASKS, halving) >> np.uint64(1))
            for half in self._halves(halving):
                drawn: dict[int, pa.Table] = {}
                for number, drawing in enumerate(self.drawings):
                    if number in refused:  # what one half is too little for is given up: to try again may take long
                        tables.append(None)
                        continue
                    try:
                        tables.append(drawing.draw(half, seed, self.tasks, drawn))
                    except InsufficientData as error:
                        refused.setdefault(number, str(error))
                        tables.append(None)
        there = [table for table in tables if table is not None]
        shape = (len(halvings), 2, len(self.drawings))
        per_classifier = sum(len(methods) for _, _, methods in self.classifiers) * len(METRICS)
        if not there:
            return np.full((2, len(halvings), self.tasks, len(self.drawings), per_classifier), np.nan), refused
        counts = [len(np.unique(table.column("task").to_numpy())) for table in there]
        tasks = min(counts)
        joined = join_tasks(there)
        chosen = ((np.cumsum(counts) - counts)[:, None] + np.arange(tasks)).ravel()
        values = np.full((len(tables), tasks, per_classifier), np.nan)
        place = [number for number, table in enumerate(tables) if table is not None]
        column = 0
        for _, features, methods in self.classifiers:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # said once already, when the methods were evaluated
                results = evaluate(joined, features, methods, seed=self.seed)
            for method in methods:
                counted = results.counts(method.spelling)
                for of_metric in (counted.accuracy_by_task(), counted.worst_by_task()):
                    values[place, :, column] = of_metric[chosen].reshape(-1, tasks)
                    column += 1
        by_half = values.reshape(*shape, tasks, per_classifier).transpose(1, 0, 3, 2, 4)
        # In one layout, as an array that comes from another process is: sums over it round alike.
        return np.ascontiguousarray(by_half), refused

    def _halves(self, halving: int) -> Iterator[Catalog]:
        side = self.sides[halving, self.unit_of_item]
        for half in (1, -1):
            yield Catalog(self.catalog.table.filter(pa.array(side == half)), self.catalog.root)


def means_on_halves(
    task_sets: Sequence[TaskSet],
    catalog: Catalog,
    classifiers: Classifiers,
    units: Units,
    *,
    material: Material | None = None,
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
        material: what the samplers need besides the catalog
        halvings: how many; None is the material's, or else as many as take some seconds, from 20 to 100
        seed: of the halves (default: the material's)
        tasks: how many are drawn on each half; None is the material's, or else 200
        runtime: how it is computed; the result is the same for any

    Returns:
        The means, by task set (its digest), classifier and metric.

    Raises:
        InsufficientData: the data is too small for halves.
        Mismatch: none of the task sets can be drawn anew, since what it was drawn with is not there.
    """
    material = material or Material()
    seed = material.seed if seed is None else seed
    tasks = tasks or material.tasks_per_half or TASKS_PER_HALF
    made = [(name, features, [make_method(one) for one in methods]) for name, features, methods in classifiers]
    known: dict[str, Drawing] = {}
    drawings: dict[str, Drawing] = {}
    lacking: dict[str, Mismatch] = {}
    for one in task_sets:
        try:
            drawings[one.digest] = Drawing.of(one, material, known)
        except Mismatch as error:
            lacking[one.digest] = error
    if not drawings:
        raise next(iter(lacking.values()))
    kept = _used(catalog, task_sets)
    pool = ItemPool.of(kept)
    called = nouns(catalog.medium) if units == "images" else units
    refused = {digest: _too_small(pool, units, called, one.shape) for digest, one in drawings.items() if one.shape}
    refused = {digest: reason for digest, reason in refused.items() if reason}
    refused |= {digest: str(error) for digest, error in lacking.items()}
    drawn = [digest for digest in drawings if digest not in refused]
    if not drawn:
        raise InsufficientData(next(iter(refused.values())) or "")
    per_halving = 2 * tasks * len(drawn) * sum(len(methods) for _, _, methods in made)
    halvings = halvings or material.halvings or min(HALVINGS, max(FEWEST_HALVINGS, MOST_EVALUATIONS // per_halving))
    groups = None
    if units == "images" and pool.sources is None:  # nobody has said which items share a source
        features = made[0][1]
        groups = near_duplicates(features.array[features.rows_of(pool.items)], pool.class_of)
    unit_of_item, freedom = _units(pool, units, groups)
    sides = _sides(pool, unit_of_item, units, halvings, seed)
    work = _Work(kept, made, [drawings[one] for one in drawn], sides, _by_row(pool, unit_of_item), tasks, seed)
    blocks = [range(start, min(start + _BLOCK, halvings)) for start in range(0, halvings, _BLOCK)]
    what = f"evaluating on halves of the {called}"
    # Halves that are too little for a drawing mostly are so at once, and to find that out takes long: it is tried once.
    values, hopeless = work.block(blocks[0])
    kept_drawings = [number for number in range(len(drawn)) if number not in hopeless]
    rest = replace(work, drawings=[work.drawings[number] for number in kept_drawings])
    done = [(values[:, :, :, kept_drawings], dict[int, str]())]
    if kept_drawings:
        done += resolve(runtime).map(rest.block, blocks[1:], what=what, steps=len, needs="share")
    too_little = {drawn[number]: reason for number, reason in hopeless.items()}
    drawn = [drawn[number] for number in kept_drawings]
    for _, of_block in done:
        too_little |= {drawn[number]: reason for number, reason in of_block.items() if drawn[number] not in too_little}
    refused |= {digest: f"a half of the {called} is too little: {reason}" for digest, reason in too_little.items()}
    given = [number for number, digest in enumerate(drawn) if digest not in refused]
    if not given:
        raise InsufficientData(next(iter(refused.values())) or "")
    fewest = min(values.shape[2] for values, _ in done)
    joined = np.concatenate([values[:, :, :fewest][..., given, :] for values, _ in done], axis=1)
    first, second = joined.reshape(*joined.shape[:3], -1)
    names: list[MeanOf] = [
        (drawn[number], Classifier(encoder, method.spelling), metric)
        for number in given
        for encoder, _, methods in made
        for method in methods
        for metric in METRICS
    ]
    halves = Halves.of_tasks(first, second, freedom, sides if units == "classes" else None)
    together = 0 if groups is None else int((np.bincount(groups)[groups] > 1).sum())
    return HalvedMeans(halves, list(names), {digest: str(reason) for digest, reason in refused.items()}, together)


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


def _by_row(pool: ItemPool, unit: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Units by the catalog's rows instead of the pool's positions."""
    by_row = np.empty_like(unit)
    by_row[pool.rows] = unit
    return by_row


def join_tasks(tables: Sequence[pa.Table]) -> TaskSet:
    """Join the drawn rows of several task sets to one, with tasks numbered through."""
    joined, first = [], 0
    for table in tables:
        task = table.column("task").to_numpy()
        columns = {"task": pa.array(task - task[0] + first, pa.int32())}
        columns |= {name: table.column(name) for name in ("slot", "label", "attribute", "support", "query")}
        joined.append(pa.table(columns))
        first += int(task[-1] - task[0]) + 1
    return TaskSet(pa.concat_tables(joined).combine_chunks())
