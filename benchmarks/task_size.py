"""Task size: the variance of the mean accuracy against the number of queries, and whether a plan predicts it.

The first two tables are Figures 2 and 3 of *Oops, I Sampled it Again*: two classes, Gaussian at -1 and 1, nearest
centroid, data used up by tasks without replacement. With two classes in every task and items that are drawn
independently anyway, using the data up is cutting it into equal pieces, so whole worlds are one array operation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy import stats

from benchmarks.fixture import birds
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import read_layout
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.planning.pilot import Pilot
from shotproof.planning.task_plan import QUERIES, ScoreMoments, TaskVariance, plan
from shotproof.results.metrics import FloatArray
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet

CURVE = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 45, 70, 95)
WORLDS = 20_000  # so many because one task in a thousand has its centroids the wrong way round, and these weigh


def exact_moments(shot: int) -> ScoreMoments:
    """Compute the moments of nearest centroid on the two Gaussians: the border between centroids is Gaussian too."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    border, weights = nodes / np.sqrt(2 * shot), weights / weights.sum()
    right = np.stack([stats.norm.cdf(border + 1), stats.norm.cdf(1 - border)])
    swapped = stats.norm.cdf(-np.sqrt(2 * shot))  # the chance that the centroids lie the wrong way round
    average = [(1 - swapped, right), (swapped, 1 - right)]
    return ScoreMoments(
        m1=float(sum(share * (mu.mean(axis=0) @ weights) for share, mu in average)),
        m2=float(sum(share * ((mu**2).mean(axis=0) @ weights) for share, mu in average)),
        m3=float(sum(share * ((mu[0] * mu[1]) @ weights) / 2 for share, mu in average)),
    )


def accuracies(shot: int, query: int, tasks: int, rng: np.random.Generator) -> FloatArray:
    """Draw tasks of the two Gaussians; return the accuracy of nearest centroid on each, in percent."""
    x = rng.normal(size=(tasks, 2, shot + query)) + np.array([-1.0, 1.0])[:, None]
    centroid = x[..., :shot].mean(axis=-1)
    border, queries = centroid.mean(axis=-1)[:, None, None], x[..., shot:]
    upper = (queries > border) == (centroid[:, 1] > centroid[:, 0])[:, None, None]  # labeled as the class at 1
    correct = upper == np.array([False, True])[:, None]
    means: FloatArray = 100 * correct.mean(axis=(1, 2))
    return means


def variance_of_mean(shot: int, items: int, query: int, worlds: int, seed: int = 0) -> tuple[int, float]:
    """Return how many tasks the items give, and the variance of their mean accuracy over worlds, in squared points."""
    tasks = items // (2 * (shot + query))
    rng = np.random.default_rng([seed, shot, items, query])
    block = max(1, 2_000_000 // items)  # worlds at a time
    means = [
        accuracies(shot, query, size * tasks, rng).reshape(size, tasks).mean(axis=1)
        for size in (min(block, worlds - start) for start in range(0, worlds, block))
    ]
    return tasks, float(np.concatenate(means).var(ddof=1))


def fitted_variance(shot: int, items: int, queries: Sequence[int], worlds: int) -> TaskVariance:
    """Fit a task's variance, alpha + noise / Q, to measured ones by least squares of the relative errors."""
    measured = [math.prod(variance_of_mean(shot, items, query, worlds)) / 1e4 for query in queries]
    columns = np.stack([np.ones(len(queries)), 1 / np.asarray(queries)], axis=1) / np.array(measured)[:, None]
    alpha, noise = np.linalg.lstsq(columns, np.ones(len(queries)))[0]
    return TaskVariance(float(alpha), float(noise))


@dataclass(frozen=True)
class Prediction:
    """Prediction for a number of queries: tasks without replacement, and half-widths in points."""

    query: int
    tasks: int
    predicted: float
    measured: float


def predict(
    catalog: Catalog,
    features: Features,
    split: str,
    *,
    shot: int = 5,
    pilot_tasks: int = 600,
    seeds: int = 40,
    method: str = "ncc",
) -> list[Prediction]:
    """Predict half-widths from random tasks with 15 queries; measure them on task sets that use the data up."""
    design = {"split": split, "way": 5, "shot": shot}
    first = sample(catalog, "random", query=15, tasks=pilot_tasks, **design)
    pilot = Pilot.of(evaluate(first, features, [method]))
    sizes = np.unique(catalog.in_split(split).table.column("label").to_numpy(), return_counts=True)[1].tolist()
    planned = plan(pilot.moments(method), shot=shot, way=5, items=sizes)
    rows = []
    for point in planned.curve:
        if point.query not in QUERIES or point.half_width is None:
            continue
        drawn = [sample(catalog, "depletion", query=point.query, seed=seed, **design) for seed in range(seeds)]
        accuracy = evaluate(_join_task_sets(drawn), features, [method]).counts(method).accuracy_by_task()
        by_seed = np.split(accuracy, np.cumsum([len(tasks) for tasks in drawn])[:-1])
        widths = [stats.t.ppf(0.975, len(values) - 1) * stats.sem(values) for values in by_seed]
        rows.append(Prediction(point.query, point.tasks, point.half_width, float(np.mean(widths))))
    return rows


def _join_task_sets(task_sets: list[TaskSet]) -> TaskSet:
    """Join all tasks in one set, numbered anew, so that they are evaluated at once."""
    table = pa.concat_tables([tasks.table for tasks in task_sets])
    number = np.cumsum(np.asarray(table.column("slot")) == 0) - 1
    return TaskSet(table.set_column(0, "task", pa.array(number)))


def gaussian_world(
    classes: int = 20, items: int = 100, dimensions: int = 8, spread: float = 0.8, seed: int = 0
) -> tuple[Catalog, Features]:
    """Draw classes around Gaussian centers with this spread, and items around these with spread 1."""
    rng = np.random.default_rng(seed)
    center = rng.normal(scale=spread, size=(classes, 1, dimensions))
    values = (center + rng.normal(size=(classes, items, dimensions))).reshape(-1, dimensions)
    names = [f"{c:03d}/{i:04d}" for c in range(classes) for i in range(items)]
    labels = [name[:3] for name in names]
    table = pa.table({"item": names, "path": names, "label": labels, "split": ["test"] * len(names)})
    return Catalog(table), Features.from_array(names, values)


def report_curve(shot: int = 5, items: int = 1000) -> None:
    """Print the variance against Q (Figure 2)."""
    variance = exact_moments(shot).variance(2)
    print(f"Variance of the mean, squared points ({shot} shots, {items:,} items, {WORLDS:,} worlds)")
    print("formula: by exact moments")
    print("    Q  tasks  measured  formula")
    for query in CURVE:
        tasks, measured = variance_of_mean(shot, items, query, WORLDS)
        print(f"{query:5}  {tasks:5}  {measured:8.3f}  {variance.at(query) / tasks:7.3f}", flush=True)


def report_best(settings: list[tuple[int, int]]) -> None:
    """Print the best Q for shots and items (Figure 3)."""
    print(f"Best Q, sqrt(beta / alpha) ({WORLDS:,} worlds)")
    print("shots  items  fitted to measured variances  exact moments")
    for shot, items in settings:
        fitted = fitted_variance(shot, items, (1, 2, 5, 10, 20, 40), WORLDS).best_query(shot)
        exact = exact_moments(shot).variance(2).best_query(shot)
        print(f"{shot:5}  {items:5}  {fitted:28.1f}  {exact:13.1f}", flush=True)


def report_predictions(title: str, rows: list[Prediction]) -> None:
    """Print half-widths, predicted and measured."""
    print(f"{title}: half-width of the 95% depletion interval, points")
    print("    Q  tasks  predicted  measured  ratio")
    for row in rows:
        ratio = row.predicted / row.measured
        print(f"{row.query:5}  {row.tasks:5}  {row.predicted:9.2f}  {row.measured:8.2f}  {ratio:5.2f}", flush=True)


def run() -> None:
    """Print Figures 2 and 3, and predicted half-widths on a Gaussian world and on the birds."""
    report_curve()
    report_best([(1, 1000), (2, 1000), (5, 1000), (10, 1000), (20, 1000), (5, 500), (5, 2000), (5, 4000)])
    report_predictions("Gaussian world, 20 x 100 items", predict(*gaussian_world(), "test"))
    root = birds()
    if root is None:
        print("skipped: the birds are missing (set SHOTPROOF_DATA to the folder that holds CUB_200_2011)")
        return
    catalog = read_layout(root, "cub", splits=root.parent / "cub-130-20-50.csv").in_split("test")
    features = encode(catalog, "lite0")
    report_predictions("Birds, test split, lite0 and ncc", predict(catalog, features, "test"))
