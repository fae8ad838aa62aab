from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.catalog.catalog import Catalog
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.tasks.sampler import sample
from tests.drawn_results import values_of


def notes(sizes: list[int], seed: int = 0) -> tuple[list[str], float]:
    """The notes on a world with classes of these sizes, the first half far apart, and by how much depletion differs."""
    random = np.random.default_rng(seed)
    far = np.arange(len(sizes)) < len(sizes) // 2
    means = random.normal(size=(len(sizes), 8)) * np.where(far, 3.0, 0.4)[:, None]
    names = [f"{c:03d}/{i:04d}" for c, size in enumerate(sizes) for i in range(size)]
    values = np.concatenate([means[c] + random.normal(size=(size, 8)) for c, size in enumerate(sizes)])
    columns = {"item": names, "path": names, "label": [name[:3] for name in names], "split": ["test"] * len(names)}
    catalog, features = Catalog(pa.table(columns)), Features.from_array(names, values)
    tasks = sample(catalog, "random", way=4, shot=2, query=5, tasks=300)
    results = evaluate(tasks, features, ["ncc", "cosine"])
    inputs = Inputs([results], [tasks], [catalog], [features])
    comparison = compare(inputs, intervals=["sampler", "depletion"])
    depleted = evaluate(sample(catalog, "depletion", way=4, shot=2, query=5), features, ["ncc", "cosine"])
    means_of = [
        np.mean([values_of(one, name, "acc").mean() for name in ("ncc", "cosine")]) for one in (depleted, results)
    ]
    return comparison.notes, float(means_of[0] - means_of[1])


def test_large_classes_that_are_easy_raise_the_open_mean_and_that_is_said() -> None:
    told, difference = notes([200] * 6 + [20] * 6)
    (note,) = (one for one in told if "Acc is" in one)
    found = re.search(r"Acc is ([0-9.]+) points higher .* ([+-][0-9.]+) points come of large classes", note)
    assert found is not None
    assert float(found[1]) == pytest.approx(difference, abs=0.051)
    # Random tasks use all classes alike, depletion the large ones: nearly all of the difference.
    assert 0.5 * difference < float(found[2]) < 1.5 * difference


def test_classes_of_one_size_are_no_reason() -> None:
    told, _ = notes([60] * 12)
    assert not any("large classes" in note for note in told)
