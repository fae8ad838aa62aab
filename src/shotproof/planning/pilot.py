"""Pilot: results of a first few hundred tasks, as the arrays that a plan is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.core.errors import InputError
from shotproof.planning.task_plan import ScoreMoments, estimate_moments
from shotproof.results.origin import RANDOM, Design, Origin
from shotproof.results.results import SCHEMA, Results

IntArray = npt.NDArray[np.int64]
_BLOCKS = 20  # blocks of tasks in the jackknife


@dataclass(frozen=True)
class Pilot:
    """Results whose tasks all have the same way and the same number of queries in every class."""

    results: Results
    tasks: int
    way: int
    query: int

    @classmethod
    def of(cls, *results: Results) -> Pilot:
        """Build a pilot from results of one or more methods on one task set and one encoder's features.

        Args:
            results: one results object, or several with different methods

        Returns:
            The pilot of all methods.

        Raises:
            InputError: the tasks have several shapes, or the methods were not evaluated on the same tasks.

        Example:
            >>> import shotproof as sp
            >>> catalog = sp.worlds.ShapesWorld(classes=6, items=40).catalog()
            >>> tasks = sp.sample(catalog, "random", tasks=50, seed=0)
            >>> pilot = sp.planning.Pilot.of(sp.evaluate(tasks, sp.encode(catalog, "dial(share=0.5)"), "ncc"))
            >>> pilot.tasks, pilot.way, pilot.query
            (50, 5, 15)
            >>> sp.planning.plan(pilot.moments("ncc"), shot=1, way=5, classes=6, items=40).query > 0
            True
        """
        joined = _join(results)
        first, *others = joined.methods
        counts = joined.counts(first)
        for other in others:
            if not np.array_equal(joined.counts(other).task, counts.task):
                raise InputError(f"pilot: methods '{first}' and '{other}' were not evaluated on the same tasks")
        ways = np.unique(counts.task, return_counts=True)[1]
        for noun, values in (("way", ways), ("number of queries", joined.table.column("n_query").to_numpy())):
            if values.min() != values.max():
                raise InputError(
                    f"pilot: expected the same {noun} in all tasks, found {values.min()} to {values.max()}"
                )
        return cls(joined, len(ways), int(ways[0]), int(counts.n_query[0]))

    @property
    def origin(self) -> Origin:
        """Return the origin of the results; parts that they do not state are None."""
        return Origin.of(self.results)

    def moments(self, method: str) -> ScoreMoments:
        """Estimate the moments of a method's accuracy, for `plan`."""
        return estimate_moments(self._correct(method), self._queries)

    def best_query_interval(self, method: str, shot: int, level: float = 0.95) -> tuple[float, float] | None:
        """Compute an interval for sqrt(beta / alpha), which is wide if the pilot has few tasks.

        It is a jackknife over 20 blocks of tasks, in logarithms, with Student's t. None if alpha is not above 0 without
        one of the blocks, or if there are fewer than 40 tasks.
        """
        from scipy import special

        if self.tasks < 2 * _BLOCKS:
            return None
        block = np.arange(self.tasks) % _BLOCKS
        correct, queries = self._correct(method), self._queries
        replicates = [estimate_moments(correct[block != i], queries[block != i]) for i in range(_BLOCKS)]
        best = [moments.variance(self.way).best_query(shot) for moments in [*replicates, self.moments(method)]]
        if not all(0 < query < np.inf for query in best):
            return None
        *log_replicates, log_best = np.log(best)
        error = np.sqrt((_BLOCKS - 1) * np.var(log_replicates))
        half_width = special.stdtrit(_BLOCKS - 1, (1 + level) / 2) * error
        return float(np.exp(log_best - half_width)), float(np.exp(log_best + half_width))

    def difference_variance(self, first: str, second: str, query: int) -> float | None:
        """Compute the variance of the paired difference between two methods on a task, in squared points.

        At the pilot's own number of queries per class it is the sample variance. Another number requires the positions
        of missed queries; None if the results lack them.
        """
        difference = self._correct(first) - self._correct(second)
        if query == self.query:
            return float((100 * difference / self.query).mean(axis=1).var(ddof=1))
        if "missed" not in self.results.table.column_names:
            return None
        missed_by_one = np.setxor1d(self._missed(first), self._missed(second)) // self.query
        squares = np.bincount(missed_by_one, minlength=difference.size).reshape(difference.shape)
        return estimate_moments(difference, self._queries, squares).variance(self.way).at(query)

    @property
    def _queries(self) -> IntArray:
        return np.full((self.tasks, self.way), self.query)

    def _correct(self, method: str) -> IntArray:
        return self.results.counts(method).n_correct.reshape(self.tasks, self.way)

    def _missed(self, method: str) -> IntArray:
        """Return the missed queries of a method, numbered across all tasks and classes."""
        rows = self.results.table.filter(pc.equal(self.results.table.column("method"), method))
        missed = rows.sort_by([("task", "ascending"), ("slot", "ascending")]).column("missed").combine_chunks()
        row, position = pc.list_parent_indices(missed).to_numpy(), missed.flatten().to_numpy()
        return np.asarray(row * self.query + position, dtype=np.int64)


def pilots_of(results: Sequence[Results]) -> list[Pilot]:
    """Build one pilot per design, sampler and encoder, each with all of its methods.

    If there are random tasks, only these are used: tasks without replacement have the same moments. Of replicates, the
    one with the lowest seed is used.

    Args:
        results: results of any number of task sets, encoders and methods, as in a run's folder

    Returns:
        The pilots, in the order of the results.

    Raises:
        InputError: there are no results, or a pilot's tasks have several shapes.
    """
    if not results:
        raise InputError("no results to plan from: expected the results of a first few hundred tasks")
    groups: dict[tuple[Design, str, str, str], dict[int, list[Results]]] = {}
    for result in results:
        origin = Origin.of(result)
        by_seed = groups.setdefault((origin.design, origin.sampler, origin.spelling, origin.encoder), {})
        by_seed.setdefault(origin.seed or 0, []).append(result)
    keys = [key for key in groups if key[1] == RANDOM] or list(groups)
    return [Pilot.of(*groups[key][min(groups[key])]) for key in keys]


def _join(results: Sequence[Results]) -> Results:
    """Join all methods in one; a method that occurs several times is used once."""
    by_method = {part.methods[0]: part for result in reversed(results) for part in result.by_method()}
    parts = [by_method[method] for method in dict.fromkeys(method for result in results for method in result.methods)]
    shared = [name for name in SCHEMA.names if all(name in part.table.column_names for part in parts)]
    table = pa.concat_tables([part.table.select(shared) for part in parts])
    record = replace(results[0].record, methods=tuple(method for part in parts for method in part.record.methods))
    return Results(table, record)
