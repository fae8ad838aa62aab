"""One task on a plane: where its support and its queries lie, by PCA or t-SNE, in several task sets side by side."""

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
PAGE_PROJECTIONS = (*PROJECTIONS, NO_PROJECTION)  # what a page may be asked for
PERPLEXITY = 30.0  # t-SNE's, of tasks that are large enough


@dataclass(frozen=True)
class ProjectedTask:
    """One task of one set: places [n, 2], the slot of each item's class [n], and whether it is a query [n].

    sampler: of the set
    labels: the classes, by slot
    """

    sampler: str
    labels: list[str]
    items: list[str]
    places: npt.NDArray[np.float64]
    slots: npt.NDArray[np.int64]
    is_query: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Projection:
    """The same task of several sets, all on one plane.

    encoder: whose features they are
    how: `pca` or `tsne`
    task: its number, counted from 0
    explained: the share of the variance that the plane has (PCA); None of t-SNE, whose distances have no scale
    """

    encoder: str
    how: str
    task: int
    tasks: list[ProjectedTask]
    explained: float | None


def project_task(
    tasks: TaskSet | Sequence[TaskSet], features: Features, *, task: int = 0, how: str = "pca"
) -> Projection:
    """Lay the items of one task out on a plane; of several task sets, such as iid and ood, on the same plane.

    Args:
        tasks: one task set, or several whose tasks belong together
        features: of one encoder; of maps, the means over their locations
        task: which task, counted from 0
        how: `pca`, or `tsne` by scikit-learn, always with the same seed

    Returns:
        A place for every support and query item, with the class of each.

    Raises:
        UnknownName: there is no such projection.
        InputError: there is no such task.
        Mismatch: the features lack items, or the task has other classes in another set.
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
    given = [tasks] if isinstance(tasks, TaskSet) else list(tasks)
    rows = [_rows(one, task) for one in given]
    labels = [[row["label"] for row in of_one] for of_one in rows]
    for one, found in zip(given, labels, strict=True):
        if found != labels[0]:
            raise Mismatch(
                f"task {task} has other classes in '{one.record.sampler_name}' than in "
                f"'{given[0].record.sampler_name}': expected task sets that belong together, such as iid and ood"
            )
    sides = [list(_members(of_one)) for of_one in rows]
    distinct = sorted({item for of_one in sides for item, _, _ in of_one})
    vectors = features.array[features.rows_of(pa.array(distinct, pa.string()))].astype(np.float64)
    places, explained = _PLANES[how](vectors)
    place_of = dict(zip(distinct, places, strict=True))
    projected = [
        ProjectedTask(
            one.record.sampler_name,
            names,
            [item for item, _, _ in of_one],
            np.array([place_of[item] for item, _, _ in of_one]),
            np.array([slot for _, slot, _ in of_one]),
            np.array([query for _, _, query in of_one]),
        )
        for one, names, of_one in zip(given, labels, sides, strict=True)
    ]
    return Projection(features.name, how, task, projected, explained)


def check_projection(projection: str) -> None:
    """Refuse a projection that there is not, and t-SNE without scikit-learn."""
    if projection not in PAGE_PROJECTIONS:
        raise UnknownName("projection", projection, PAGE_PROJECTIONS)
    if projection == "tsne" and find_spec("sklearn") is None:
        raise MissingExtra("projection 'tsne'", "sklearn")


def _rows(tasks: TaskSet, task: int) -> list[dict[str, Any]]:
    if not 0 <= task < len(tasks):
        raise InputError(f"task {task}: expected one of 0 to {len(tasks) - 1}, the set has {len(tasks)} tasks")
    start, end = tasks.starts[task : task + 2]
    rows: list[dict[str, Any]] = tasks.table.slice(int(start), int(end - start)).to_pylist()
    return rows


def _members(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int, bool]]:
    """Each item of a task, the slot of its class, and whether it is a query."""
    for slot, row in enumerate(rows):
        for side in ("support", "query"):
            yield from ((item, slot, side == "query") for item in row[side])


def _pca(vectors: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], float]:
    """The two directions of the largest variance, each turned so that its largest part is positive."""
    centered = vectors - vectors.mean(axis=0)
    left, lengths, right = np.linalg.svd(centered, full_matrices=False)
    places = np.zeros((len(vectors), 2))
    kept = min(2, len(lengths))
    signs = np.sign(right[np.arange(kept), np.abs(right[:kept]).argmax(axis=1)])
    places[:, :kept] = left[:, :kept] * lengths[:kept] * signs
    total = float((lengths**2).sum())
    return places, float((lengths[:2] ** 2).sum()) / total if total else 1.0


def _tsne(vectors: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], None]:
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise MissingExtra("projection 'tsne'", "sklearn") from error
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    # The start is given, as scikit-learn's own PCA fails on vectors of one dimension.
    start, _ = _pca(vectors)
    spread = start[:, 0].std() or 1.0
    made = TSNE(perplexity=perplexity, init=(start / spread * 1e-4).astype(np.float32), random_state=0, n_jobs=1)
    places: npt.NDArray[np.float64] = made.fit_transform(vectors).astype(np.float64)
    return places, None


_PLANES: dict[str, Any] = {"pca": _pca, "tsne": _tsne}


IID, OTHERS = "iid", ("ood", "hard-ood")
SHOWN = 4  # projections in all


def shift_projections(inputs: Inputs, how: str) -> list[Projection]:
    """The iid task of median accuracy beside the same task of ood, for each encoder, of the largest number of shots.

    Without ood tasks, hard-ood ones; none where iid tasks, others of the same supports, or features are missing.
    """
    pair = _matched(inputs.tasks)
    if pair is None or not inputs.results:
        return []
    answered = answers_on(pair[0], inputs.results)
    if not answered.answers:
        return []
    task = choose_tasks(answered, 1)[0].position
    sides = [tasks.table.column(side) for tasks in pair for side in ("support", "query")]
    wanted = {item for side in sides for item in pc.list_flatten(side).to_pylist()}
    # Whole networks rather than their stages, of which there are many.
    whole = [one for one in inputs.features if not _is_stage(one)] or list(inputs.features)
    having = [one for one in whole if wanted <= set(one.table.column("item").to_pylist())]
    return [project_task(pair, one, task=task, how=how) for one in having[:SHOWN]]


def _matched(tasks: Sequence[TaskSet]) -> tuple[TaskSet, TaskSet] | None:
    """A set of iid tasks and one of others that are paired with it, of the most shots."""
    for iid in sorted(tasks, key=lambda one: -(one.record.shot or 0)):
        if iid.record.sampler_name == IID:
            for name in OTHERS:
                for other in tasks:
                    if other.record.sampler_name == name and other.match == iid.match and len(other) == len(iid):
                        return iid, other
    return None


def _is_stage(features: Features) -> bool:
    encoder = features.record.encoder
    return encoder is not None and encoder.options.get("stage") is not None
