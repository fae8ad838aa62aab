"""Hardness of tasks: query loss, its correlation with accuracy, and the number of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shotproof.core.errors import Mismatch
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.evaluation.batches import TaskArrays
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.results.metrics import FloatArray, rank_correlation
from shotproof.results.origin import Origin
from shotproof.results.results import Results
from shotproof.stats.intervals import Interval, sampler_interval
from shotproof.tasks.taskset import TaskSet

METHOD = "ncc"  # provides the accuracy without results: the loss is that of the same classifier


@dataclass(frozen=True)
class Hardness:
    """Accuracy of a classifier on each task, in percent, and its query loss, [tasks] each.

    Hard-Meta-Dataset++, Fig. 8.
    """

    encoder: str
    method: str
    accuracy: FloatArray
    loss: FloatArray

    @property
    def correlation(self) -> float:
        """Return Spearman's correlation between accuracy and inverse loss; NaN if either is constant."""
        return rank_correlation(self.accuracy.tolist(), (-self.loss).tolist())

    @classmethod
    def joined(cls, sets: Sequence[Hardness]) -> Hardness:
        """Concatenate one classifier's tasks over several sets."""
        accuracy, loss = (
            np.concatenate([getattr(hardness, name) for hardness in sets]) for name in ("accuracy", "loss")
        )
        return cls(sets[0].encoder, sets[0].method, accuracy, loss)

    def to_json(self) -> dict[str, Any]:
        """Convert to plain values."""
        correlation = None if np.isnan(self.correlation) else self.correlation
        return {
            "encoder": self.encoder,
            "method": self.method,
            "spearman": correlation,
            "accuracy": self.accuracy.tolist(),
            "loss": self.loss.tolist(),
        }


@dataclass(frozen=True)
class Ways:
    """Numbers of classes of the tasks of a set (Hard-Meta-Dataset++, Fig. 42): `tasks` by way, ascending."""

    tasks: dict[int, int]
    mean: Interval

    @classmethod
    def of(cls, tasks: TaskSet) -> Ways:
        """Count the classes of each task."""
        ways = np.diff(tasks.starts)
        way_counts = zip(*np.unique(ways, return_counts=True), strict=True)
        return cls({int(way): int(count) for way, count in way_counts}, sampler_interval(ways))


def hardness(
    tasks: TaskSet, features: Features, results: Sequence[Results] = (), runtime: Runtime | None = None
) -> list[Hardness]:
    """Compute the query loss of each task, and the accuracy of each method that the results have on these tasks.

    Without results on these tasks, the accuracy is that of nearest centroid on the features.

    Raises:
        Mismatch: results that claim to be on these tasks have a different number of them.
    """
    task_results = [candidate for candidate in results if candidate.record.tasks_digest == tasks.digest]
    loss = query_losses(tasks, features, runtime)
    measurements = [
        Hardness(Origin.of(method_results).encoder, method, method_results.counts(method).accuracy_by_task(), loss)
        for method_results in task_results or [evaluate(tasks, features, METHOD, runtime=runtime)]
        for method in method_results.methods
    ]
    for classifier in measurements:
        if len(classifier.accuracy) != len(loss):
            raise Mismatch(
                f"the results of {classifier.method} are incomplete: they have {len(classifier.accuracy):,} tasks, "
                f"their task set {tasks.digest} has {len(loss):,}"
            )
    return measurements


def query_losses(tasks: TaskSet, features: Features, runtime: Runtime | None = None) -> FloatArray:
    """Compute each task's mean query cross-entropy, in nats, with negative squared distances as logits: [tasks]."""
    import torch

    from shotproof.core.runtime.devices import choose_device
    from shotproof.evaluation.item_tensors import ItemTensors
    from shotproof.evaluation.scoring import Gathered, tasks_at_a_time
    from shotproof.learners.heads.inductive.centroids import NearestCentroid

    arrays = TaskArrays.of(tasks, features)
    items, method = ItemTensors(arrays, choose_device(resolve(runtime).device, torch.float64)), NearestCentroid()
    losses, zero_seeds = np.empty(len(tasks)), np.zeros(len(tasks), dtype=np.int64)
    for shape, members in arrays.by_shape():
        for batch in arrays.batches(members, tasks_at_a_time(shape, items, [method])):
            scores = Gathered(items, arrays, batch, zero_seeds).scores(method)
            truth = torch.from_numpy(arrays.query.slot[batch.query]).to(scores.device)
            query_loss = torch.nn.functional.cross_entropy(scores.mT, truth, reduction="none")
            losses[batch.tasks] = query_loss.mean(1).cpu().numpy()
    return losses
