"""Random tasks: every choice is as likely, also with sources and with unequal queries."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from shotproof.core.errors import InputError
from shotproof.tasks.check import check_tasks
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from shotproof.tasks.uniform.random import Random


def test_classes_and_items_are_drawn_uniformly(make_data: Any) -> None:
    catalog, _ = make_data(classes=6, items=10)
    tasks = sample(catalog, "random", way=3, shot=2, query=3, tasks=4000).table
    counts = np.unique(tasks.column("label").to_pylist(), return_counts=True)[1]
    assert stats.chisquare(counts).pvalue > 1e-4
    for side in ("support", "query"):
        counts = np.unique(tasks.column(side).combine_chunks().flatten().to_pylist(), return_counts=True)[1]
        assert len(counts) == 60
        assert stats.chisquare(counts).pvalue > 1e-4


def test_with_sources_items_are_drawn_uniformly_too(make_data: Any) -> None:
    catalog, _ = make_data(classes=3, items=12, source_of=2)
    tasks = sample(catalog, "random", way=2, shot=2, query=4, tasks=3000).table
    counts = np.unique(tasks.column("support").combine_chunks().flatten().to_pylist(), return_counts=True)[1]
    assert stats.chisquare(counts).pvalue > 1e-4


def queries_of(tasks: TaskSet) -> Any:
    return np.array([len(items) for items in tasks.table.column("query").to_pylist()])


@pytest.mark.parametrize("source_of", [None, 2])
def test_unequal_queries_add_up_and_keep_to_the_items_there_are(make_data: Any, source_of: int | None) -> None:
    catalog, _ = make_data(classes=6, items=24, source_of=source_of)
    design = {"way": 4, "shot": 2, "query": 5, "tasks": 100}
    tasks = sample(catalog, "random(query_dirichlet=0.3)", **design)
    counts = queries_of(tasks).reshape(-1, 4)
    assert (counts.sum(axis=1) == 20).all()
    assert counts.min() == 0
    assert counts.max() <= (22 if source_of is None else 22 - 2)
    assert tasks.record.summary["no_query_share"] == pytest.approx(np.mean(counts == 0))
    assert check_tasks(tasks, catalog) == []
    assert tasks.first(7).digest == sample(catalog, "random(query_dirichlet=0.3)", **{**design, "tasks": 7}).digest


def test_with_unequal_queries_items_are_drawn_uniformly_too(make_data: Any) -> None:
    catalog, _ = make_data(classes=3, items=30)
    tasks = sample(catalog, "random(query_dirichlet=2)", way=2, shot=2, query=5, tasks=1500).table
    for side in ("support", "query"):
        counts = np.unique(tasks.column(side).combine_chunks().flatten().to_pylist(), return_counts=True)[1]
        # Queries come in unequal numbers, which spreads the counts of items of one class no more than at random.
        assert len(counts) == 90
        assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("alpha", [0, -1, float("inf"), True, "2"])
def test_a_parameter_that_no_distribution_has(alpha: Any) -> None:
    with pytest.raises(InputError, match=r"query_dirichlet: expected a number of at least 0.01 or None, found"):
        Random(query_dirichlet=alpha)
