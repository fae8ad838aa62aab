"""How hard each task is: its query loss, how well that goes with accuracy, and its number of classes."""

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

METHOD = "ncc"  # whose accuracy is taken where no results are given: the loss is of the same classifier


@dataclass(frozen=True)
class Hardness:
    """A classifier's accuracy on each task, in percent, beside its query loss, [tasks] each.

    Hard-Meta-Dataset++, Fig. 8.
    """

    encoder: str
    method: str
    accuracy: FloatArray
    loss: FloatArray

    @property
    def correlation(self) -> float:
        """Spearman's, between accuracy and inverse loss; NaN where one of them never varies."""
        return rank_correlation(self.accuracy.tolist(), (-self.loss).tolist())

    @classmethod
    def joined(cls, sets: Sequence[Hardness]) -> Hardness:
        """One classifier on the tasks of several sets."""
        accuracy, loss = (np.concatenate([getattr(one, name) for one in sets]) for name in ("accuracy", "loss"))
        return cls(sets[0].encoder, sets[0].method, accuracy, loss)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
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
    """The numbers of classes of the tasks of a set (Hard-Meta-Dataset++, Fig. 42): `tasks` by way, ascending."""

    tasks: dict[int, int]
    mean: Interval

    @classmethod
    def of(cls, tasks: TaskSet) -> Ways:
        """Counted."""
        ways = np.diff(tasks.starts)
        counted = zip(*np.unique(ways, return_counts=True), strict=True)
        return cls({int(way): int(count) for way, count in counted}, sampler_interval(ways))


def hardness(
    tasks: TaskSet, features: Features, results: Sequence[Results] = (), runtime: Runtime | None = None
) -> list[Hardness]:
    """Loss and accuracy of each task: the accuracy of each method of those results that are on these tasks.

    Without any, that of nearest centroid on the features.

    Raises:
        Mismatch: results that claim to be on these tasks have fewer or more of them.
    """
    own = [given for given in results if given.record.tasks_digest == tasks.digest]
    loss = query_losses(tasks, features, runtime)
    measured = [
        Hardness(Origin.of(given).encoder, method, given.counts(method).accuracy_by_task(), loss)
        for given in own or [evaluate(tasks, features, METHOD, runtime=runtime)]
        for method in given.methods
    ]
    for classifier in measured:
        if len(classifier.accuracy) != len(loss):
            raise Mismatch(
                f"the results of {classifier.method} have {len(classifier.accuracy):,} tasks, their task set "
                f"{tasks.digest} has {len(loss):,}: they are not whole"
            )
    return measured


def query_losses(tasks: TaskSet, features: Features, runtime: Runtime | None = None) -> FloatArray:
    """The mean cross-entropy of each task's queries, in nats, under logits of minus the squared distances: [tasks]."""
    import torch

    from shotproof.core.runtime.devices import choose_device
    from shotproof.evaluation.item_tensors import ItemTensors
    from shotproof.evaluation.scoring import Gathered, tasks_at_a_time
    from shotproof.learners.heads.inductive.centroids import NearestCentroid

    arrays = TaskArrays.of(tasks, features)
    items, method = ItemTensors(arrays, choose_device(resolve(runtime).device, torch.float64)), NearestCentroid()
    losses, unseeded = np.empty(len(tasks)), np.zeros(len(tasks), dtype=np.int64)
    for shape, members in arrays.by_shape():
        for batch in arrays.batches(members, tasks_at_a_time(shape, items, [method])):
            scores = Gathered(items, arrays, batch, unseeded).scores(method)
            truth = torch.from_numpy(arrays.query.slot[batch.query]).to(scores.device)
            each = torch.nn.functional.cross_entropy(scores.mT, truth, reduction="none")
            losses[batch.tasks] = each.mean(1).cpu().numpy()
    return losses
