"""Classes near each other: the probabilities against all ordered selections, the coarsity against a loop."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from shotproof.core.errors import InputError, Mismatch
from shotproof.features.features import Features
from shotproof.tasks.sampler import sample
from shotproof.tasks.semantic import Semantic
from tests.tasks.uniform.test_depletion import catalog_of

MATRIX = np.array([[0, 1, 4, 6], [1, 0, 5, 5], [4, 5, 0, 2], [6, 5, 2, 0]], dtype=float)


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    names = [f"class{c:02d}" for c in range(4)]
    rows = [f"{name},{','.join(map(str, row))}" for name, row in zip(names, MATRIX, strict=True)]
    (tmp_path / "matrix.csv").write_text("\n".join([f"class,{','.join(names)}", *rows]))
    return tmp_path / "matrix.csv"


def expected(way: int, temperature: float) -> dict[tuple[int, ...], float]:
    """The probability of each ordered choice of classes, as the paper has it."""
    mean = MATRIX.sum() / 12
    potential = np.exp(-MATRIX / (temperature * mean))
    chances = {}
    for order in permutations(range(4), way):
        chance = 1 / 4
        for place in range(1, way):
            before, left = list(order[:place]), [c for c in range(4) if c not in order[:place]]
            weight = {c: potential[before, c].prod() for c in left}
            chance *= weight[order[place]] / sum(weight.values())
        chances[order] = chance
    return chances


def test_classes_are_drawn_with_the_papers_probabilities(matrix: Path) -> None:
    sampler = Semantic(class_distances=matrix, temperature=0.6)  # type: ignore[arg-type]
    tasks = sample(catalog_of([6] * 4), sampler, way=3, shot=1, query=2, tasks=6000)
    labels = [int(label[5:]) for label in tasks.table.column("label").to_pylist()]
    drawn = Counter(tuple(labels[start : start + 3]) for start in range(0, len(labels), 3))
    chances = expected(3, 0.6)
    observed = [drawn[order] for order in chances]
    assert sum(observed) == 6000
    assert stats.chisquare(observed, np.array(list(chances.values())) * 6000).pvalue > 1e-4


def test_the_coarsity_is_the_mean_squared_distance_of_pairs(matrix: Path) -> None:
    tasks = sample(catalog_of([6] * 4), Semantic(class_distances=str(matrix)), way=3, shot=1, query=2, tasks=50)
    rows = tasks.table.to_pylist()
    for start in tasks.starts[:-1]:
        classes = [int(row["label"][5:]) for row in rows[start : start + 3]]
        squares = [MATRIX[a, b] ** 2 for a, b in permutations(classes, 2)]
        assert [row["coarsity"] for row in rows[start : start + 3]] == pytest.approx([np.mean(squares)] * 3)


def test_a_low_temperature_takes_the_nearest_class_and_a_high_one_any(matrix: Path) -> None:
    near, wide = (
        sample(catalog_of([6] * 4), Semantic(class_distances=str(matrix), temperature=t), way=2, shot=1, query=2)
        for t in (0.01, 1e6)
    )
    pairs = near.table.column("label").to_pylist()
    nearest = {"class00": "class01", "class01": "class00", "class02": "class03", "class03": "class02"}
    assert all(nearest[a] == b for a, b in zip(pairs[::2], pairs[1::2], strict=True))
    counts = Counter(zip(*[iter(wide.table.column("label").to_pylist())] * 2, strict=True))
    assert len(counts) == 12
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4
    assert near.record.summary["coarsity_mean"] < wide.record.summary["coarsity_mean"]


def test_features_give_the_distances_of_class_means() -> None:
    catalog = catalog_of([6] * 4)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(24, 3)).astype(np.float32)
    features = Features.from_array(catalog.items, values)
    tasks = sample(catalog, "semantic", features=features, way=2, shot=1, query=2, tasks=40)
    means = values.reshape(4, 6, 3).mean(axis=1)
    for row in tasks.table.to_pylist()[::2]:
        assert row["coarsity"] > 0
    first = tasks.table.slice(0, 2).to_pylist()
    a, b = (means[int(row["label"][5:])] for row in first)
    assert first[0]["coarsity"] == pytest.approx(float(((a - b) ** 2).sum()), rel=1e-5)


def test_with_a_file_features_are_not_used(matrix: Path) -> None:
    catalog = catalog_of([6] * 4)
    features = Features.from_array(catalog.items, np.zeros((24, 2)))
    with pytest.warns(UserWarning, match="sampler 'semantic' does not use features"):
        tasks = sample(
            catalog, Semantic(class_distances=str(matrix)), features=features, way=2, shot=1, query=2, tasks=5
        )
    assert list(tasks.record.sources) == ["catalog"]


def test_the_file_is_recorded_and_must_be_the_same_when_tasks_are_drawn_anew(matrix: Path) -> None:
    catalog = catalog_of([6] * 4)
    made = sample(catalog, Semantic(class_distances=str(matrix)), way=2, shot=1, query=2, tasks=5).record
    assert made.sampler is not None
    assert made.sampler.spelling == f"semantic(class_distances='{matrix}')"
    recorded = {"name": "semantic", **made.options}
    again = sample(catalog, recorded, way=2, shot=1, query=2, tasks=5).record
    assert again.options == made.options
    matrix.write_text(matrix.read_text().replace("6", "7"))
    with pytest.raises(Mismatch, match="the tasks were drawn with"):
        sample(catalog, recorded, way=2, shot=1, query=2, tasks=5)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        ("semantic", "needs a file of class distances, .* or features"),
        ("semantic(temperature=0, class_distances='x')", "temperature: expected a number above 0, found 0"),
        ("semantic(class_distances='nowhere.csv')", "nowhere.csv does not exist"),
    ],
)
def test_bad_input(sampler: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample(catalog_of([6] * 4), sampler, way=2, shot=1, query=2)
