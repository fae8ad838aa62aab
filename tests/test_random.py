from typing import Any

import numpy as np
from scipy import stats

from shotproof.tasks.sampler import sample


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
