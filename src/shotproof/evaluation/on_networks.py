"""Methods that adapt a network: tasks, decoded items and a model to the answers of each method."""

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
from shotproof.core.runtime.carried import compute_in_threads
from shotproof.core.runtime.devices import choose_device, keep_freed_memory
from shotproof.core.runtime.progress import WORTH_TELLING, cost_note
from shotproof.core.runtime.runtime import Runtime, current_runtime
from shotproof.evaluation.batch_engine import fitting
from shotproof.evaluation.batches import Batch, Part, TaskArrays, items_of, parts_of
from shotproof.evaluation.grounds import Ground, Predictions, task_seeds
from shotproof.learners.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.learners.method import Method
from shotproof.models.decoded_items import ItemStore, ResidentItems
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork
from shotproof.tasks.taskset import TaskSet

logger = logging.getLogger("shotproof")

CPU_BYTES = 2**30  # what a batch of tasks may take of main memory
FREE_SHARE = 0.4  # of a GPU's free memory
WEIGHTS_PER_TASK = 5  # a task's weights, their gradients, two moments, and the next weights
MOST_TASKS = 64


class OnNetwork(Ground):
    """A model's network, which methods adapt to each task; learning rates may be chosen on validation tasks."""

    def __init__(self, catalog: Catalog, model: Model, tune_on: TaskSet | None, rates: Sequence[float]) -> None:
        self.catalog, self.model, self.tune_on, self.rates = catalog, model, tune_on, rates
        self.record = FeaturesRecord(
            name=model.name,
            fingerprint=f"model {model.digest}",
            trained_on=model.record.seen,
            pretrained_on=model.backbone.pretrained_on,
        )
        self.learned = f"model '{model.name}'"

    @property
    def sources(self) -> dict[str, Source]:
        """The catalog, the model, and the validation tasks if there are any."""
        sources = {
            "catalog": Source(self.catalog.digest, self.catalog.record.name),
            "model": Source(self.model.digest, self.model.name),
        }
        if self.tune_on is not None:
            sources["tune_on"] = Source(self.tune_on.digest, self.tune_on.record.name)
        return sources

    def admitted(self, methods: list[Method], tasks: TaskSet, seed: int, runtime: Runtime) -> list[Method]:
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
        """Decode the items once, and adapt the network to each task."""
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
    """Each method with the learning rate of the best accuracy on the validation tasks; of equals, the smallest.

    Args:
        methods: whose rates are chosen
        tune_on: the validation tasks
        tasks: the tasks that are evaluated afterwards, for a check that they share no item
        catalog: of the items of both
        model: what is adapted
        rates: the rates to choose from; none: each method's own
        seed: for methods that draw
        runtime: device, workers, cache and progress

    Raises:
        InputError: validation tasks and tasks share items.
    """
    _require_other_items(tune_on, tasks)
    evaluation = NetworkEvaluation(tune_on, catalog, model, task_seeds(tune_on, seed), runtime)
    chosen = []
    for method in methods:
        tried = [method.with_rate(rate) for rate in sorted(rates or method.rates)]
        accuracies = evaluation.accuracies(tried)
        chosen.append(tried[accuracies.index(max(accuracies))])  # the first of equals
    return chosen


def _require_other_items(tune_on: TaskSet, tasks: TaskSet) -> None:
    items = pc.unique(items_of(tune_on))
    shared = items.filter(pc.is_in(items, pc.unique(items_of(tasks))))
    if len(shared):
        raise InputError(
            f"the validation tasks share {len(shared):,} items with the tasks, e.g. '{shared[0]}': a learning rate "
            "must not be chosen on what it is evaluated on; draw validation tasks of another split"
        )


class NetworkEvaluation:
    """Tasks on a model's network: the items that occur, decoded once, and the network on the device of who works."""

    def __init__(self, tasks: TaskSet, catalog: Catalog, model: Model, seeds: IntArray, runtime: Runtime) -> None:
        rows = catalog.rows_of(items_of(tasks), "tasks")
        used, position = np.unique(rows, return_inverse=True)
        items = Catalog(catalog.table.take(used), catalog.root, catalog.record)
        support, query = parts_of(tasks, position)
        self.model, self.runtime, self.seeds = model, runtime, seeds
        self.arrays = TaskArrays(np.diff(tasks.starts), support, query, np.empty((0, 0)))
        self.threads = torch.get_num_threads()  # of every worker: scores may depend on it in their last digits
        if not runtime.remote:
            choose_device(runtime.device)  # before anything is decoded
        self.store = ItemStore.of(items, model.preprocessing, runtime)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("device", "items", "net")}

    @cached_property
    def device(self) -> torch.device:
        """Where the network runs."""
        return choose_device(current_runtime().device)

    @cached_property
    def items(self) -> ResidentItems:
        """The decoded items, on the device if they fit."""
        return self.store.tensor(self.device)

    @cached_property
    def net(self) -> FewShotNetwork:
        """The network on the device."""
        if self.device.type == "cpu":
            keep_freed_memory()
        return self.model.network().to(self.device)

    @property
    def query(self) -> Part:
        """All queries, end to end."""
        return self.arrays.query

    def labels(self, methods: Sequence[Adaptation], chunk: int | None = None) -> npt.NDArray[np.int64]:
        """The label that each method gives to each query, [methods, queries]."""
        work = partial(self._labels_of, methods, chunk)
        return np.concatenate([*self.runtime.map_ranges(work, len(self.seeds), what="adapting")], axis=1)

    def _labels_of(self, methods: Sequence[Adaptation], chunk: int | None, tasks: range) -> npt.NDArray[np.int64]:
        """The labels of the queries of some tasks, [methods, queries]."""
        compute_in_threads(self.threads)
        first, stop = self.query.first[[tasks.start, tasks.stop]]
        predicted = np.empty((len(methods), stop - first), dtype=np.int64)
        batches = self.arrays.batches_of(
            tasks, lambda shape, count: chunk or self._tasks_at_a_time(int(shape[1] + shape[2]))
        )
        with current_runtime().progress_bar("adapting", len(tasks) * len(methods)) as advance:

            def answer(index: int, batch: Batch) -> None:
                for part, labels in self._answers(methods[index], batch):
                    predicted[index, part.query - first] = labels
                    advance(len(part.tasks))

            if self.device.type == "cpu" and len(tasks) > 1:
                head, *rest = batches
                for index, method in enumerate(methods):  # the first task of each, so that all costs are told soon
                    began = time.monotonic()
                    answer(index, head.part(slice(0, 1)))
                    self._tell_cost(method, len(tasks), (time.monotonic() - began) * len(tasks))
                batches = [head.part(slice(1, None)), *rest] if len(head.tasks) > 1 else rest
            for index in range(len(methods)):
                for batch in batches:
                    answer(index, batch)
        return predicted

    def _tell_cost(self, method: Adaptation, tasks: int, seconds: float) -> None:
        """Say what all tasks will cost, by the first one."""
        if seconds >= WORTH_TELLING:
            logger.info("%s", cost_note(f"method '{method}'", seconds, self.device.type, f"{tasks:,} tasks"))

    def accuracies(self, methods: Sequence[Adaptation]) -> list[float]:
        """The mean over tasks of the share of queries that each method labels correctly."""
        correct = self.labels(methods) == self.query.slot
        shares = np.add.reduceat(correct, self.query.first[:-1], axis=1) / np.diff(self.query.first)
        return [float(of_tasks.mean()) for of_tasks in shares]

    def _tasks_at_a_time(self, items: int) -> int:
        weights = sum(each.numel() for each in self.net.parameters())
        per_task = 4 * (WEIGHTS_PER_TASK * weights + 2 * items * _values_per_item(self.net, self.model))
        free = FREE_SHARE * torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else CPU_BYTES
        return int(min(MOST_TASKS, max(1, free // per_task)))

    def _answers(self, method: Adaptation, batch: Batch) -> Iterator[tuple[Batch, npt.NDArray[np.int64]]]:
        """The labels [B, m] of the queries of a batch, or of parts of it that fit into memory."""

        def labels(part: Batch) -> npt.NDArray[np.int64]:
            with torch.no_grad():
                scores = method.adapted_scores(self.model, self.net, self._decoded(part))
            if not torch.isfinite(scores).all():
                number = int(part.tasks[int((~scores.isfinite()).flatten(1).any(1).nonzero()[0])])
                raise InputError(
                    f"method '{method}': the scores of task {number} are not numbers any more: lower the learning rate"
                )
            return scores.argmax(-1).cpu().numpy()

        what = f"method '{method}': one task"
        return fitting(batch, labels, self.device, what, "a smaller network or smaller tasks")

    def _decoded(self, batch: Batch) -> DecodedTasks:
        def side(part: Part, positions: IntArray) -> tuple[Tensor, Tensor]:
            rows = torch.from_numpy(part.items[positions])
            prepared = self.model.preprocessing.prepared(self.items.take(rows.flatten()))
            labels = torch.from_numpy(part.slot[positions]).to(self.device)
            return prepared.reshape(*rows.shape, *prepared.shape[1:]), labels

        support, labels = side(self.arrays.support, batch.support)
        query, query_labels = side(self.arrays.query, batch.query)
        seeds = torch.from_numpy(self.seeds[batch.tasks]).to(self.device)
        return DecodedTasks(support, labels, query, query_labels, seeds, batch.way)


def _values_per_item(net: FewShotNetwork, model: Model) -> int:
    """How many numbers the layers of a backbone give for one item: what a gradient has to keep."""
    total = 0

    def count(module: nn.Module, given: object, values: object) -> None:
        nonlocal total
        total += values.numel() if isinstance(values, Tensor) else 0

    hooks = [one.register_forward_hook(count) for one in net.backbone.modules() if not [*one.children()]]
    try:
        with torch.no_grad():
            net.backbone.maps(torch.zeros(1, *model.preprocessing.shape, device=next(net.parameters()).device))
    finally:
        for hook in hooks:
            hook.remove()
    return total
