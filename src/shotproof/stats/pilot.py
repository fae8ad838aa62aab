"""A pilot: results of a first few hundred tasks, as the arrays that a plan is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from shotproof.errors import InputError
from shotproof.evaluation.results import Results
from shotproof.stats.plan import Moments, estimate_moments

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pilot:
    """Results whose tasks all have the same way and the same number of queries in every class."""

    results: Results
    tasks: int
    way: int
    query: int

    @classmethod
    def of(cls, results: Results) -> Pilot:
        """Refuse tasks of several shapes, and methods that were evaluated on different tasks."""
        first, *others = results.methods
        counts = results.counts(first)
        for other in others:
            if not np.array_equal(results.counts(other).task, counts.task):
                raise InputError(f"pilot: methods '{first}' and '{other}' were not evaluated on the same tasks")
        ways = np.unique(counts.task, return_counts=True)[1]
        for what, values in (("way", ways), ("number of queries", results.table.column("n_query").to_numpy())):
            if values.min() != values.max():
                raise InputError(f"pilot: expected one {what} in all tasks, found {values.min()} to {values.max()}")
        return cls(results, len(ways), int(ways[0]), int(counts.n_query[0]))

    def made_by(self, name: str) -> Any:
        """What the metadata say of how the tasks were made, e.g. their shot; None where they do not."""
        tasks = self.results.meta.get("tasks")
        made = tasks.get("made_by") if isinstance(tasks, dict) else None
        return made.get(name) if isinstance(made, dict) else None

    def moments(self, method: str) -> Moments:
        """The moments of a method's accuracy."""
        return estimate_moments(self._correct(method), self._queries)

    def difference_variance(self, first: str, second: str, query: int) -> float | None:
        """The variance of two methods' paired difference on a task with so many queries a class.

        At the pilot's own number it is the sample variance. At another it takes which queries were missed, and is
        None where the results do not say.
        """
        difference = self._correct(first) - self._correct(second)
        if query == self.query:
            return float((difference / self.query).mean(axis=1).var(ddof=1))
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
