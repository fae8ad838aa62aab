"""Random tasks: the usual benchmark, and the reference for other samplers."""

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

_CLASSES, _ITEMS, _SPREAD, _COUNTS = 0, 1, 2, 3  # purposes of random numbers
_TRIES = 100
LEAST_ALPHA = 0.01  # below this, shares are too small for floating point, and nearly all are 0
_TINY = np.finfo(np.float64).tiny
_AT_A_TIME = 2**20  # random numbers drawn at a time


@dataclass(frozen=True)
class Random(Sampler):
    """Classes uniformly without replacement, and their support and query items uniformly without replacement.

    With `query_dirichlet`, a Dirichlet distribution with this parameter divides the way * query queries of a task
    between its classes: the smaller the parameter, the less equally. A class may then have no query.
    """

    about = "classes and items uniformly at random"
    example = "random(query_dirichlet=2)"
    axis: ClassVar[Axis | None] = "queries"  # of unequal queries; equal queries are the reference

    query_dirichlet: float | None = option(
        None,
        "parameter of a Dirichlet distribution that divides the queries between classes; None divides equally",
        least=LEAST_ALPHA,
    )
    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Random]:
        """Bind the sampler to these inputs."""
        return BoundRandom(self, inputs)


class BoundRandom(BoundSampler[Random]):
    """Random sampler bound to its inputs."""

    def __init__(self, sampler: Random, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        all_items = ItemPool.of(inputs.catalog)
        self.pool = all_items.fitting(self.shape, sampler.skip_small_classes)
        self.left_out = sorted(set(all_items.classes) - set(self.pool.classes))

    def draw(self, tasks: range) -> pa.Table:
        """Draw the rows of these tasks."""
        task = np.arange(tasks.start, tasks.stop)
        shot, query = self.shape.shot, self.shape.query
        classes = self.choose_classes(task)
        extra = self.class_columns(classes)
        if self.sampler.query_dirichlet is None and self.pool.sources is None:
            slot, position = np.arange(self.shape.way)[:, None], np.arange(shot + query)
            random = draws.bits(self.seed, task[:, None, None], _ITEMS, slot, position)
            items = draws.distinct(random, self.pool.sizes[classes]) + self.pool.offsets[classes][..., None]
            return self.pool.task_rows(tasks, classes, items[..., :shot], items[..., shot:], extra=extra)
        support, rest, most = self._draw_support_and_rest(np.repeat(task, self.shape.way), classes.ravel())
        counts = self._draw_query_counts(task, most).ravel()
        chosen = rest[np.arange(rest.shape[1]) < counts[:, None]]
        ways, shots = np.full(len(tasks), self.shape.way), np.full(classes.size, shot)
        parts = (support.ravel(), shots), (chosen, counts)
        return self.pool.ragged_rows(tasks, ways, classes.ravel(), *parts, extra=extra)

    def choose_classes(self, task: IntArray) -> IntArray:
        """Draw the classes of these tasks, [t, way]."""
        random = draws.bits(self.seed, task[:, None], _CLASSES, np.arange(self.shape.way))
        return draws.distinct(random, len(self.pool.classes))

    def class_columns(self, classes: IntArray) -> dict[str, Any]:
        """Return further columns for tasks with these classes, [t, way]."""
        return {}

    def _draw_query_counts(self, task: IntArray, most: IntArray) -> IntArray:
        """Draw the number of queries of each class, [t, way]."""
        way, query = self.shape.way, self.shape.query
        if self.sampler.query_dirichlet is None:
            return np.full((len(task), way), query)
        random = draws.bits(self.seed, task[:, None], _COUNTS, np.arange(way))
        return dirichlet_counts(random, self.sampler.query_dirichlet, way * query, most.reshape(-1, way))

    def _draw_support_and_rest(self, task: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Draw the support of classes, and in random order the items of other sources, which may be queries.

        Args:
            task: the tasks, [c]
            chosen: the class in each of them, [c]

        Returns:
            The support [c, shot]; the first possible queries, as many as a task can have; and the number of possible
            queries [c].
        """
        way, shot, query = self.shape.way, self.shape.shot, self.shape.query
        slot, widest = np.arange(len(task)) % way, int(self.pool.sizes[chosen].max())
        order = np.empty((len(task), min(widest, shot + way * query)), dtype=np.int64)
        most, unfinished, step = np.empty(len(task), dtype=np.int64), np.arange(len(task)), max(1, _AT_A_TIME // widest)
        for attempt in range(_TRIES):
            for part in np.split(unfinished, np.arange(step, len(unfinished), step)):
                shuffled, most[part] = self._shuffle(task[part], slot[part], chosen[part], attempt, widest)
                order[part] = shuffled[:, : order.shape[1]]
            unfinished = unfinished[most[unfinished] < query]
            if len(unfinished) == 0:
                return order[:, :shot], order[:, shot:], most
        self._raise_too_few_sources(int(chosen[unfinished[0]]))

    def _shuffle(
        self, task: IntArray, slot: IntArray, chosen: IntArray, attempt: int, widest: int
    ) -> tuple[IntArray, IntArray]:
        """Shuffle the items of each class, [c, widest], and put those of other sources first after the support.

        Return also the number of items of other sources, [c].
        """
        index, shot = np.arange(widest), self.shape.shot
        keys = draws.bits(self.seed, task[:, None], _SPREAD, slot[:, None], attempt, index)
        keys[index >= self.pool.sizes[chosen][:, None]] = np.iinfo(np.uint64).max  # beyond the class: last
        order = np.argsort(keys, axis=1, kind="stable")
        may_be_query = order[:, shot:] < self.pool.sizes[chosen][:, None]
        items = np.minimum(order + self.pool.offsets[chosen][:, None], len(self.pool.rows) - 1)
        if self.pool.sources is not None:
            source = self.pool.sources[items]
            for position in range(shot):
                may_be_query &= source[:, shot:] != source[:, position, None]
            queries_first = np.argsort(~may_be_query, axis=1, kind="stable")
            items[:, shot:] = np.take_along_axis(items[:, shot:], queries_first, axis=1)
        return items, may_be_query.sum(axis=1)

    def _raise_too_few_sources(self, chosen: int) -> NoReturn:
        assert self.pool.sources is not None  # the pool has enough items, so only sources can fail
        start, stop = self.pool.offsets[chosen : chosen + 2]
        shot, query = self.shape.shot, self.shape.query
        raise InsufficientData(
            f"class '{self.pool.classes[chosen]}' has {len(np.unique(self.pool.sources[start:stop]))} sources in "
            f"{stop - start} items: in {_TRIES} draws, {shot} support items never left {query} query items of other "
            "sources: lower the shots or the queries"
        )

    def summary(self, tasks: TaskSet) -> Meta:
        """Summarize which classes are too small and, with unequal queries, the share of classes without queries."""
        has_no_query = pc.equal(pc.list_value_length(tasks.table.column("query")), 0)
        if self.sampler.query_dirichlet is None:
            return {"classes_left_out": self.left_out}
        return {"classes_left_out": self.left_out, "no_query_share": float(pc.mean(has_no_query).as_py())}


def dirichlet_counts(random: UInt64Array, alpha: float, total: int, most: IntArray) -> IntArray:
    """Convert random bits [t, way] to counts [t, way] that add up to `total`, none above `most` [t, way].

    Queries beyond a class's limit go to the other classes, in proportion to their shares.
    """
    from scipy import special

    gamma = np.maximum(special.gammaincinv(alpha, draws.uniform(random)), _TINY)
    shares = gamma / gamma.sum(axis=1, keepdims=True)
    counts = largest_remainders(shares, np.full(len(shares), total))
    for task in np.flatnonzero((counts > most).any(axis=1)):
        counts[task] = _bounded_counts(shares[task], total, most[task])
    return counts


def largest_remainders(shares: FloatArray, totals: IntArray) -> IntArray:
    """Round shares [t, k] of totals [t] to whole numbers: down, and the rest goes to the largest remainders."""
    # Rounded, because the last bits may differ between platforms.
    quotas = np.round(shares * totals[:, None], 9)
    counts = np.floor(quotas).astype(np.int64)
    rank = np.argsort(np.argsort(counts - quotas, axis=1, kind="stable"), axis=1, kind="stable")
    counts += rank < (totals - counts.sum(axis=1))[:, None]
    return counts


def _bounded_counts(shares: FloatArray, total: int, most: IntArray) -> IntArray:
    """Compute the counts of one task, [way]: classes above their limit are filled up, and the others share the rest."""
    counts, full = most.copy(), np.zeros(len(most), dtype=np.bool_)
    while True:
        rest = shares[~full] / shares[~full].sum()
        counts[~full] = largest_remainders(rest[None], np.array([total - most[full].sum()]))[0]
        if (counts <= most).all():
            return counts
        full |= counts >= most
        counts[full] = most[full]
