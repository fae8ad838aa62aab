"""Cached re-evaluations as files: arrays that intervals need beyond the results, so that nothing is evaluated twice."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from shotproof.core.arrays import FloatArray
from shotproof.core.errors import InputError
from shotproof.core.records import Record
from shotproof.core.tables import Tabular, digest
from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.stats.evidence import MeanOf
from shotproof.stats.halves import HalfMoments, HalvedMeans, Halves
from shotproof.stats.shuffles import ShuffledMeans, ShuffledTasks

SCHEMA = pa.schema([("name", pa.string()), ("shape", pa.list_(pa.int64())), ("values", pa.list_(pa.float64()))])

Values = dict[Classifier, dict[Metric, FloatArray]]


@dataclass(frozen=True)
class ReevaluationRecord(Record):
    """Record of a re-evaluation.

    refused: reason why there is none; None if there is one
    facts: plain values stored with the arrays
    """

    refused: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class KeptArrays(Tabular):
    """Named arrays with plain values, stored in one file.

    Example:
        >>> cached = KeptArrays.of({"sides": np.eye(2)}, freedom=3)
        >>> cached.array("sides").tolist(), cached.facts["freedom"]
        ([[1.0, 0.0], [0.0, 1.0]], 3)
    """

    KIND, REQUIRED, RECORD = "reevaluation", {"name": "string"}, ReevaluationRecord

    table: pa.Table
    record: ReevaluationRecord = field(default_factory=ReevaluationRecord)

    def __post_init__(self) -> None:
        names = self.table.schema.names
        if names != SCHEMA.names:
            raise InputError(f"expected the columns {', '.join(SCHEMA.names)}, found {', '.join(names)}")

    @classmethod
    def of(cls, arrays: Mapping[str, Any], **facts: Any) -> Self:
        """Store arrays and facts, which are plain values."""
        columns = {
            "name": list(arrays),
            "shape": [list(np.shape(array)) for array in arrays.values()],
            "values": [np.asarray(array, np.float64).ravel() for array in arrays.values()],
        }
        return cls(pa.table(columns, SCHEMA), ReevaluationRecord(facts=facts))

    @classmethod
    def refusal(cls, reason: str) -> Self:
        """Store the reason why there is no re-evaluation, so that it is not tried again."""
        return cls(SCHEMA.empty_table(), ReevaluationRecord(refused=reason))

    @cached_property
    def digest(self) -> str:
        """Return the digest of the arrays."""
        return digest(self.table, SCHEMA.names)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Return the plain values stored with the arrays."""
        return self.record.facts

    def array(self, name: str) -> FloatArray:
        """Return an array by its name."""
        row = self._rows[name]
        values: FloatArray = self.table.column("values")[row].values.to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(values.reshape(self.table.column("shape")[row].as_py()))

    def has(self, name: str) -> bool:
        """Return whether there is an array of this name."""
        return name in self._rows

    @cached_property
    def _rows(self) -> dict[str, int]:
        """Map the name of each array to its row."""
        return {name: row for row, name in enumerate(self.table.column("name").to_pylist())}


class Keeper(Protocol):
    """Cache of re-evaluations: the folder of a run, or memory."""

    def is_current(self, name: str, inputs: Sequence[Any], parameters: Any) -> bool:
        """Return whether this is cached for the same inputs and parameters."""

    def step(
        self,
        kind: type[KeptArrays],
        name: str,
        inputs: Sequence[Any],
        parameters: Any,
        make: Callable[[], KeptArrays],
        compared: bool = True,
    ) -> KeptArrays | None:
        """Return the cached value for the same inputs and parameters, or make and cache it."""


def keep_halves(means: HalvedMeans) -> KeptArrays:
    """Convert means on halves to cached arrays."""
    halves = means.halves
    arrays = {
        "difference": halves.difference.values,
        "difference noise": halves.difference.noise,
        "mean": halves.mean.values,
        "mean noise": halves.mean.noise,
    }
    sides = {} if halves.sides is None else {"sides": halves.sides}
    return KeptArrays.of(
        arrays | sides,
        freedom=halves.freedom,
        means=[_mean_to_list(mean) for mean in means.names],
        refused=[[tasks, reason] for tasks, reason in means.refused.items()],
        near_duplicates=means.near_duplicates,
    )


def restore_halves(cached: KeptArrays) -> HalvedMeans | str:
    """Restore the means on halves from cached arrays, or the reason why there are none."""
    if cached.record.refused is not None:
        return cached.record.refused
    with _detect_damage():
        difference, mean = (
            HalfMoments(cached.array(name), cached.array(f"{name} noise")) for name in ("difference", "mean")
        )
        sides = cached.array("sides").astype(np.int8) if cached.has("sides") else None
        return HalvedMeans(
            Halves(difference, mean, int(cached.facts["freedom"]), sides),
            [_mean_from_list(names) for names in cached.facts["means"]],
            {tasks: str(reason) for tasks, reason in cached.facts["refused"]},
            int(cached.facts["near_duplicates"]),
        )


def keep_shuffles(shuffled: ShuffledTasks) -> KeptArrays:
    """Convert accuracies with shuffled words to cached arrays."""
    arrays = {"tasks": np.stack(list(shuffled.by_task.values()), axis=2)}
    arrays |= {f"rows {index}": rows for index, rows in enumerate(shuffled.by_row.values())}
    rows = [[tasks, *classifier] for tasks, classifier in shuffled.by_row]
    return KeptArrays.of(arrays, means=[_mean_to_list(mean) for mean in shuffled.by_task], rows=rows)


def restore_shuffles(cached: KeptArrays) -> ShuffledTasks | None:
    """Restore the accuracies with shuffled words from cached arrays; None if there are none."""
    if cached.record.refused is not None:
        return None
    with _detect_damage():
        values = cached.array("tasks")
        means = [_mean_from_list(names) for names in cached.facts["means"]]
        return ShuffledTasks(
            ShuffledMeans.of_values(values, means),
            {mean: values[:, :, column] for column, mean in enumerate(means)},
            {
                (str(tasks), Classifier(encoder, method)): cached.array(f"rows {index}")
                for index, (tasks, encoder, method) in enumerate(cached.facts["rows"])
            },
        )


def keep_values(values: Values, **facts: Any) -> KeptArrays:
    """Convert accuracies by task, [tasks] for each classifier and metric, to cached arrays."""
    arrays = {
        f"{index} {metric}": by_metric[metric] for index, by_metric in enumerate(values.values()) for metric in METRICS
    }
    return KeptArrays.of(arrays, classifiers=[list(classifier) for classifier in values], **facts)


def restore_values(cached: KeptArrays) -> Values:
    """Restore the accuracies by task from cached arrays."""
    with _detect_damage():
        return {
            Classifier(encoder, method): {metric: cached.array(f"{index} {metric}") for metric in METRICS}
            for index, (encoder, method) in enumerate(cached.facts["classifiers"])
        }


def _mean_to_list(mean: Any) -> list[str | None]:
    """Convert the key of a mean to a list of strings."""
    tasks, classifier, metric = mean
    return [tasks, *classifier, metric]


def _mean_from_list(names: Sequence[Any]) -> MeanOf:
    """Restore the key of a mean from a list of strings."""
    tasks, encoder, method, metric = names
    return tasks, Classifier(encoder, method), metric


@contextlib.contextmanager
def _detect_damage() -> Iterator[None]:
    """Convert errors caused by a damaged or modified file to InputError."""
    try:
        yield
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise InputError(
            "a cached re-evaluation is damaged: delete the run's reevaluations/ folder and run again"
        ) from error
