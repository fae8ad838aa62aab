"""Random tasks: the field's usual benchmark, and the reference that every other sampler is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.core import draws
from shotproof.core.arrays import FloatArray, IntArray, UInt64Array
from shotproof.core.errors import InsufficientData
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import SKIP_SMALL_CLASSES, Axis, BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.taskset import TaskSet

_CLASSES, _ITEMS, _SPREAD, _COUNTS = 0, 1, 2, 3  # what a random number is drawn for
_TRIES = 100
LEAST_ALPHA = 0.01  # below it, shares are too small for floating point, and nearly all are 0 anyway
_TINY = np.finfo(np.float64).tiny
_AT_A_TIME = 2**20  # random numbers drawn at a time


@dataclass(frozen=True)
class Random(Sampler):
    """Classes uniformly without replacement, and of each its support and query items uniformly without replacement.

    With `query_dirichlet` the way * query queries of a task are not shared equally between its classes but by a
    Dirichlet distribution with this parameter: the smaller, the less equally. A class may then have no query.
    """

    about = "classes and items uniformly at random"
    example = "random(query_dirichlet=2)"
    axis: ClassVar[Axis | None] = "queries"  # of unequal ones; equal ones are the reference

    query_dirichlet: float | None = option(
        None, "share the queries between classes by a Dirichlet distribution with this parameter", least=LEAST_ALPHA
    )
    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Random]:
        """Random tasks of these inputs."""
        return BoundRandom(self, inputs)


class BoundRandom(BoundSampler[Random]):
    """Draws random tasks."""

    def __init__(self, sampler: Random, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        whole = ItemPool.of(inputs.catalog)
        self.pool = whole.fitting(self.shape, sampler.skip_small_classes)
        self.left_out = sorted(set(whole.classes) - set(self.pool.classes))

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks."""
        task = np.arange(tasks.start, tasks.stop)
        shot, query = self.shape.shot, self.shape.query
        classes = self.choose_classes(task)
        extra = self.class_columns(classes)
        if self.sampler.query_dirichlet is None and self.pool.sources is None:
            slot, position = np.arange(self.shape.way)[:, None], np.arange(shot + query)
            random = draws.bits(self.seed, task[:, None, None], _ITEMS, slot, position)
            items = draws.distinct(random, self.pool.sizes[classes]) + self.pool.offsets[classes][..., None]
            return self.pool.task_rows(tasks, classes, items[..., :shot], items[..., shot:], extra=extra)
        support, rest, most = self._support_and_rest(np.repeat(task, self.shape.way), classes.ravel())
        counts = self._query_counts(task, most).ravel()
        chosen = rest[np.arange(rest.shape[1]) < counts[:, None]]
        ways, shots = np.full(len(tasks), self.shape.way), np.full(classes.size, shot)
        parts = (support.ravel(), shots), (chosen, counts)
        return self.pool.ragged_rows(tasks, ways, classes.ravel(), *parts, extra=extra)

    def choose_classes(self, task: IntArray) -> IntArray:
        """The classes of these tasks, [t, way]."""
        random = draws.bits(self.seed, task[:, None], _CLASSES, np.arange(self.shape.way))
        return draws.distinct(random, len(self.pool.classes))

    def class_columns(self, classes: IntArray) -> dict[str, Any]:
        """Further columns of the tasks with these classes, [t, way]."""
        return {}

    def _query_counts(self, task: IntArray, most: IntArray) -> IntArray:
        """How many queries each class gets, [t, way]."""
        way, query = self.shape.way, self.shape.query
        if self.sampler.query_dirichlet is None:
            return np.full((len(task), way), query)
        random = draws.bits(self.seed, task[:, None], _COUNTS, np.arange(way))
        return dirichlet_counts(random, self.sampler.query_dirichlet, way * query, most.reshape(-1, way))

    def _support_and_rest(self, task: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Of classes of tasks, both [c]: support [c, shot], and what may be query, of other sources, in random order.

        There are `most` [c] of these, the third array; the second has as many of them as a task can have queries.
        """
        way, shot, query = self.shape.way, self.shape.shot, self.shape.query
        slot, widest = np.arange(len(task)) % way, int(self.pool.sizes[chosen].max())
        order = np.empty((len(task), min(widest, shot + way * query)), dtype=np.int64)
        most, left, step = np.empty(len(task), dtype=np.int64), np.arange(len(task)), max(1, _AT_A_TIME // widest)
        for attempt in range(_TRIES):
            for few in np.split(left, np.arange(step, len(left), step)):
                shuffled, most[few] = self._shuffled(task[few], slot[few], chosen[few], attempt, widest)
                order[few] = shuffled[:, : order.shape[1]]
            left = left[most[left] < query]
            if len(left) == 0:
                return order[:, :shot], order[:, shot:], most
        self._refuse(int(chosen[left[0]]))

    def _shuffled(
        self, task: IntArray, slot: IntArray, chosen: IntArray, attempt: int, widest: int
    ) -> tuple[IntArray, IntArray]:
        """The items of each class in random order [c, widest]; after the support those of other sources come first.

        And how many of these there are, [c].
        """
        place, shot = np.arange(widest), self.shape.shot
        keys = draws.bits(self.seed, task[:, None], _SPREAD, slot[:, None], attempt, place)
        keys[place >= self.pool.sizes[chosen][:, None]] = np.iinfo(np.uint64).max  # beyond the class: last
        order = np.argsort(keys, axis=1, kind="stable")
        within = order[:, shot:] < self.pool.sizes[chosen][:, None]
        items = np.minimum(order + self.pool.offsets[chosen][:, None], len(self.pool.rows) - 1)
        if self.pool.sources is not None:
            source = self.pool.sources[items]
            for position in range(shot):
                within &= source[:, shot:] != source[:, position, None]
            items[:, shot:] = np.take_along_axis(items[:, shot:], np.argsort(~within, axis=1, kind="stable"), axis=1)
        return items, within.sum(axis=1)

    def _refuse(self, chosen: int) -> NoReturn:
        assert self.pool.sources is not None  # the pool has enough items, so only sources can fail
        start, stop = self.pool.offsets[chosen : chosen + 2]
        shot, query = self.shape.shot, self.shape.query
        raise InsufficientData(
            f"class '{self.pool.classes[chosen]}' has {len(np.unique(self.pool.sources[start:stop]))} sources in "
            f"{stop - start} items: in {_TRIES} draws no {shot} support items left {query} query items of other "
            "sources; lower the shots or the queries"
        )

    def summary(self, tasks: TaskSet) -> Meta:
        """Classes left out because they are too small; with unequal queries, the share of classes that have none."""
        without = pc.equal(pc.list_value_length(tasks.table.column("query")), 0)
        unbalanced = {} if self.sampler.query_dirichlet is None else {"no_query_share": float(pc.mean(without).as_py())}
        return {"classes_left_out": self.left_out} | unbalanced


def dirichlet_counts(random: UInt64Array, alpha: float, total: int, most: IntArray) -> IntArray:
    """Random bits [t, way] to counts [t, way] that add up to `total`, none above `most` [t, way].

    What a class cannot take goes to the others, in proportion to their shares.
    """
    from scipy import special

    gamma = np.maximum(special.gammaincinv(alpha, draws.uniform(random)), _TINY)
    shares = gamma / gamma.sum(axis=1, keepdims=True)
    counts = largest_remainders(shares, np.full(len(shares), total))
    for task in np.flatnonzero((counts > most).any(axis=1)):
        counts[task] = _bounded(shares[task], total, most[task])
    return counts


def largest_remainders(shares: FloatArray, totals: IntArray) -> IntArray:
    """Shares [t, k] of totals [t] as whole numbers: rounded down, and the rest to the largest remainders."""
    quotas = np.round(shares * totals[:, None], 9)  # so that no platform's last bit decides
    counts = np.floor(quotas).astype(np.int64)
    rank = np.argsort(np.argsort(counts - quotas, axis=1, kind="stable"), axis=1, kind="stable")
    counts += rank < (totals - counts.sum(axis=1))[:, None]
    return counts


def _bounded(shares: FloatArray, total: int, most: IntArray) -> IntArray:
    """The counts of one task, [way]: classes with too much are filled up and the others share what is left."""
    counts, full = most.copy(), np.zeros(len(most), dtype=np.bool_)
    while True:
        rest = shares[~full] / shares[~full].sum()
        counts[~full] = largest_remainders(rest[None], np.array([total - most[full].sum()]))[0]
        if (counts <= most).all():
            return counts
        full |= counts >= most
        counts[full] = most[full]
