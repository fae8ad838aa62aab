"""Whether results are possible on their task sets, and whether they come out again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.core import draws
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.method import Method, make_method
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model


def results_problems(
    results: Results,
    tasks: Sequence[TaskSet],
    recomputation: Recomputation | None = None,
    methods: Mapping[str, Method] | None = None,
) -> Iterator[str]:
    """What is wrong with results, in sentences; that counts are possible was seen when they were read.

    Args:
        results: of any number of methods
        tasks: among which the set that they are on must be
        recomputation: how they are computed anew; None: they are not
        methods: made already, by the spelling that the results have; others are made from it
    """
    digest = results.record.tasks_digest
    own = next((one for one in tasks if one.digest == digest), tasks[0] if digest is None and len(tasks) == 1 else None)
    if own is None:
        known = ", ".join(one.digest for one in tasks)
        yield f"they are on the task set {digest or '(which they do not name)'}, which is none of {known}"
        return
    yield from _other_origin(results, own, None if recomputation is None else recomputation.features)
    wrong = {method: _other_rows(results.rows_of(method), own) for method in results.methods}
    yield from (f"method '{method}': {reason}" for method, reason in wrong.items() if reason)
    sound = [method for method, reason in wrong.items() if not reason]
    if recomputation is not None and sound:
        yield from _other_counts(results, own, sound, recomputation, methods or {})


def _other_origin(results: Results, tasks: TaskSet, features: Features | None) -> Iterator[str]:
    """What results say of their tasks and features, if these say something else of themselves."""
    stated, found = results.record.tasks, tasks.record
    facts: list[tuple[str, object, object]] = [
        ("sampler", stated.sampler and stated.sampler.name, found.sampler and found.sampler.name),
        *((name, getattr(stated, name), getattr(found, name)) for name in ("split", "way", "shot", "query", "seed")),
    ]
    if features is not None and features.digest == results.record.features_digest:
        one, other = results.record.features.encoder, features.record.encoder
        facts.append(("encoder", one and str(one), other and str(other)))
    for name, said, true in facts:
        if None not in (said, true) and said != true:
            yield f"{name}: it says {said!r}, the file that it names by digest says {true!r}"


def _other_rows(rows: pa.Table, tasks: TaskSet) -> str | None:
    """What first tells the rows of a method from those of its task set: all tasks, their classes and queries."""
    found, wanted = (_numbers(table) for table in (rows, tasks.table))
    missing, strange = np.setdiff1d(wanted[:, 0], found[:, 0]), np.setdiff1d(found[:, 0], wanted[:, 0])
    if len(missing):
        return f"{len(missing):,} of {len(tasks):,} tasks are missing, the first is task {missing[0]}"
    if len(strange):
        return f"task {strange[0]} is not in the task set"
    if not np.array_equal(found, wanted):
        place = next((row for row, (a, b) in enumerate(zip(found, wanted, strict=False)) if (a != b).any()), -1)
        return f"task {wanted[place, 0]} has other classes than in the task set"
    for name, expected in (
        ("label", tasks.table.column("label")),
        ("n_query", pc.list_value_length(tasks.table.column("query"))),
    ):
        same = np.asarray(pc.equal(rows.column(name), expected.cast(rows.schema.field(name).type)))
        if not same.all():
            row = int(np.argmin(same))
            return (
                f"task {wanted[row, 0]}, slot {wanted[row, 1]}: expected {name} {expected[row].as_py()!r}, found "
                f"{rows.column(name)[row].as_py()!r}"
            )
    return None


def _numbers(table: pa.Table) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.stack([table.column(name).to_numpy().astype(np.int64) for name in ("task", "slot")], axis=1)


def _other_counts(
    results: Results,
    tasks: TaskSet,
    methods: Sequence[str],
    recomputation: Recomputation,
    made: Mapping[str, Method],
) -> Iterator[str]:
    chosen = recomputation.chosen(tasks)
    ready = [made.get(spelled) or make_method(spelled) for spelled in methods]
    again = recomputation.results(chosen, ready, results.record.seed or 0)
    for method, anew in zip(methods, again.methods, strict=True):
        rows = results.rows_of(method)
        rows = rows.filter(pc.is_in(rows.column("task"), value_set=chosen.table.column("task").combine_chunks()))
        stated, found = (one.column("n_correct").to_numpy() for one in (rows, again.rows_of(anew)))
        if not np.array_equal(stated, found):
            row = rows.slice(int(np.argmax(stated != found)), 1).to_pylist()[0]
            differing = len(np.unique(rows.column("task").to_numpy()[stated != found]))
            yield (
                f"method '{method}': task {row['task']}, class '{row['label']}': {row['n_correct']} of "
                f"{row['n_query']} correct, computed anew {found[int(np.argmax(stated != found))]}; "
                f"{differing:,} of {len(chosen):,} tasks differ"
            )


@dataclass(frozen=True)
class Recomputation:
    """How answers are computed anew.

    features: that methods are evaluated on; model, catalog: in their place, of methods that adapt a network
    sample: on how many tasks of each set; None: on all
    seed: which tasks these are
    """

    features: Features | None = None
    model: Model | None = None
    catalog: Catalog | None = None
    sample: int | None = None
    seed: int = 0
    runtime: Runtime | None = None

    def __post_init__(self) -> None:
        if self.sample is not None and self.sample < 1:
            raise InputError(f"sample: expected a number of tasks above 0, found {self.sample}")

    def chosen(self, tasks: TaskSet) -> TaskSet:
        """The tasks that are computed anew; they keep their numbers, which methods that draw go by."""
        if self.sample is None or self.sample >= len(tasks):
            return tasks
        keys = draws.bits(self.seed, np.arange(len(tasks)))
        kept = np.zeros(len(tasks), dtype=np.bool_)
        kept[np.argsort(keys, kind="stable")[: self.sample]] = True
        return TaskSet(tasks.table.filter(pa.array(np.repeat(kept, np.diff(tasks.starts)))), tasks.record)

    def results(self, tasks: TaskSet, methods: Sequence[Method], seed: int) -> Results:
        """What methods answer on tasks; seed: of methods that draw."""
        if self.features is not None:
            return evaluate(tasks, self.features, methods, seed=seed, allow_seen=True, runtime=self.runtime)
        return evaluate(
            tasks,
            methods=methods,
            catalog=self.catalog,
            model=self.model,
            seed=seed,
            allow_seen=True,
            runtime=self.runtime,
        )
