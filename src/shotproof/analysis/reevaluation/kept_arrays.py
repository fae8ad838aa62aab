"""Re-evaluations as files: what intervals need beyond the results, so that nothing is evaluated twice."""

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
    """The record of a re-evaluation.

    refused: why there is none; None if there is one
    facts: all that is no array
    """

    refused: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class KeptArrays(Tabular):
    """Arrays by name, with what they are of, as one file holds them.

    Example:
        >>> kept = KeptArrays.of({"sides": np.eye(2)}, freedom=3)
        >>> kept.array("sides").tolist(), kept.facts["freedom"]
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
        """Keep arrays and facts, which are plain values."""
        columns = {
            "name": list(arrays),
            "shape": [list(np.shape(array)) for array in arrays.values()],
            "values": [np.asarray(array, np.float64).ravel() for array in arrays.values()],
        }
        return cls(pa.table(columns, SCHEMA), ReevaluationRecord(facts=facts))

    @classmethod
    def refusal(cls, reason: str) -> Self:
        """Keep the reason why there is nothing, so that it is not looked for again."""
        return cls(SCHEMA.empty_table(), ReevaluationRecord(refused=reason))

    @cached_property
    def digest(self) -> str:
        """The digest of the arrays."""
        return digest(self.table, SCHEMA.names)

    @property
    def facts(self) -> Mapping[str, Any]:
        """All that is no array."""
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
        return {name: row for row, name in enumerate(self.table.column("name").to_pylist())}


class Keeper(Protocol):
    """What keeps re-evaluations: the folder of a run, or memory."""

    def is_current(self, name: str, inputs: Sequence[Any], parameters: Any) -> bool:
        """Return whether this was made before, from the same inputs by the same parameters."""

    def step(
        self,
        kind: type[KeptArrays],
        name: str,
        inputs: Sequence[Any],
        parameters: Any,
        make: Callable[[], KeptArrays],
        compared: bool = True,
    ) -> KeptArrays | None:
        """Return what was made before from the same inputs by the same parameters, or else make and keep it."""


def keep_halves(means: HalvedMeans) -> KeptArrays:
    """Keep means on halves."""
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
        means=[_named(mean) for mean in means.names],
        refused=[[tasks, reason] for tasks, reason in means.refused.items()],
        near_duplicates=means.near_duplicates,
    )


def kept_halves(kept: KeptArrays) -> HalvedMeans | str:
    """Return the means on halves that were kept, or why there are none."""
    if kept.record.refused is not None:
        return kept.record.refused
    with _undamaged():
        difference, mean = (
            HalfMoments(kept.array(name), kept.array(f"{name} noise")) for name in ("difference", "mean")
        )
        sides = kept.array("sides").astype(np.int8) if kept.has("sides") else None
        return HalvedMeans(
            Halves(difference, mean, int(kept.facts["freedom"]), sides),
            [_mean_of(named) for named in kept.facts["means"]],
            {tasks: str(reason) for tasks, reason in kept.facts["refused"]},
            int(kept.facts["near_duplicates"]),
        )


def keep_shuffles(shuffled: ShuffledTasks) -> KeptArrays:
    """Keep accuracies with shuffled words."""
    arrays = {"tasks": np.stack(list(shuffled.by_task.values()), axis=2)}
    arrays |= {f"rows {number}": rows for number, rows in enumerate(shuffled.by_row.values())}
    rows = [[tasks, *classifier] for tasks, classifier in shuffled.by_row]
    return KeptArrays.of(arrays, means=[_named(mean) for mean in shuffled.by_task], rows=rows)


def kept_shuffles(kept: KeptArrays) -> ShuffledTasks | None:
    """Return the accuracies with shuffled words that were kept; None if there are none."""
    if kept.record.refused is not None:
        return None
    with _undamaged():
        values = kept.array("tasks")
        means = [_mean_of(named) for named in kept.facts["means"]]
        return ShuffledTasks(
            ShuffledMeans.of_values(values, means),
            {mean: values[:, :, place] for place, mean in enumerate(means)},
            {
                (str(tasks), Classifier(encoder, method)): kept.array(f"rows {number}")
                for number, (tasks, encoder, method) in enumerate(kept.facts["rows"])
            },
        )


def keep_values(values: Values, **facts: Any) -> KeptArrays:
    """Keep accuracies by task, [tasks] of each classifier and metric."""
    arrays = {f"{number} {metric}": of[metric] for number, of in enumerate(values.values()) for metric in METRICS}
    return KeptArrays.of(arrays, classifiers=[list(classifier) for classifier in values], **facts)


def kept_values(kept: KeptArrays) -> Values:
    """Return the accuracies by task that were kept."""
    with _undamaged():
        return {
            Classifier(encoder, method): {metric: kept.array(f"{number} {metric}") for metric in METRICS}
            for number, (encoder, method) in enumerate(kept.facts["classifiers"])
        }


def _named(mean: Any) -> list[str | None]:
    tasks, classifier, metric = mean
    return [tasks, *classifier, metric]


def _mean_of(named: Sequence[Any]) -> MeanOf:
    tasks, encoder, method, metric = named
    return tasks, Classifier(encoder, method), metric


@contextlib.contextmanager
def _undamaged() -> Iterator[None]:
    """Turn what a file that was tampered with leads to into an error that says so."""
    try:
        yield
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise InputError("a kept re-evaluation is damaged: remove the run's reevaluations/ and run it again") from error
