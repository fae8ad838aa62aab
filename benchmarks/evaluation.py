"""Evaluation on ready features: 3,000 tasks, 5-way 5-shot with 15 queries per class, on 3,000 x 1,280 features.

Each method is timed from the task set to the results, all included, and compared with a plain loop over tasks.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.method import DEFAULT_METHODS
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

TASKS, WAY, SHOT, QUERY = 3000, 5, 5, 15
CLASSES, ITEMS, DIMENSIONS = 50, 60, 1280
LOOPED = 100  # tasks of the plain loop
REPEATS = 3

Array = npt.NDArray[np.float64]
Scores = Callable[[Array, Array, Array], Array]


def run() -> None:
    """Print the time of each method and of its plain loop."""
    tasks, features = draw()
    rows = features.rows_of(pa.array([i for name in ("support", "query") for i in items_of(tasks, name)]))
    support, query = (part.reshape(TASKS, WAY, -1) for part in np.split(rows, [TASKS * WAY * SHOT]))
    print(f"{TASKS} tasks, {WAY}-way {SHOT}-shot {QUERY}-query, {len(features)} x {DIMENSIONS} features")
    print(f"{'method':<10}{'time':>9}{'per task':>11}{'plain loop':>13}{'ratio':>8}{'same answers':>14}")
    for name in DEFAULT_METHODS:
        seconds, results = fastest(tasks, features, [name])
        each, correct = loop(PLAIN[name], features.array.astype(np.float64), support[:LOOPED], query[:LOOPED])
        same = np.mean(results.counts(name).n_correct[: LOOPED * WAY] == correct)
        here = seconds / TASKS
        print(
            f"{name:<10}{seconds:>7.2f} s{1e6 * here:>8.0f} us{1e6 * each:>10.0f} us{each / here:>7.1f}x{same:>13.1%}"
        )
    seconds, _ = fastest(tasks, features, DEFAULT_METHODS)
    print(f"{'all five':<10}{seconds:>7.2f} s{1e6 * seconds / TASKS:>8.0f} us")


def draw(tasks: int = TASKS, shot: int = SHOT, dimensions: int = DIMENSIONS) -> tuple[TaskSet, Features]:
    """Draw random tasks on Gaussian classes, hard enough that methods differ."""
    random = np.random.default_rng(0)
    centers = 0.12 * random.normal(size=(CLASSES, 1, dimensions))
    values = centers + random.normal(size=(CLASSES, ITEMS, dimensions))
    names = np.array([[f"class {c:02d}/item {i:02d}" for i in range(ITEMS)] for c in range(CLASSES)], dtype=object)
    classes = np.stack([random.permutation(CLASSES)[:WAY] for _ in range(tasks)]).ravel()
    chosen = np.stack([names[c][random.permutation(ITEMS)[: shot + QUERY]] for c in classes])
    columns = {
        "task": np.repeat(np.arange(tasks), WAY),
        "slot": np.tile(np.arange(WAY), tasks),
        "label": [f"class {c:02d}" for c in classes],
        "attribute": pa.nulls(len(classes), pa.string()),
        "support": chosen[:, :shot].tolist(),
        "query": chosen[:, shot:].tolist(),
    }
    features = Features.from_array(names.ravel().tolist(), values.reshape(-1, dimensions).astype(np.float32))
    return TaskSet(pa.table(columns)), features


def items_of(tasks: TaskSet, name: str) -> list[str]:
    """Return all items of a list column, end to end."""
    return [item for row in tasks.table.column(name).to_pylist() for item in row]


def fastest(tasks: TaskSet, features: Features, methods: tuple[str, ...] | list[str]) -> tuple[float, Results]:
    """Measure the best time of several complete evaluations."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        # New objects, so that digests are computed again each time.
        results = evaluate(TaskSet(tasks.table), Features(features.table), methods)
        times.append(time.perf_counter() - start)
    return min(times), results


def loop(scores: Scores, values: Array, support: Array, query: Array) -> tuple[float, Array]:
    """Measure a plain loop: seconds per task, and the correct answers of each class of each task."""
    labels, truth = (np.repeat(np.arange(WAY), count) for count in (SHOT, QUERY))
    correct = []
    start = time.perf_counter()
    for of_support, of_query in zip(support, query, strict=True):
        answers = scores(values[of_support.ravel()], labels, values[of_query.ravel()]).argmax(1)
        correct.append((answers == truth).reshape(WAY, QUERY).sum(1))
    return (time.perf_counter() - start) / len(support), np.concatenate(correct)


def unit(rows: Array) -> Array:
    """Scale rows to length 1."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def centroids(support: Array, labels: Array) -> Array:
    """Compute the mean row of each class."""
    return np.stack([support[labels == c].mean(0) for c in range(WAY)])


def plain_ncc(support: Array, labels: Array, query: Array) -> Array:
    """Compute minus the squared distance to each centroid."""
    return -((query[:, None] - centroids(support, labels)) ** 2).sum(-1)


def plain_cosine(support: Array, labels: Array, query: Array) -> Array:
    """Compute the cosine to each centroid."""
    return unit(query) @ unit(centroids(unit(support), labels)).T


def plain_ridge(support: Array, labels: Array, query: Array) -> Array:
    """Fit ridge regression in its dual form, which is the faster one here."""
    return query @ (support.T @ np.linalg.solve(support @ support.T + 50 * np.eye(len(support)), np.eye(WAY)[labels]))


def plain_knn(support: Array, labels: Array, query: Array) -> Array:
    """Return the class of the nearest row, one-hot."""
    return np.eye(WAY)[labels[(unit(query) @ unit(support).T).argmax(1)]]


def plain_logistic(support: Array, labels: Array, query: Array) -> Array:
    """Fit logistic regression by scikit-learn's solver."""
    from sklearn.linear_model import LogisticRegression

    return np.asarray(LogisticRegression(max_iter=1000).fit(unit(support), labels).decision_function(unit(query)))


PLAIN: dict[str, Scores] = {
    "ncc": plain_ncc,
    "cosine": plain_cosine,
    "logistic": plain_logistic,
    "ridge": plain_ridge,
    "knn": plain_knn,
}

if __name__ == "__main__":
    run()
