"""Methods that put all queries into few classes, and variants that do not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from shotproof.evaluation.batches import Part
from shotproof.evaluation.evaluate import evaluate
from shotproof.evaluation.remarks import collapsed_tasks
from shotproof.features.features import Features
from shotproof.functional.task_rows import centered_cosines, centered_rows
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from tests.analysis.test_compare import make_world

NAMES = ("laplacianshot", "paddle", "alpha-tim(steps=100)")
ANYWHERE = (
    "laplacianshot(variant='anywhere')",
    "paddle(variant='anywhere')",
    "alpha-tim(steps=100, variant='anywhere')",
)


def test_tasks_are_counted_one_by_one() -> None:
    random = np.random.default_rng(0)
    sizes = [[4, 4, 4, 4], [3, 3, 0, 3], [1, 1, 1], [9, 0], [5, 5]]
    slot = np.concatenate([np.repeat(np.arange(len(of)), of) for of in sizes])
    first = np.cumsum([0, *map(sum, sizes)])
    predicted = random.integers(-1, 3, size=(40, len(slot)))
    predicted[:20, : first[2]] = random.integers(0, 2, size=(20, first[2]))
    part = Part(np.zeros_like(slot), slot, np.concatenate(sizes), first)
    found, counted = collapsed_tasks(part, predicted)
    expected = []
    for of_method in predicted:
        tasks = [of_method[first[t] : first[t + 1]] for t in range(len(sizes))]
        answered = [len(set(task[task >= 0].tolist())) for task in tasks]
        # The third has too few queries, the fourth asks of one class alone.
        expected.append(sum(answered[t] <= most for t, most in ((0, 2), (1, 1), (4, 1))))
    assert found.tolist() == expected
    assert counted == 3
    assert max(expected) > min(expected)


@pytest.fixture(scope="module")
def shifted() -> tuple[TaskSet, Features]:
    """Features that are far from centered: cosines near 1."""
    catalog, features = make_world(classes=8, items=30)
    tasks = sample(catalog, "random", way=5, shot=5, query=10, tasks=40)
    return tasks, Features.from_array(list(catalog.items), features.array + 10)


def test_a_collapse_is_told_with_what_helps_and_is_in_the_record(shifted: tuple[TaskSet, Features]) -> None:
    for name, helps in (("laplacianshot", "a lower strength"), ("paddle", "a lower penalty")):
        with pytest.warns(RuntimeWarning, match="tasks .*at most half") as caught:
            results = evaluate(*shifted, name)
        (message,) = (str(one.message) for one in caught)
        assert f"method '{name}': in {results.record.methods[0].collapsed} of 40 tasks" in message
        assert all(part in message for part in ("variant='anywhere'", "transform center", helps))
        assert results.record.methods[0].collapsed >= 4


def test_the_variant_for_any_features_does_not_collapse(shifted: tuple[TaskSet, Features]) -> None:
    tasks, features = shifted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        published = evaluate(tasks, features, list(NAMES))
    moved = Features.from_array(features.table.column("item").to_pylist(), 1000 * (features.array - 10) + 3)
    plain = evaluate(tasks, features, "ncc").counts("ncc").accuracy_by_task().mean()
    for given in (features, moved):
        results = evaluate(tasks, given, list(ANYWHERE))  # without a warning
        assert [method.collapsed for method in results.record.methods] == [0, 0, 0]
        for name, former in zip(ANYWHERE, NAMES, strict=True):
            reached = results.counts(name).accuracy_by_task().mean()
            assert reached > plain - 10  # rows of length 1 have lost what the offset hides
            assert reached >= published.counts(former).accuracy_by_task().mean() - 1


def test_cosines_of_centered_rows_are_found_from_cosines() -> None:
    rows = torch.randn(2, 7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 2
    unit = torch.nn.functional.normalize(rows, dim=-1)
    centered = centered_rows(rows)
    torch.testing.assert_close(centered_cosines(unit @ unit.mT), centered @ centered.mT)
