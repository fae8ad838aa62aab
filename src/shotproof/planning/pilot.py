"""A pilot: results of a first few hundred tasks, as the arrays that a plan is made from."""

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
_BLOCKS = 20  # of tasks, in a jackknife


@dataclass(frozen=True)
class Pilot:
    """Results whose tasks all have the same way and the same number of queries in every class."""

    results: Results
    tasks: int
    way: int
    query: int

    @classmethod
    def of(cls, *results: Results) -> Pilot:
        """From results on one task set and one encoder's features, of one method or more.

        Args:
            results: one, or several of different methods

        Returns:
            The pilot of all methods.

        Raises:
            InputError: tasks of several shapes, or methods that were not evaluated on the same tasks.

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
        joined = _joined(results)
        first, *others = joined.methods
        counts = joined.counts(first)
        for other in others:
            if not np.array_equal(joined.counts(other).task, counts.task):
                raise InputError(f"pilot: methods '{first}' and '{other}' were not evaluated on the same tasks")
        ways = np.unique(counts.task, return_counts=True)[1]
        for what, values in (("way", ways), ("number of queries", joined.table.column("n_query").to_numpy())):
            if values.min() != values.max():
                raise InputError(f"pilot: expected one {what} in all tasks, found {values.min()} to {values.max()}")
        return cls(joined, len(ways), int(ways[0]), int(counts.n_query[0]))

    @property
    def origin(self) -> Origin:
        """What the results are on; what they do not say is None."""
        return Origin.of(self.results)

    def moments(self, method: str) -> ScoreMoments:
        """The moments of a method's accuracy, for `plan`."""
        return estimate_moments(self._correct(method), self._queries)

    def best_query_interval(self, method: str, shot: int, level: float = 0.95) -> tuple[float, float] | None:
        """Between which bounds sqrt(beta / alpha) is, as far as the pilot tells: a pilot of few tasks tells little.

        A jackknife over 20 blocks of tasks, in logarithms, with Student's t; None where alpha is not above 0 without
        one of the blocks, or there are fewer tasks than 40.
        """
        from scipy import special

        if self.tasks < 2 * _BLOCKS:
            return None
        block = np.arange(self.tasks) % _BLOCKS
        correct, queries = self._correct(method), self._queries
        left = [estimate_moments(correct[block != one], queries[block != one]) for one in range(_BLOCKS)]
        found = [moments.variance(self.way).best_query(shot) for moments in [*left, self.moments(method)]]
        if not all(0 < one < np.inf for one in found):
            return None
        *without, whole = np.log(found)
        error = np.sqrt((_BLOCKS - 1) * np.var(without))
        reach = special.stdtrit(_BLOCKS - 1, (1 + level) / 2) * error
        return float(np.exp(whole - reach)), float(np.exp(whole + reach))

    def difference_variance(self, first: str, second: str, query: int) -> float | None:
        """The variance of two methods' paired difference on a task with this number of queries per class.

        In squared points. At the pilot's own number it is the sample variance. At another it takes which queries were
        missed, and is None where the results do not say.
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
        """The missed queries of a method, numbered through all tasks and classes."""
        rows = self.results.table.filter(pc.equal(self.results.table.column("method"), method))
        missed = rows.sort_by([("task", "ascending"), ("slot", "ascending")]).column("missed").combine_chunks()
        row, position = pc.list_parent_indices(missed).to_numpy(), missed.flatten().to_numpy()
        return np.asarray(row * self.query + position, dtype=np.int64)


def pilots_of(results: Sequence[Results]) -> list[Pilot]:
    """One pilot per design, sampler and encoder, each with all of its methods.

    Where there are random tasks, the pilots are of these only: tasks without replacement have the same moments. Of
    replicates, the one with the lowest seed is taken.

    Args:
        results: of any number of task sets, encoders and methods, as a run's folder has them

    Returns:
        The pilots, in the order of the results.

    Raises:
        InputError: there are none, or a pilot's tasks are of several shapes.
    """
    if not results:
        raise InputError("no results to plan from: give the results of a first few hundred tasks")
    groups: dict[tuple[Design, str, str, str], dict[int, list[Results]]] = {}
    for given in results:
        origin = Origin.of(given)
        of_seeds = groups.setdefault((origin.design, origin.sampler, origin.spelling, origin.encoder), {})
        of_seeds.setdefault(origin.seed or 0, []).append(given)
    usual = [key for key in groups if key[1] == RANDOM] or list(groups)
    return [Pilot.of(*groups[key][min(groups[key])]) for key in usual]


def _joined(results: Sequence[Results]) -> Results:
    """All methods in one; the same method is taken once."""
    parts = {part.methods[0]: part for given in reversed(results) for part in given.by_method()}
    chosen = [parts[method] for method in dict.fromkeys(method for given in results for method in given.methods)]
    shared = [name for name in SCHEMA.names if all(name in part.table.column_names for part in chosen)]
    table = pa.concat_tables([part.table.select(shared) for part in chosen])
    record = replace(results[0].record, methods=tuple(one for part in chosen for one in part.record.methods))
    return Results(table, record)
