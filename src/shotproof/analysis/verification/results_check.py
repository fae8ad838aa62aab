"""Check of results: whether they are possible on their task sets, and whether they can be reproduced."""

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
    """Yield the problems of results, in sentences; the counts themselves were validated when they were read.

    Args:
        results: results of any number of methods
        tasks: task sets that must include the one the results are on
        recomputation: how to recompute the counts; None skips this
        methods: methods already built, by their spelling in the results; others are built from it
    """
    digest = results.record.tasks_digest
    task_set = next(
        (candidate for candidate in tasks if candidate.digest == digest),
        tasks[0] if digest is None and len(tasks) == 1 else None,
    )
    if task_set is None:
        digests = ", ".join(candidate.digest for candidate in tasks)
        yield f"the results are on task set {digest or '(not recorded)'}, which is not among those given: {digests}"
        return
    yield from _origin_problems(results, task_set, None if recomputation is None else recomputation.features)
    row_problems = {method: _first_row_problem(results.rows_of(method), task_set) for method in results.methods}
    yield from (f"method '{method}': {reason}" for method, reason in row_problems.items() if reason)
    valid_methods = [method for method, reason in row_problems.items() if not reason]
    if recomputation is not None and valid_methods:
        yield from _count_problems(results, task_set, valid_methods, recomputation, methods or {})


def _origin_problems(results: Results, tasks: TaskSet, features: Features | None) -> Iterator[str]:
    """Yield what the results state about their tasks and features that contradicts the files themselves."""
    stated, recorded = results.record.tasks, tasks.record
    facts: list[tuple[str, object, object]] = [
        ("sampler", stated.sampler and stated.sampler.name, recorded.sampler and recorded.sampler.name),
        *((name, getattr(stated, name), getattr(recorded, name)) for name in ("split", "way", "shot", "query", "seed")),
    ]
    if features is not None and features.digest == results.record.features_digest:
        stated_encoder, actual_encoder = results.record.features.encoder, features.record.encoder
        facts.append(("encoder", stated_encoder and str(stated_encoder), actual_encoder and str(actual_encoder)))
    for name, stated_value, actual_value in facts:
        if None not in (stated_value, actual_value) and stated_value != actual_value:
            yield f"{name}: the results state {stated_value!r}, the file with that digest states {actual_value!r}"


def _first_row_problem(rows: pa.Table, tasks: TaskSet) -> str | None:
    """Return the first difference between the rows of a method and its task set: tasks, classes and queries."""
    result_rows, task_rows = (_numbers(table) for table in (rows, tasks.table))
    missing, unknown = (
        np.setdiff1d(task_rows[:, 0], result_rows[:, 0]),
        np.setdiff1d(result_rows[:, 0], task_rows[:, 0]),
    )
    if len(missing):
        return f"{len(missing):,} of {len(tasks):,} tasks are missing, the first is task {missing[0]}"
    if len(unknown):
        return f"task {unknown[0]} is not in the task set"
    if not np.array_equal(result_rows, task_rows):
        index = next(
            (row for row, (a, b) in enumerate(zip(result_rows, task_rows, strict=False)) if (a != b).any()), -1
        )
        return f"task {task_rows[index, 0]} has other classes than in the task set"
    for name, expected in (
        ("label", tasks.table.column("label")),
        ("n_query", pc.list_value_length(tasks.table.column("query"))),
    ):
        is_equal = np.asarray(pc.equal(rows.column(name), expected.cast(rows.schema.field(name).type)))
        if not is_equal.all():
            row = int(np.argmin(is_equal))
            return (
                f"task {task_rows[row, 0]}, slot {task_rows[row, 1]}: expected {name} {expected[row].as_py()!r}, found "
                f"{rows.column(name)[row].as_py()!r}"
            )
    return None


def _numbers(table: pa.Table) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return the task and slot of each row, [rows, 2]."""
    return np.stack([table.column(name).to_numpy().astype(np.int64) for name in ("task", "slot")], axis=1)


def _count_problems(
    results: Results,
    tasks: TaskSet,
    methods: Sequence[str],
    recomputation: Recomputation,
    built: Mapping[str, Method],
) -> Iterator[str]:
    """Yield each method whose recomputed counts differ, with the first difference."""
    selected = recomputation.chosen(tasks)
    built_methods = [built.get(spelling) or make_method(spelling) for spelling in methods]
    recomputed = recomputation.results(selected, built_methods, results.record.seed or 0)
    for method, recomputed_method in zip(methods, recomputed.methods, strict=True):
        rows = results.rows_of(method)
        rows = rows.filter(pc.is_in(rows.column("task"), value_set=selected.table.column("task").combine_chunks()))
        stated, recomputed_counts = (
            table.column("n_correct").to_numpy() for table in (rows, recomputed.rows_of(recomputed_method))
        )
        if not np.array_equal(stated, recomputed_counts):
            row = rows.slice(int(np.argmax(stated != recomputed_counts)), 1).to_pylist()[0]
            differing = len(np.unique(rows.column("task").to_numpy()[stated != recomputed_counts]))
            yield (
                f"method '{method}': task {row['task']}, class '{row['label']}': {row['n_correct']} of "
                f"{row['n_query']} correct, recomputed {recomputed_counts[int(np.argmax(stated != recomputed_counts))]}"
                f"; {differing:,} of {len(selected):,} tasks differ"
            )


@dataclass(frozen=True)
class Recomputation:
    """Recomputation of answers.

    features: features to evaluate methods on; model, catalog: used instead for methods that adapt a network
    sample: number of tasks of each set to recompute; None means all
    seed: seed of the selection of tasks
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
        """Select the tasks to recompute; they keep their numbers, which seed methods that use random numbers."""
        if self.sample is None or self.sample >= len(tasks):
            return tasks
        keys = draws.bits(self.seed, np.arange(len(tasks)))
        is_selected = np.zeros(len(tasks), dtype=np.bool_)
        is_selected[np.argsort(keys, kind="stable")[: self.sample]] = True
        return TaskSet(tasks.table.filter(pa.array(np.repeat(is_selected, np.diff(tasks.starts)))), tasks.record)

    def results(self, tasks: TaskSet, methods: Sequence[Method], seed: int) -> Results:
        """Evaluate methods on tasks; `seed` is for methods that use random numbers."""
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
