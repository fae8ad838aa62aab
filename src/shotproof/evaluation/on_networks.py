"""Evaluation of methods that adapt a network: decoded items and a model."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import torch
from torch import Tensor, nn

from shotproof.catalog.catalog import Catalog
from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError
from shotproof.core.records import FeaturesRecord, Source
from shotproof.core.runtime.devices import choose_device, keep_freed_memory
from shotproof.core.runtime.progress import WORTH_REPORTING, cost_note
from shotproof.core.runtime.runtime import Runtime, current_runtime
from shotproof.core.runtime.shared_state import compute_in_threads
from shotproof.evaluation.backends import Backend, Predictions, task_seeds
from shotproof.evaluation.batch_engine import split_to_fit
from shotproof.evaluation.batches import Batch, Part, TaskArrays, items_of, parts_of
from shotproof.learners.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.learners.method import Method
from shotproof.models.decoded_items import ItemStore, ResidentItems
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork
from shotproof.tasks.taskset import TaskSet

logger = logging.getLogger("shotproof")

CPU_BYTES = 2**30  # main memory that a batch of tasks may take
FREE_SHARE = 0.4  # share of a GPU's free memory that a batch of tasks may take
WEIGHTS_PER_TASK = 5  # a task's weights, their gradients, two moments, and the next weights
MOST_TASKS = 64


class OnNetwork(Backend):
    """Evaluation of methods that adapt a model's network to each task; validation tasks may choose learning rates."""

    def __init__(self, catalog: Catalog, model: Model, tune_on: TaskSet | None, rates: Sequence[float]) -> None:
        self.catalog, self.model, self.tune_on, self.rates = catalog, model, tune_on, rates
        self.record = FeaturesRecord(
            name=model.name,
            fingerprint=f"model {model.digest}",
            trained_on=model.record.seen,
            pretrained_on=model.backbone.pretrained_on,
        )
        self.trained = f"model '{model.name}'"

    @property
    def sources(self) -> dict[str, Source]:
        """Return the catalog, the model, and the validation tasks if there are any."""
        sources = {
            "catalog": Source(self.catalog.digest, self.catalog.record.name),
            "model": Source(self.model.digest, self.model.name),
        }
        if self.tune_on is not None:
            sources["tune_on"] = Source(self.tune_on.digest, self.tune_on.record.name)
        return sources

    def prepare_methods(self, methods: list[Method], tasks: TaskSet, seed: int, runtime: Runtime) -> list[Method]:
        """Check that each method can adapt the model, and choose its learning rate."""
        adaptations = cast("list[Adaptation]", methods)
        for adaptation in adaptations:
            adaptation.require_model(self.model)
        if self.tune_on is None:
            return methods
        return [*tuned_methods(adaptations, self.tune_on, tasks, self.catalog, self.model, self.rates, seed, runtime)]

    def predict(
        self, tasks: TaskSet, methods: list[Method], seeds: IntArray, chunk: int | None, runtime: Runtime
    ) -> Predictions:
        """Predict the labels: decode the items once, and adapt the network to each task."""
        evaluation = NetworkEvaluation(tasks, self.catalog, self.model, seeds, runtime)
        labels = evaluation.labels(cast("list[Adaptation]", methods), chunk)
        return evaluation.query, labels, [[] for _ in methods]


def tuned_methods(
    methods: Sequence[Adaptation],
    tune_on: TaskSet,
    tasks: TaskSet,
    catalog: Catalog,
    model: Model,
    rates: Sequence[float],
    seed: int,
    runtime: Runtime,
) -> list[Adaptation]:
    """Choose the learning rate of each method by its accuracy on validation tasks; the smallest if several are best.

    Args:
        methods: methods
        tune_on: validation tasks
        tasks: tasks to be evaluated afterwards, to check that they share no item with the validation tasks
        catalog: catalog with the items of both
        model: model that is adapted
        rates: learning rates to choose from; if empty, each method's own
        seed: seed for methods that draw
        runtime: device, workers, cache and progress

    Raises:
        InputError: validation tasks and tasks share items.
    """
    _require_other_items(tune_on, tasks)
    evaluation = NetworkEvaluation(tune_on, catalog, model, task_seeds(tune_on, seed), runtime)
    tuned = []
    for method in methods:
        candidates = [method.with_rate(rate) for rate in sorted(rates or method.rates)]
        accuracies = evaluation.accuracies(candidates)
        tuned.append(candidates[accuracies.index(max(accuracies))])  # the first of equals
    return tuned


def _require_other_items(tune_on: TaskSet, tasks: TaskSet) -> None:
    items = pc.unique(items_of(tune_on))
    shared = items.filter(pc.is_in(items, pc.unique(items_of(tasks))))
    if len(shared):
        raise InputError(
            f"the validation tasks share {len(shared):,} items with the tasks, e.g. '{shared[0]}': a learning rate "
            "must not be chosen on the items that it is evaluated on; draw validation tasks from another split"
        )


class NetworkEvaluation:
    """Evaluation of tasks on a model's network: items are decoded once, each worker has the network on its device."""

    def __init__(self, tasks: TaskSet, catalog: Catalog, model: Model, seeds: IntArray, runtime: Runtime) -> None:
        rows = catalog.rows_of(items_of(tasks), "tasks")
        unique_rows, position = np.unique(rows, return_inverse=True)
        support, query = parts_of(tasks, position)
        self.model, self.runtime, self.seeds = model, runtime, seeds
        self.arrays = TaskArrays(np.diff(tasks.starts), support, query, np.empty((0, 0)))
        self.threads = torch.get_num_threads()  # the same on every worker: the last digits of scores may depend on it
        if not runtime.remote:
            choose_device(runtime.device)  # before anything is decoded
        self.store = ItemStore.of(catalog, model.preprocessing, runtime, unique_rows)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("device", "items", "net")}

    @cached_property
    def device(self) -> torch.device:
        """Return the device on which the network runs."""
        return choose_device(current_runtime().device)

    @cached_property
    def items(self) -> ResidentItems:
        """Load the decoded items, onto the device if they fit."""
        return self.store.tensor(self.device)

    @cached_property
    def net(self) -> FewShotNetwork:
        """Load the network onto the device."""
        if self.device.type == "cpu":
            keep_freed_memory()
        return self.model.network().to(self.device)

    @property
    def query(self) -> Part:
        """Return all queries, concatenated."""
        return self.arrays.query

    def labels(self, methods: Sequence[Adaptation], chunk: int | None = None) -> npt.NDArray[np.int64]:
        """Predict the label of each query with each method, [methods, queries]."""
        work = partial(self._predict_tasks, methods, chunk)
        return np.concatenate([*self.runtime.map_ranges(work, len(self.seeds), title="adapting")], axis=1)

    def _predict_tasks(self, methods: Sequence[Adaptation], chunk: int | None, tasks: range) -> npt.NDArray[np.int64]:
        """Predict the labels of the queries of some tasks, [methods, queries]."""
        compute_in_threads(self.threads)
        first, stop = self.query.first[[tasks.start, tasks.stop]]
        predicted = np.empty((len(methods), stop - first), dtype=np.int64)
        batches = self.arrays.batches_of(
            tasks, lambda shape, count: chunk or self._tasks_at_a_time(int(shape[1] + shape[2]))
        )
        with current_runtime().progress_bar("adapting", len(tasks) * len(methods)) as advance:

            def predict(index: int, batch: Batch) -> None:
                for part, labels in self._predict_batch(methods[index], batch):
                    predicted[index, part.query - first] = labels
                    advance(len(part.tasks))

            if self.device.type == "cpu" and len(tasks) > 1:
                head, *rest = batches
                for index, method in enumerate(methods):  # one task for each method first, to report all costs early
                    start = time.monotonic()
                    predict(index, head.part(slice(0, 1)))
                    self._log_cost(method, len(tasks), (time.monotonic() - start) * len(tasks))
                batches = [head.part(slice(1, None)), *rest] if len(head.tasks) > 1 else rest
            for index in range(len(methods)):
                for batch in batches:
                    predict(index, batch)
        return predicted

    def _log_cost(self, method: Adaptation, tasks: int, seconds: float) -> None:
        """Log the expected cost of all tasks, if it is worth telling."""
        if seconds >= WORTH_REPORTING:
            logger.info("%s", cost_note(f"method '{method}'", seconds, self.device.type, f"{tasks:,} tasks"))

    def accuracies(self, methods: Sequence[Adaptation]) -> list[float]:
        """Compute the accuracy of each method, averaged over tasks."""
        correct = self.labels(methods) == self.query.slot
        shares = np.add.reduceat(correct, self.query.first[:-1], axis=1) / np.diff(self.query.first)
        return [float(row.mean()) for row in shares]

    def _tasks_at_a_time(self, items: int) -> int:
        weights = sum(parameter.numel() for parameter in self.net.parameters())
        per_task = 4 * (WEIGHTS_PER_TASK * weights + 2 * items * _values_per_item(self.net, self.model))
        free = FREE_SHARE * torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else CPU_BYTES
        return int(min(MOST_TASKS, max(1, free // per_task)))

    def _predict_batch(self, method: Adaptation, batch: Batch) -> Iterator[tuple[Batch, npt.NDArray[np.int64]]]:
        """Predict the labels [B, m] of the queries of a batch, or of parts of it that fit into memory."""

        def labels(part: Batch) -> npt.NDArray[np.int64]:
            with torch.no_grad():
                scores = method.adapted_scores(self.model, self.net, self._decode(part))
            if not torch.isfinite(scores).all():
                number = int(part.tasks[int((~scores.isfinite()).flatten(1).any(1).nonzero()[0])])
                raise InputError(
                    f"method '{method}': the scores of task {number} are not finite: lower the learning rate"
                )
            return scores.argmax(-1).cpu().numpy()

        return split_to_fit(
            batch, labels, self.device, f"method '{method}': one task", "a smaller network or smaller tasks"
        )

    def _decode(self, batch: Batch) -> DecodedTasks:
        def decode_part(part: Part, positions: IntArray) -> tuple[Tensor, Tensor]:
            rows = torch.from_numpy(part.items[positions])
            inputs = self.model.preprocessing.prepared(self.items.take(rows.flatten()))
            labels = torch.from_numpy(part.slot[positions]).to(self.device)
            return inputs.reshape(*rows.shape, *inputs.shape[1:]), labels

        support, labels = decode_part(self.arrays.support, batch.support)
        query, query_labels = decode_part(self.arrays.query, batch.query)
        seeds = torch.from_numpy(self.seeds[batch.tasks]).to(self.device)
        return DecodedTasks(support, labels, query, query_labels, seeds, batch.way)


def _values_per_item(net: FewShotNetwork, model: Model) -> int:
    """Count the activations of a backbone for one item, which a gradient has to keep."""
    total = 0

    def count(module: nn.Module, inputs: object, values: object) -> None:
        nonlocal total
        total += values.numel() if isinstance(values, Tensor) else 0

    layers = [module for module in net.backbone.modules() if not [*module.children()]]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    try:
        with torch.no_grad():
            net.backbone.maps(torch.zeros(1, *model.preprocessing.shape, device=next(net.parameters()).device))
    finally:
        for hook in hooks:
            hook.remove()
    return total
