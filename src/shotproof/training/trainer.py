"""Training loop: updates, validation on tasks of other classes, curves and checkpoints, epoch by epoch."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._triton import has_triton

from shotproof.core.errors import TrainingFailed
from shotproof.core.runtime.devices import background_thread, keep_freed_memory
from shotproof.core.runtime.progress import Advance, cost_note, timed
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.whole_files import write_text
from shotproof.models.augment import Augmentation
from shotproof.models.backbones.resnet12 import advance_drop_blocks
from shotproof.models.decoded_items import ItemStore, ResidentItems
from shotproof.models.model import load_weights
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import ClassBatch, Objective, TaskBatch, ViewBatch
from shotproof.models.preprocessing import Preprocessing
from shotproof.tasks.sampler import BoundSampler, Sampler
from shotproof.training.checkpoint import Checkpoint, optimizer_tensors, restore_optimizer
from shotproof.training.settings import TrainingSettings
from shotproof.training.training_batches import ADDITIONAL, AUGMENT, STEP, TaskRows, derive_seed, draw_tasks, item_order

ITEMS_AT_A_TIME = 256
TASKS_AT_A_TIME = 8


@dataclass(frozen=True)
class Validation:
    """Validation tasks, their items, and the preprocessing of these."""

    items: ResidentItems
    tasks: TaskRows
    preprocessing: Preprocessing

    @torch.no_grad()
    def accuracy(self, net: FewShotNetwork, objective: Objective[Any]) -> float:
        """Compute the accuracy on the queries, in percent, with the network in evaluation mode."""
        training = net.training
        net.eval()
        outputs = None if objective.needs == "items" else self._outputs(net, objective)
        correct = torch.zeros((), dtype=torch.int64, device=self.items.device)
        for start in range(0, len(self.tasks), TASKS_AT_A_TIME):
            tasks = self.tasks[start : start + TASKS_AT_A_TIME]

            def inputs(rows: Tensor) -> Tensor:
                return self._input(rows) if outputs is None else outputs[rows]

            way = tasks.classes.shape[1]
            scores = objective.scores(net, inputs(tasks.support), tasks.support_labels, inputs(tasks.query), way)
            correct += (scores.argmax(-1) == tasks.query_labels).sum()
        net.train(training)
        return 100 * int(correct) / self.tasks.query_labels.numel()

    def _outputs(self, net: FewShotNetwork, objective: Objective[Any]) -> Tensor:
        """Compute the network's output for every item, in the form that the objective needs."""
        rows = torch.split(torch.arange(len(self.items)), ITEMS_AT_A_TIME)
        return torch.cat([net(self._input(part), objective.needs) for part in rows])

    def _input(self, rows: Tensor) -> Tensor:
        stored = self.items.take(rows.flatten())
        return self.preprocessing.prepared(stored).reshape(*rows.shape, *self.preprocessing.shape)


class Curves:
    """Curves of training: one row per epoch, written beside the model while training runs.

    Resumed training begins with the rows of its checkpoint, so that no epoch is logged twice.
    """

    def __init__(self, path: Path | None, rows: Sequence[Mapping[str, Any]]) -> None:
        self.path = path
        self.rows = [dict(row) for row in rows]
        self._events: Any = None
        if path is not None:
            self._write()
            with contextlib.suppress(ImportError):
                from torch.utils.tensorboard.writer import SummaryWriter

                self._events = SummaryWriter(path.with_suffix(".events"), purge_step=len(self.rows) + 1)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the numbers of an epoch."""
        self.rows.append(dict(row))
        if self.path is not None:
            self._write()
        if self._events is not None:
            for name, value in row.items():
                if name != "epoch" and value is not None:
                    self._events.add_scalar(name, value, row["epoch"])
            self._events.flush()

    def close(self) -> None:
        """Close the TensorBoard log."""
        if self._events is not None:
            self._events.close()

    def _write(self) -> None:
        assert self.path is not None
        write_text(self.path, "".join(f"{json.dumps(row, sort_keys=True)}\n" for row in self.rows))


logger = logging.getLogger("shotproof")

# Number of items in a training from which compilation pays off: it takes 20 s for backbones, minutes for inner loops.
WORTH_COMPILING = {"vectors": 250_000, "maps": 250_000, "items": 2_000_000}
CHECK_EVERY = 50  # updates between checks of the loss, each of which waits for the GPU
AUGMENT_AT_A_TIME = 512  # items of several updates that are augmented together: small batches take as long


@dataclass(frozen=True)
class TrainingItems:
    """Items of the training classes on the device, and the class number of each item, [n]."""

    store: ItemStore
    resident: ResidentItems
    labels: Tensor
    class_numbers: dict[str, int]


@dataclass
class Trainer:
    """Training of a network: its objective, data and settings; `run` carries it out."""

    net: FewShotNetwork
    objective: Objective[Any]
    settings: TrainingSettings
    items: TrainingItems
    preprocessing: Preprocessing
    augmentation: Augmentation
    sampler: BoundSampler[Sampler] | None  # for objectives on tasks
    validation: Validation | None
    seed: int
    plan: Mapping[str, Any]
    checkpoint: Path | None = None
    log: Path | None = None
    best: dict[str, Tensor] = field(default_factory=dict)
    best_epoch: int | None = None

    def __post_init__(self) -> None:
        groups = self.objective.parameter_groups(self.net)
        self.factors = [factor for _, factor in groups]
        self.device = self.items.resident.device
        self.place = self.items.resident.values.device  # of the items, and so of their rows
        self.optimizer = _make_optimizer(
            [{"params": list(parameters)} for parameters, _ in groups], self.settings, self.device
        )
        if self._should_compile():
            self.net.compile_training()
        self.labels = self.items.labels.to(self.place)
        self.curves = Curves(None, ())
        self._is_abandoned = threading.Event()

    def run(self, runtime: Runtime) -> None:
        """Train, or resume from the checkpoint, and load the weights to keep into the network.

        Raises:
            TrainingFailed: the loss is not finite, or memory ran out.
        """
        if self.device.type == "cpu":
            keep_freed_memory()
        first = self._resume() if self.checkpoint is not None and self.checkpoint.is_file() else 0
        self.curves = Curves(self.log, self.curves.rows)
        updates, epochs = self.updates_per_epoch, self.settings.epochs
        with (
            torch.random.fork_rng([self.device] if self.device.type == "cuda" else []),
            runtime.progress_bar(f"training {self.objective}", epochs * updates) as advance,
            self._checkpoint_writer() as write,
            self._epoch_function() as compute,
        ):
            advance(first * updates)
            steps = (epochs - first) * (updates + self._validation_updates)
            advance = timed(advance, steps, lambda seconds: self._log_cost(seconds, epochs - first))
            for epoch in range(first, epochs):
                try:
                    loss, accuracy = compute(epoch, advance)
                except torch.OutOfMemoryError as error:
                    raise TrainingFailed(
                        f"out of memory in epoch {epoch + 1}: lower tasks_per_update or batch, or the image size; "
                        f"{self._describe_checkpoint(epoch)}"
                    ) from error
                write(self._finish_epoch(epoch, loss, accuracy))
        self.curves.close()
        load_weights(self.net, {name: tensor.to(self.device) for name, tensor in self.best.items()}, "the best weights")

    @contextlib.contextmanager
    def _epoch_function(self) -> Iterator[Callable[[int, Advance], tuple[float, float | None]]]:
        """Yield a function that runs an epoch; on a CPU in a thread, so that Ctrl-C need not wait for an update."""
        if self.device.type != "cpu":
            yield self._run_epoch
            return
        with background_thread() as thread:
            try:
                yield lambda epoch, advance: thread.submit(self._run_epoch, epoch, advance).result()
            finally:
                self._is_abandoned.set()

    def _run_epoch(self, epoch: int, advance: Advance) -> tuple[float, float | None]:
        """Train an epoch, and return its mean loss and validation accuracy."""
        loss = self._train_epoch(epoch, advance)
        return loss, self.validation.accuracy(self.net, self.objective) if self.validation else None

    @property
    def updates_per_epoch(self) -> int:
        """Return the number of updates per epoch."""
        if self.objective.trains_on == "tasks":
            return -(-self.settings.tasks // self.settings.tasks_per_update)
        return max(1, len(self.items.labels) // self.settings.batch)

    @property
    def _validation_updates(self) -> float:
        """Return how many updates take as long as a validation; a forward pass is about a third of an update."""
        if self.validation is None:
            return 0.0
        if self.objective.needs == "items":  # validation adapts to each task, like an update
            return len(self.validation.tasks) / self.settings.tasks_per_update
        return len(self.validation.items) / self._items_per_update / 3

    @property
    def _items_per_update(self) -> int:
        settings = self.settings
        if self.sampler is None:
            return settings.batch
        return settings.tasks_per_update * settings.way * (settings.shot + settings.query)

    def _log_cost(self, seconds: float, epochs: int) -> None:
        note = cost_note(f"training {self.objective}", seconds, self.device.type, f"{epochs} epochs")
        logger.info("%s%s", note, "" if self.checkpoint is None else "; Ctrl-C keeps finished epochs")

    def _should_compile(self) -> bool:
        """Return whether to compile the network."""
        if self.settings.compile is not None:
            return self.settings.compile
        if self.device.type != "cuda" or not has_triton():
            return False
        items = self.settings.epochs * self.updates_per_epoch * self._items_per_update
        return items >= WORTH_COMPILING[self.objective.needs]

    def _train_epoch(self, epoch: int, advance: Advance) -> float:
        """Train for an epoch, and return its mean loss."""
        self.net.train()
        updates, total = self.updates_per_epoch, torch.zeros((), device=self.device)
        generator = torch.Generator(self.device)
        for number, batch in enumerate(self._batches(epoch)):
            if self._is_abandoned.is_set():
                raise KeyboardInterrupt  # nothing waits for the result any more
            step = epoch * updates + number
            # Every update has its own seeds, so that resumed training needs no generator state.
            torch.manual_seed(derive_seed(self.seed, STEP, step, 0))
            generator.manual_seed(derive_seed(self.seed, STEP, step, 1))
            advance_drop_blocks(self.net, step)
            self._set_lr(epoch + number / updates)
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.objective.loss(self.net, batch, generator)
            loss.backward()  # type: ignore[no-untyped-call]
            if self.settings.clip is not None:
                torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.settings.clip)
            self.optimizer.step()
            self.objective.after_update(self.net)
            total += loss.detach()
            if (number + 1) % CHECK_EVERY == 0 or number + 1 == updates:
                self._require_finite(total, epoch, number)
            advance(1)
        return float(total) / updates

    def _batches(self, epoch: int) -> Iterator[ClassBatch | TaskBatch | ViewBatch]:
        """Yield the augmented items of each update of an epoch."""
        generator = torch.Generator(self.device)
        first = epoch * self.updates_per_epoch
        if self.sampler is not None:
            for number, tasks in enumerate(self._draw_task_rows(epoch, self.sampler)):
                generator.manual_seed(derive_seed(self.seed, AUGMENT, first + number))
                yield self._task_batch(tasks, first + number, generator)
            return
        order = item_order(len(self.items.labels), self.seed, epoch).to(self.place)
        size = min(self.settings.batch, len(order))
        together = max(1, AUGMENT_AT_A_TIME // size)
        groups = torch.split(order[: self.updates_per_epoch * size], together * size)
        for number, rows in enumerate(groups):
            generator.manual_seed(derive_seed(self.seed, AUGMENT, first + number * together))
            labels = self.labels[rows].to(self.device, non_blocking=True)
            views = [self._augment(rows, generator) for _ in range(1 + (self.objective.trains_on == "views"))]
            for part in range(0, len(rows), size):
                batch, batch_labels = [view[part : part + size] for view in views], labels[part : part + size]
                if len(batch) == 1:
                    yield ClassBatch(batch[0], batch_labels)
                else:
                    yield ViewBatch(batch[0], batch[1], batch_labels)

    def _draw_task_rows(self, epoch: int, sampler: BoundSampler[Sampler]) -> Iterator[TaskRows]:
        """Yield the rows of each update of an epoch."""
        remaining: TaskRows | None = None
        count, size = self.settings.tasks, self.settings.tasks_per_update
        for block in draw_tasks(
            sampler, range(epoch * count, (epoch + 1) * count), self.items.store, self.items.class_numbers
        ):
            block = block.to(self.place)  # many tasks in one copy, as every copy to a GPU has overhead
            rows = block if remaining is None else remaining.followed_by(block)
            complete = len(rows) // size * size
            yield from (rows[start : start + size] for start in range(0, complete, size))
            remaining = rows[complete:]
        if remaining is not None and len(remaining):
            yield remaining

    def _task_batch(self, rows: TaskRows, step: int, generator: torch.Generator) -> TaskBatch:
        tasks, count = rows.to(self.device), rows.support.shape[1]
        items = self._augment(torch.cat([rows.support, rows.query], 1), generator)
        labels = tasks.support_labels, tasks.query_labels
        additional = self._additional_batch(step, generator)
        return TaskBatch(items[:, :count], labels[0], items[:, count:], labels[1], tasks.classes, additional)

    def _additional_batch(self, step: int, generator: torch.Generator) -> ClassBatch | None:
        count = self.objective.items_beside
        if not count:
            return None
        row_generator = torch.Generator().manual_seed(derive_seed(self.seed, ADDITIONAL, step))
        rows = torch.randint(len(self.items.labels), (count,), generator=row_generator)
        rows = rows.to(self.place, non_blocking=True)
        return ClassBatch(self._augment(rows, generator), self.labels[rows].to(self.device, non_blocking=True))

    def _augment(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        stored = self.items.resident.take(rows.flatten())
        augmented = self.augmentation(stored, self.preprocessing, generator)
        return augmented.reshape(*rows.shape, *self.preprocessing.shape)

    def _set_lr(self, epoch: float) -> None:
        lr = self.settings.lr_at(epoch, self.settings.epochs)
        for group, factor in zip(self.optimizer.param_groups, self.factors, strict=True):
            group["lr"] = lr * factor

    def _require_finite(self, total: Tensor, epoch: int, number: int) -> None:
        if not torch.isfinite(total):
            raise TrainingFailed(
                f"the loss became infinite or NaN by update {number + 1} of epoch {epoch + 1}: lower the learning rate "
                f"({self.settings.lr:g}) or clip gradients; {self._describe_checkpoint(epoch)}"
            )

    def _describe_checkpoint(self, epoch: int) -> str:
        if not epoch:
            return "no epoch was finished"
        if self.checkpoint is None:
            return "nothing is kept, because no output was given"
        return f"the checkpoint after epoch {epoch} is kept"

    @contextlib.contextmanager
    def _checkpoint_writer(self) -> Iterator[Callable[[Checkpoint], None]]:
        """Yield a function that writes a checkpoint during the next epoch; at the end, the last one is on disk.

        Training never waits for the disk: while a checkpoint is being written, only the newest later one is kept.
        """
        if self.checkpoint is None:
            yield lambda checkpoint: None
            return
        path, last, waiting = self.checkpoint, Future[None](), None
        last.set_result(None)
        with ThreadPoolExecutor(1) as thread:

            def write(checkpoint: Checkpoint) -> None:
                nonlocal last, waiting
                waiting = checkpoint
                if last.done():
                    last.result()  # raises the error if writing failed
                    last, waiting = thread.submit(checkpoint.write, path), None

            try:
                yield write
            finally:
                last.result()
                if waiting is not None:
                    waiting.write(path)

    def _finish_epoch(self, epoch: int, loss: float, accuracy: float | None) -> Checkpoint:
        """Keep the weights if they are the best so far, and return the checkpoint."""
        best_before = max((row["accuracy"] for row in self.curves.rows if row["accuracy"] is not None), default=-1.0)
        if accuracy is None or self.settings.keep == "last" or accuracy > best_before:
            self.best_epoch = epoch + 1
            self.best = _copy_to_memory(self._weights())
        lr = self.settings.lr_at(epoch, self.settings.epochs)
        self.curves.add({"epoch": epoch + 1, "loss": loss, "lr": lr, "accuracy": accuracy})
        state, rows = _copy_to_memory(optimizer_tensors(self.optimizer)), tuple(self.curves.rows)
        weights = self.best if self.best_epoch == epoch + 1 else _copy_to_memory(self._weights())
        return Checkpoint(self.plan, epoch + 1, rows, self.best_epoch, weights, self.best, state)

    def _weights(self) -> dict[str, Tensor]:
        return {name: tensor for name, tensor in self.net.state_dict().items() if not name.startswith("head.teacher.")}

    def _resume(self) -> int:
        """Load the checkpoint, and return its number of epochs."""
        assert self.checkpoint is not None
        checkpoint = Checkpoint.read(self.checkpoint)
        load_weights(self.net, checkpoint.weights, f"checkpoint {self.checkpoint}")
        restore_optimizer(self.optimizer, checkpoint.optimizer)
        self.best, self.best_epoch = dict(checkpoint.best), checkpoint.best_epoch
        self.curves = Curves(None, checkpoint.curve)
        return checkpoint.epoch


def _copy_to_memory(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors to main memory."""
    copies = {
        name: torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda).copy_(
            tensor.detach(), non_blocking=True
        )
        for name, tensor in tensors.items()
    }
    if any(tensor.is_cuda for tensor in tensors.values()):
        torch.cuda.synchronize()  # one wait for all copies
    return copies


def _make_optimizer(
    groups: list[dict[str, Any]], settings: TrainingSettings, device: torch.device
) -> torch.optim.Optimizer:
    decay, fused = settings.weight_decay, device.type == "cuda"  # fused: all weights in one kernel
    if settings.optimizer == "sgd":
        return torch.optim.SGD(
            groups, settings.lr, settings.momentum, nesterov=settings.nesterov, weight_decay=decay, fused=fused
        )
    optimizer_class = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    return optimizer_class(groups, settings.lr, weight_decay=decay, fused=fused)
