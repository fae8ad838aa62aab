"""Re-evaluation on split halves of a catalog: from task sets and features to the arrays of `halves.py`.

A task set is drawn anew on each half with its own sampler, options and design, and all methods are evaluated on it.
Both halves of a split use one seed: on halves of the items a random task then meets the same classes in both, and the
difference between the halves is free of the luck of the classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof import draws
from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, Mismatch, Starved
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.methods.method import AnyMethod, Method, make_method
from shotproof.processes import in_processes
from shotproof.progress import progress
from shotproof.stats.drawing import NO_INPUTS, Drawing, Inputs
from shotproof.stats.halves import Halves
from shotproof.stats.intervals import FloatArray, Spread
from shotproof.tasks.pool import Design, Pool
from shotproof.tasks.taskset import TaskSet

Units = Literal["images", "classes"]
Classifiers = Sequence[tuple[Features, Sequence[AnyMethod]]]  # the features of each encoder, and its methods
MeanOf = tuple[int, int, str, str]  # number of the task set, number of the encoder, method, metric
METRICS = ("acc", "wacc")
SPLITS = 100
TASKS_A_HALF = 200
_BLOCK = 5  # splits that are evaluated together, which share the items' inner products
_SIDES, _TASKS = 0, 1  # what a random number is drawn for


@dataclass(frozen=True)
class SplitMeans:
    """Halves of the k means of several task sets, encoders, methods and metrics, by what they are of."""

    halves: Halves
    names: list[MeanOf]

    def spread(self, weights: Mapping[MeanOf, float]) -> Spread:
        """What the data adds to the variance of a weighted sum of these means; those without a weight take no part."""
        for name in weights:
            if name not in self.names:
                raise InputError(f"no mean of {name}: expected one of {', '.join(map(str, self.names))}")
        return self.halves.spread([weights.get(name, 0.0) for name in self.names])


@dataclass(frozen=True)
class _Work:
    """All that a worker process needs."""

    catalog: Catalog
    classifiers: list[tuple[Features, list[Method]]]
    drawings: list[Drawing]
    sides: npt.NDArray[np.int8]
    unit_of_item: npt.NDArray[np.int64]
    tasks: int
    seed: int

    def block(self, splits: range) -> FloatArray:
        """The values on both halves, task by task: [2, splits, tasks, k]."""
        tables = [
            drawing.draw(half, int(draws.bits(self.seed, _TASKS, split) >> np.uint64(1)), self.tasks)
            for split in splits
            for half in self._halves(split)
            for drawing in self.drawings
        ]
        counts = [len(np.unique(table.column("task").to_numpy())) for table in tables]
        tasks = min(counts)
        joined = _joined(tables)
        starts = np.cumsum(counts) - counts
        chosen = (starts[:, None] + np.arange(tasks)).ravel()
        values = []
        for features, methods in self.classifiers:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # said once already, when the methods were evaluated
                results = evaluate(joined, features, methods, seed=self.seed)
            for method in methods:
                counted = results.counts(method.name)
                values.append([counted.accuracy_by_task()[chosen], counted.worst_by_task()[chosen]])
        shape = (len(values), len(METRICS), len(splits), 2, len(self.drawings), tasks)
        by_half = np.array(values).reshape(shape).transpose(3, 2, 5, 4, 0, 1)
        # In one layout, as an array that comes from another process is: sums over it round alike.
        return np.ascontiguousarray(by_half.reshape(2, len(splits), tasks, -1))

    def _halves(self, split: int) -> Iterator[Catalog]:
        side = self.sides[split, self.unit_of_item]
        for half in (1, -1):
            yield Catalog(self.catalog.table.filter(pa.array(side == half)), self.catalog.root)


def split_means(
    task_sets: Sequence[TaskSet],
    catalog: Catalog,
    classifiers: Classifiers,
    units: Units,
    *,
    inputs: Inputs = NO_INPUTS,
    splits: int = SPLITS,
    tasks: int = TASKS_A_HALF,
    seed: int = 0,
    workers: int = 1,
) -> SplitMeans:
    """Re-evaluate classifiers on halves of every class's items (`images`) or of the classes (`classes`).

    `inputs` are what the samplers need beside the catalog. `tasks` are drawn on each half. Several task sets, of one
    catalog and split, are drawn on the same halves. The result is the same for any number of workers. Starved where the
    data is too small for halves.
    """
    drawings = [Drawing.of(task_set, inputs) for task_set in task_sets]
    kept = _used(catalog, task_sets)
    pool = Pool.of(kept)
    _require_halves(pool, units, [drawing.design for drawing in drawings if drawing.design is not None])
    unit_of_item, freedom = _units(pool, units)
    sides = _sides(pool, unit_of_item, units, splits, seed)
    made = [(features, [make_method(method) for method in methods]) for features, methods in classifiers]
    work = _Work(kept, made, drawings, sides, _by_row(pool, unit_of_item), tasks, seed)
    blocks = [range(start, min(start + _BLOCK, splits)) for start in range(0, splits, _BLOCK)]
    done = []
    with progress(f"evaluating on halves of the {units}", splits) as advance:
        try:
            for block in in_processes(work.block, blocks, workers):
                done.append(block)
                advance(block.shape[1])
        except Starved as error:
            raise Starved(f"a half of the {units} is too little: {error}") from error
    fewest = min(block.shape[2] for block in done)
    first, second = np.concatenate([block[:, :, :fewest] for block in done], axis=1)
    names = [
        (task_set, encoder, method.name, metric)
        for task_set in range(len(drawings))
        for encoder, (_, methods) in enumerate(made)
        for method in methods
        for metric in METRICS
    ]
    return SplitMeans(Halves.of_tasks(first, second, freedom, sides if units == "classes" else None), names)


def _used(catalog: Catalog, task_sets: Sequence[TaskSet]) -> Catalog:
    """The catalog that the task sets were drawn from, without the classes that their samplers left out."""
    splits = {task_set.meta.get("made_by", {}).get("split") for task_set in task_sets}
    if len(splits) > 1:
        raise Mismatch(f"the task sets are of different splits: {', '.join(sorted(map(str, splits)))}")
    for task_set in task_sets:
        made_from = task_set.meta.get("from", {}).get("catalog")
        if made_from != catalog.digest:
            raise Mismatch(f"the task set was drawn from catalog {made_from}, not from {catalog.digest}")
    kept = catalog.in_split(splits.pop())
    left_out = {
        label for task_set in task_sets for label in task_set.meta.get("summary", {}).get("classes_left_out", [])
    }
    keep = np.array([label not in left_out for label in kept.table.column("label").to_pylist()])
    return kept if keep.all() else Catalog(kept.table.filter(pa.array(keep)), kept.root)


def _require_halves(pool: Pool, units: Units, designs: list[Design]) -> None:
    """Refuse data whose halves are too small for the designs."""
    way = max((design.way for design in designs), default=0)
    if units == "classes":
        if len(pool.classes) < 2 * way:
            raise Starved(
                f"halves of the classes need {2 * way} classes ({way} ways in each half), the data has "
                f"{len(pool.classes)}"
            )
        return
    need = 2 * max((design.shot + design.query for design in designs), default=0)
    smallest = int(np.argmin(pool.sizes))
    if pool.sizes[smallest] < need:
        raise Starved(
            f"halves of the images need {need} items of each class (support and query in each half), class "
            f"'{pool.classes[smallest]}' has {pool.sizes[smallest]}"
        )


def _units(pool: Pool, units: Units) -> tuple[npt.NDArray[np.int64], int]:
    """The unit of each position, and how many units there are beyond the groups that they are split within.

    Images of one source stay together: they are no independent draws.
    """
    if units == "classes":
        return pool.class_of, len(pool.classes) - 1
    sources = np.arange(len(pool.rows)) if pool.sources is None else pool.sources
    _, unit = np.unique(np.stack([pool.class_of, sources]), axis=1, return_inverse=True)
    unit = unit.ravel()
    return unit, int(unit.max()) + 1 - len(pool.classes)


def _sides(pool: Pool, unit: npt.NDArray[np.int64], units: Units, splits: int, seed: int) -> npt.NDArray[np.int8]:
    """Random halves of the classes, or of each class's units: [splits, units], 1 or -1; an odd one falls to either."""
    count = int(unit.max()) + 1
    group = np.zeros(count, dtype=np.int64)
    if units == "images":
        group[unit] = pool.class_of
    sides = np.empty((splits, count), dtype=np.int8)
    for split in range(splits):
        order = np.lexsort((draws.bits(seed, _SIDES, split, np.arange(count)), group))
        first = np.searchsorted(group[order], group[order])
        start = draws.bits(seed, _SIDES, split, count + group[order]) & np.uint64(1)
        sides[split, order] = np.where((np.arange(count) - first + start.astype(np.int64)) % 2, 1, -1)
    return sides


def _by_row(pool: Pool, unit: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Units by the catalog's rows instead of the pool's positions."""
    by_row = np.empty_like(unit)
    by_row[pool.rows] = unit
    return by_row


def _joined(tables: list[pa.Table]) -> TaskSet:
    """Drawn rows of several task sets as one, tasks numbered through."""
    joined, first = [], 0
    for table in tables:
        task = table.column("task").to_numpy()
        columns = {"task": pa.array(task - task[0] + first, pa.int32())}
        columns |= {name: table.column(name) for name in ("slot", "label", "attribute", "support", "query")}
        joined.append(pa.table(columns))
        first += int(task[-1] - task[0]) + 1
    return TaskSet(pa.concat_tables(joined).combine_chunks())
