"""The worst of many: against a search through all candidates with SciPy and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.metrics import log_loss

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, Mismatch
from shotproof.evaluation import filter as filter_module
from shotproof.evaluation.filter import BoundFilter, Filter
from shotproof.features.features import Features
from shotproof.tasks.sampler import SamplerInputs, sample
from shotproof.tasks.taskset import TaskSet, TaskShape
from tests.tasks.uniform.test_depletion import catalog_of

DESIGN: dict[str, Any] = {"way": 3, "shot": 2, "query": 4}


@pytest.fixture(scope="module")
def data() -> tuple[Catalog, Features]:
    catalog = catalog_of([20] * 6)
    rng = np.random.default_rng(1)
    values = np.repeat(rng.normal(size=(6, 5)), 20, axis=0) + rng.normal(size=(120, 5))
    return catalog, Features.from_array(catalog.items, values)


def difficulty(tasks: TaskSet, features: Features) -> tuple[list[float], list[float]]:
    """Accuracy and mean cross-entropy of nearest centroids, task by task."""
    accuracies, losses = [], []
    rows = tasks.table.to_pylist()
    value = dict(zip(features.table.column("item").to_pylist(), features.array.astype(float), strict=True))
    for start, stop in zip(tasks.starts[:-1], tasks.starts[1:], strict=True):
        task = rows[start:stop]
        sides = {}
        for side in ("support", "query"):
            sides[side] = np.array([value[i] for row in task for i in row[side]])
            sides[f"{side} labels"] = np.array([row["slot"] for row in task for _ in row[side]])
        centroids = [sides["support"][sides["support labels"] == slot].mean(axis=0) for slot in range(len(task))]
        logits = -cdist(sides["query"], centroids, "sqeuclidean")
        accuracies.append(float(np.mean(logits.argmax(axis=1) == sides["query labels"])))
        losses.append(log_loss(sides["query labels"], softmax(logits, axis=1), labels=range(len(task))))
    return accuracies, losses


@pytest.mark.parametrize("base", ["random", "meta-dataset"])
@pytest.mark.parametrize(
    ("by", "keep"), [("accuracy", "worst"), ("accuracy", "best"), ("loss", "worst"), ("loss", "best")]
)
def test_the_candidate_is_chosen_as_a_search_through_all_does(
    data: tuple[Catalog, Features], base: str, by: str, keep: str
) -> None:
    catalog, features = data
    sampler = Filter(candidates=7, by=by, keep=keep, base=base)
    tasks = sample(catalog, sampler, features=features, tasks=6, **DESIGN)
    all_candidates = sample(catalog, base, tasks=42, **DESIGN)
    accuracy, loss = difficulty(all_candidates, features)
    rows, candidates = tasks.table.to_pylist(), all_candidates.table.to_pylist()
    sign = 1 if keep == "worst" else -1
    for task in range(6):
        numbers = range(7 * task, 7 * task + 7)
        order = {"accuracy": lambda n: (accuracy[n], -loss[n]), "loss": lambda n: (-loss[n], accuracy[n])}[by]
        best = min(numbers, key=lambda n: tuple(sign * value for value in order(n)))
        chosen = [row for row in candidates if row["task"] == best]
        found = [row for row in rows if row["task"] == task]
        assert [(r["label"], r["support"], r["query"]) for r in found] == [
            (r["label"], r["support"], r["query"]) for r in chosen
        ]
        assert found[0]["accuracy"] == pytest.approx(accuracy[best])
        assert found[0]["loss"] == pytest.approx(loss[best])
        assert found[0]["candidates_accuracy"] == pytest.approx(np.mean([accuracy[n] for n in numbers]))
        assert found[0]["candidates_loss"] == pytest.approx(np.mean([loss[n] for n in numbers]))


@pytest.mark.parametrize("keep", ["worst", "best"])
@pytest.mark.parametrize("by", ["accuracy", "loss"])
def test_the_lowest_of_all_are_those_of_a_ranking_of_all(
    data: tuple[Catalog, Features], monkeypatch: pytest.MonkeyPatch, by: str, keep: str
) -> None:
    catalog, features = data
    monkeypatch.setattr(filter_module, "_CANDIDATES_AT_A_TIME", 16)
    tasks = sample(catalog, Filter(of=50, by=by, keep=keep), features=features, tasks=8, **DESIGN)
    everything = sample(catalog, "random", tasks=50, **DESIGN)
    accuracy, loss = difficulty(everything, features)
    sign = 1 if keep == "worst" else -1
    order = {"accuracy": lambda n: (accuracy[n], -loss[n]), "loss": lambda n: (-loss[n], accuracy[n])}[by]
    lowest = sorted(range(50), key=lambda n: tuple(sign * value for value in order(n)))[:8]
    rows, candidates = tasks.table.to_pylist(), everything.table.to_pylist()
    same = ("label", "support", "query")
    assert [[row[name] for name in same] for row in rows] == [
        [row[name] for name in same] for number in lowest for row in candidates[3 * number : 3 * number + 3]
    ]
    assert [row["accuracy"] for row in rows[::3]] == pytest.approx([accuracy[n] for n in lowest])
    assert [row["candidates_loss"] for row in rows] == pytest.approx([np.mean(loss)] * 24)
    assert [row["task"] for row in rows[::3]] == list(range(8))


def test_blocks_and_all_exclude_each_other(data: tuple[Catalog, Features]) -> None:
    with pytest.raises(InputError, match=r"candidates \(7 per task\) and of \(50 in total\) exclude each other"):
        sample(data[0], "filter(of=50, candidates=7)", features=data[1], **DESIGN)


def test_no_more_than_all_can_be_kept(data: tuple[Catalog, Features]) -> None:
    catalog, features = data
    everything = sample(catalog, "filter(of=5)", features=features, tasks=6, **DESIGN)
    assert len(everything) == everything.record.tasks == 5


def test_one_candidate_gives_the_base_samplers_tasks(data: tuple[Catalog, Features]) -> None:
    catalog, features = data
    filtered = sample(catalog, "filter(candidates=1)", features=features, tasks=20, **DESIGN)
    assert filtered.digest == sample(catalog, "random", tasks=20, **DESIGN).digest


def test_many_items_are_scored_without_their_inner_products(
    data: tuple[Catalog, Features], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, features = data
    tasks = sample(catalog, "random", tasks=20, **DESIGN)
    inputs = SamplerInputs(catalog, TaskShape(3, 2, 4), 0, features=features)
    by_gram = BoundFilter(Filter(), inputs).difficulty(tasks)
    monkeypatch.setattr(filter_module, "_MOST_GRAM_ITEMS", 10)
    gathered = BoundFilter(Filter(), inputs).difficulty(tasks)
    assert by_gram.accuracy.tolist() == gathered.accuracy.tolist()
    np.testing.assert_allclose(by_gram.loss, gathered.loss)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        ("filter", "sampler 'filter' needs features"),
        ("filter(by='los')", "by: expected accuracy or loss, found 'los': did you mean 'loss'"),
        ("filter(keep='least')", "keep: expected worst or best, found 'least'"),
        ("filter(base='fewstab')", "base: expected random or meta-dataset, found 'fewstab'"),
        ("filter(candidates=0)", "candidates: expected a whole number from 1 to 10,000,000, found 0"),
        ("filter(of=0)", "of: expected a whole number from 1 to 10,000,000"),
    ],
)
def test_bad_input(data: tuple[Catalog, Features], sampler: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample(data[0], sampler, **DESIGN)


def test_features_that_lack_an_item(data: tuple[Catalog, Features]) -> None:
    catalog, features = data
    with pytest.raises(Mismatch, match=r"the features lack 1 of the \d+ items, e.g. 'class00/item000'"):
        sample(catalog, "filter", features=Features(features.table.slice(1)), **DESIGN)
