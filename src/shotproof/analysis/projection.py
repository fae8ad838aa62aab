"""Projection of one task's support and query items onto a plane, by PCA or t-SNE, for several task sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.analysis.explored_tasks import choose_tasks
from shotproof.analysis.inputs import Inputs
from shotproof.core.errors import InputError, Mismatch, MissingExtra, UnknownName
from shotproof.features.features import Features
from shotproof.results.answers import answers_on
from shotproof.tasks.taskset import TaskSet

PROJECTIONS = ("pca", "tsne")
NO_PROJECTION = "none"
PAGE_PROJECTIONS = (*PROJECTIONS, NO_PROJECTION)  # choices for a report page
PERPLEXITY = 30.0  # of t-SNE, for tasks that are large enough


@dataclass(frozen=True)
class ProjectedTask:
    """One task of one set: coordinates [n, 2], slot of each item's class [n], and whether the item is a query [n].

    sampler: sampler of the set
    labels: classes, by slot
    """

    sampler: str
    labels: list[str]
    items: list[str]
    places: npt.NDArray[np.float64]
    slots: npt.NDArray[np.int64]
    is_query: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Projection:
    """Same task of several sets, projected onto one plane.

    encoder: encoder of the features
    how: `pca` or `tsne`
    task: index of the task, from 0
    explained: share of the variance in the plane (PCA); None for t-SNE, whose distances have no scale
    """

    encoder: str
    how: str
    task: int
    tasks: list[ProjectedTask]
    explained: float | None


def project_task(
    tasks: TaskSet | Sequence[TaskSet], features: Features, *, task: int = 0, how: str = "pca"
) -> Projection:
    """Project the items of one task onto a plane; several task sets, such as iid and ood, share the plane.

    Args:
        tasks: one task set, or several whose tasks correspond
        features: features of one encoder; feature maps are averaged over locations
        task: index of the task, from 0
        how: `pca`, or `tsne` by scikit-learn with a fixed seed

    Returns:
        Coordinates of every support and query item, with their classes.

    Raises:
        UnknownName: the projection is unknown.
        InputError: the task does not exist.
        Mismatch: the features lack items, or the task has different classes in another set.
        MissingExtra: scikit-learn is not installed.

    Example:
        >>> import shotproof as sp
        >>> world = sp.worlds.ShapesWorld(classes=6, items=40)
        >>> features = sp.encode(world.catalog(), "dial(share=0.5)")
        >>> projection = sp.analysis.project_task(sp.sample(world.catalog(), "random", tasks=2), features)
        >>> projection.tasks[0].places.shape
        (100, 2)
    """
    if how not in PROJECTIONS:
        raise UnknownName("projection", how, PROJECTIONS)
    task_sets = [tasks] if isinstance(tasks, TaskSet) else list(tasks)
    rows = [_rows(task_set, task) for task_set in task_sets]
    labels = [[row["label"] for row in set_rows] for set_rows in rows]
    for task_set, set_labels in zip(task_sets, labels, strict=True):
        if set_labels != labels[0]:
            raise Mismatch(
                f"task {task} has other classes in '{task_set.record.sampler_name}' than in "
                f"'{task_sets[0].record.sampler_name}': expected task sets whose tasks correspond, such as iid and ood"
            )
    members = [list(_members(set_rows)) for set_rows in rows]
    distinct = sorted({item for set_members in members for item, _, _ in set_members})
    vectors = features.array[features.rows_of(pa.array(distinct, pa.string()))].astype(np.float64)
    positions, explained = _PLANES[how](vectors)
    position_of = dict(zip(distinct, positions, strict=True))
    projected = [
        ProjectedTask(
            task_set.record.sampler_name,
            names,
            [item for item, _, _ in set_members],
            np.array([position_of[item] for item, _, _ in set_members]),
            np.array([slot for _, slot, _ in set_members]),
            np.array([query for _, _, query in set_members]),
        )
        for task_set, names, set_members in zip(task_sets, labels, members, strict=True)
    ]
    return Projection(features.name, how, task, projected, explained)


def check_projection(projection: str) -> None:
    """Raise an error if the projection is unknown, or is t-SNE and scikit-learn is not installed."""
    if projection not in PAGE_PROJECTIONS:
        raise UnknownName("projection", projection, PAGE_PROJECTIONS)
    if projection == "tsne" and find_spec("sklearn") is None:
        raise MissingExtra("projection 'tsne'", "sklearn")


def _rows(tasks: TaskSet, task: int) -> list[dict[str, Any]]:
    """Return the rows of one task. Raise InputError if it does not exist."""
    if not 0 <= task < len(tasks):
        raise InputError(f"task {task}: expected one of 0 to {len(tasks) - 1} (the set has {len(tasks)} tasks)")
    start, end = tasks.starts[task : task + 2]
    rows: list[dict[str, Any]] = tasks.table.slice(int(start), int(end - start)).to_pylist()
    return rows


def _members(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int, bool]]:
    """Yield each item of a task, the slot of its class, and whether it is a query."""
    for slot, row in enumerate(rows):
        for side in ("support", "query"):
            yield from ((item, slot, side == "query") for item in row[side])


def _pca(vectors: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], float]:
    """Project onto the first two principal components, with the sign that makes each one's largest loading positive."""
    centered = vectors - vectors.mean(axis=0)
    left_vectors, singular_values, right_vectors = np.linalg.svd(centered, full_matrices=False)
    positions = np.zeros((len(vectors), 2))
    n_components = min(2, len(singular_values))
    signs = np.sign(right_vectors[np.arange(n_components), np.abs(right_vectors[:n_components]).argmax(axis=1)])
    positions[:, :n_components] = left_vectors[:, :n_components] * singular_values[:n_components] * signs
    total = float((singular_values**2).sum())
    return positions, float((singular_values[:2] ** 2).sum()) / total if total else 1.0


def _tsne(vectors: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], None]:
    """Embed by t-SNE, started from the PCA projection."""
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise MissingExtra("projection 'tsne'", "sklearn") from error
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    # Pass the start: scikit-learn's own PCA fails on one-dimensional vectors.
    start, _ = _pca(vectors)
    spread = start[:, 0].std() or 1.0
    tsne = TSNE(perplexity=perplexity, init=(start / spread * 1e-4).astype(np.float32), random_state=0, n_jobs=1)
    positions: npt.NDArray[np.float64] = tsne.fit_transform(vectors).astype(np.float64)
    return positions, None


_PLANES: dict[str, Any] = {"pca": _pca, "tsne": _tsne}


IID, OTHERS = "iid", ("ood", "hard-ood")
SHOWN = 4  # maximum number of projections


def shift_projections(inputs: Inputs, how: str) -> list[Projection]:
    """Project the iid task of median accuracy and its ood counterpart, for each encoder, at the most shots.

    hard-ood tasks replace missing ood tasks; empty if iid tasks, ood tasks with the same supports, or features are
    missing.
    """
    pair = _find_matched_sets(inputs.tasks)
    if pair is None or not inputs.results:
        return []
    answered = answers_on(pair[0], inputs.results)
    if not answered.answers:
        return []
    task = choose_tasks(answered, 1)[0].position
    sides = [tasks.table.column(side) for tasks in pair for side in ("support", "query")]
    task_items = {item for side in sides for item in pc.list_flatten(side).to_pylist()}
    # Prefer whole networks to their stages, of which there are many.
    whole_networks = [features for features in inputs.features if not _is_stage(features)] or list(inputs.features)
    complete = [features for features in whole_networks if task_items <= set(features.table.column("item").to_pylist())]
    return [project_task(pair, features, task=task, how=how) for features in complete[:SHOWN]]


def _find_matched_sets(tasks: Sequence[TaskSet]) -> tuple[TaskSet, TaskSet] | None:
    """Return iid tasks and the shifted tasks paired with them, with the most shots."""
    for iid in sorted(tasks, key=lambda task_set: -(task_set.record.shot or 0)):
        if iid.record.sampler_name == IID:
            for name in OTHERS:
                for shifted in tasks:
                    if shifted.record.sampler_name == name and shifted.match == iid.match and len(shifted) == len(iid):
                        return iid, shifted
    return None


def _is_stage(features: Features) -> bool:
    """Return whether the features are those of one stage of a network."""
    encoder = features.record.encoder
    return encoder is not None and encoder.options.get("stage") is not None
