"""One training, epoch by epoch: updates, validation on tasks of other classes, curves, checkpoints."""

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
from shotproof.core.runtime.devices import keep_freed_memory, thread_beside
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
from shotproof.training.training_batches import BESIDE, CHANGES, STEP, TaskRows, drawn_tasks, item_order, seed_for

ITEMS_AT_A_TIME = 256
TASKS_AT_A_TIME = 8


@dataclass(frozen=True)
class Validation:
    """Tasks, the items that they are of, and how these become input."""

    items: ResidentItems
    tasks: TaskRows
    preprocessing: Preprocessing

    @torch.no_grad()
    def accuracy(self, net: FewShotNetwork, objective: Objective[Any]) -> float:
        """The share of queries, in percent, that the objective's scores label correctly; the network is evaluated."""
        training = net.training
        net.eval()
        seen = None if objective.needs == "items" else self._seen(net, objective)
        correct = torch.zeros((), dtype=torch.int64, device=self.items.device)
        for start in range(0, len(self.tasks), TASKS_AT_A_TIME):
            tasks = self.tasks[start : start + TASKS_AT_A_TIME]

            def side(rows: Tensor) -> Tensor:
                return self._input(rows) if seen is None else seen[rows]

            way = tasks.classes.shape[1]
            scores = objective.scores(net, side(tasks.support), tasks.support_labels, side(tasks.query), way)
            correct += (scores.argmax(-1) == tasks.query_labels).sum()
        net.train(training)
        return 100 * int(correct) / self.tasks.query_labels.numel()

    def _seen(self, net: FewShotNetwork, objective: Objective[Any]) -> Tensor:
        """What scores see of every item."""
        rows = torch.split(torch.arange(len(self.items)), ITEMS_AT_A_TIME)
        return torch.cat([net(self._input(some), objective.needs) for some in rows])

    def _input(self, rows: Tensor) -> Tensor:
        stored = self.items.take(rows.flatten())
        return self.preprocessing.prepared(stored).reshape(*rows.shape, *self.preprocessing.shape)


class Curves:
    """One row per epoch, written beside the model as the training goes on.

    A resumed training begins with the rows of its checkpoint, so that the log never has an epoch twice.
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
        """Take the numbers of an epoch."""
        self.rows.append(dict(row))
        if self.path is not None:
            self._write()
        if self._events is not None:
            for name, value in row.items():
                if name != "epoch" and value is not None:
                    self._events.add_scalar(name, value, row["epoch"])
            self._events.flush()

    def close(self) -> None:
        """End the events."""
        if self._events is not None:
            self._events.close()

    def _write(self) -> None:
        assert self.path is not None
        write_text(self.path, "".join(f"{json.dumps(row, sort_keys=True)}\n" for row in self.rows))


logger = logging.getLogger("shotproof")

# Items of a whole training from which compiling pays: backbones take 20 seconds, steps within tasks minutes.
WORTH_COMPILING = {"vectors": 250_000, "maps": 250_000, "items": 2_000_000}
CHECKED_EVERY = 50  # updates between looks at the loss, each of which waits for the GPU
CHANGED_AT_A_TIME = 512  # items of several updates that are changed at random together: small batches take as long


@dataclass(frozen=True)
class TrainingItems:
    """Items of the training classes where batches are taken from, and the number of each item's class, [n]."""

    store: ItemStore
    resident: ResidentItems
    labels: Tensor
    class_numbers: dict[str, int]


@dataclass
class Trainer:
    """One training: what is trained, on what, and how; `run` does it."""

    net: FewShotNetwork
    objective: Objective[Any]
    settings: TrainingSettings
    items: TrainingItems
    preprocessing: Preprocessing
    augmentation: Augmentation
    sampler: BoundSampler[Sampler] | None  # of an objective on tasks
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
        self.place = self.items.resident.values.device  # where the items are, and so their rows
        self.optimizer = _optimizer([{"params": list(each)} for each, _ in groups], self.settings, self.device)
        if self._compiles():
            self.net.compile_training()
        self.labels = self.items.labels.to(self.place)
        self.curves = Curves(None, ())
        self._left = threading.Event()

    def run(self, runtime: Runtime) -> None:
        """Train, or go on from the checkpoint; afterwards the network has the weights that are kept.

        Raises:
            TrainingFailed: the loss is no number, or memory is too small.
        """
        if self.device.type == "cpu":
            keep_freed_memory()
        first = self._resumed() if self.checkpoint is not None and self.checkpoint.is_file() else 0
        self.curves = Curves(self.log, self.curves.rows)
        updates, epochs = self.updates_per_epoch, self.settings.epochs
        with (
            torch.random.fork_rng([self.device] if self.device.type == "cuda" else []),
            runtime.progress_bar(f"training {self.objective}", epochs * updates) as advance,
            self._writer() as write,
            self._computing() as compute,
        ):
            advance(first * updates)
            steps = (epochs - first) * (updates + self._validation_updates)
            advance = timed(advance, steps, lambda seconds: self._tell_cost(seconds, epochs - first))
            for epoch in range(first, epochs):
                try:
                    loss, accuracy = compute(epoch, advance)
                except torch.OutOfMemoryError as error:
                    raise TrainingFailed(
                        f"memory is too small in epoch {epoch + 1}: lower tasks_per_update or batch, or the image "
                        f"size; {self._kept(epoch)}"
                    ) from error
                write(self._finish_epoch(epoch, loss, accuracy))
        self.curves.close()
        load_weights(self.net, {name: each.to(self.device) for name, each in self.best.items()}, "the best weights")

    @contextlib.contextmanager
    def _computing(self) -> Iterator[Callable[[int, Advance], tuple[float, float | None]]]:
        """Give what computes an epoch: on a CPU, where an update may take long, in a thread that Ctrl-C leaves."""
        if self.device.type != "cpu":
            yield self._epoch
            return
        with thread_beside() as thread:
            try:
                yield lambda epoch, advance: thread.submit(self._epoch, epoch, advance).result()
            finally:
                self._left.set()

    def _epoch(self, epoch: int, advance: Advance) -> tuple[float, float | None]:
        """The mean loss of an epoch, and the accuracy of its validation."""
        loss = self._train_epoch(epoch, advance)
        return loss, self.validation.accuracy(self.net, self.objective) if self.validation else None

    @property
    def updates_per_epoch(self) -> int:
        """How many steps of the optimizer an epoch has."""
        if self.objective.trains_on == "tasks":
            return -(-self.settings.tasks // self.settings.tasks_per_update)
        return max(1, len(self.items.labels) // self.settings.batch)

    @property
    def _validation_updates(self) -> float:
        """How many updates take about as long as a validation, which goes forward alone: a third of the work."""
        if self.validation is None:
            return 0.0
        if self.objective.needs == "items":  # it adapts to each task, as an update does
            return len(self.validation.tasks) / self.settings.tasks_per_update
        return len(self.validation.items) / self._items_per_update / 3

    @property
    def _items_per_update(self) -> int:
        given = self.settings
        return given.tasks_per_update * given.way * (given.shot + given.query) if self.sampler else given.batch

    def _tell_cost(self, seconds: float, epochs: int) -> None:
        note = cost_note(f"training {self.objective}", seconds, self.device.type, f"{epochs} epochs")
        logger.info("%s%s", note, "" if self.checkpoint is None else "; Ctrl-C keeps finished epochs")

    def _compiles(self) -> bool:
        """Whether what the network computes is compiled."""
        if self.settings.compile is not None:
            return self.settings.compile
        if self.device.type != "cuda" or not has_triton():
            return False
        items = self.settings.epochs * self.updates_per_epoch * self._items_per_update
        return items >= WORTH_COMPILING[self.objective.needs]

    def _train_epoch(self, epoch: int, advance: Advance) -> float:
        """The mean loss of an epoch."""
        self.net.train()
        updates, total = self.updates_per_epoch, torch.zeros((), device=self.device)
        generator = torch.Generator(self.device)
        for number, batch in enumerate(self._batches(epoch)):
            if self._left.is_set():
                raise KeyboardInterrupt  # which nobody waits for any more
            step = epoch * updates + number
            # Every update has its own random numbers, so that a resumed training needs no state of a generator.
            torch.manual_seed(seed_for(self.seed, STEP, step, 0))
            generator.manual_seed(seed_for(self.seed, STEP, step, 1))
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
            if (number + 1) % CHECKED_EVERY == 0 or number + 1 == updates:
                self._require_finite(total, epoch, number)
            advance(1)
        return float(total) / updates

    def _batches(self, epoch: int) -> Iterator[ClassBatch | TaskBatch | ViewBatch]:
        """The items of each update of an epoch, changed at random."""
        generator = torch.Generator(self.device)
        first = epoch * self.updates_per_epoch
        if self.sampler is not None:
            for number, tasks in enumerate(self._task_rows(epoch, self.sampler)):
                generator.manual_seed(seed_for(self.seed, CHANGES, first + number))
                yield self._task_batch(tasks, first + number, generator)
            return
        order = item_order(len(self.items.labels), self.seed, epoch).to(self.place)
        size = min(self.settings.batch, len(order))
        together = max(1, CHANGED_AT_A_TIME // size)
        groups = torch.split(order[: self.updates_per_epoch * size], together * size)
        for number, rows in enumerate(groups):
            generator.manual_seed(seed_for(self.seed, CHANGES, first + number * together))
            labels = self.labels[rows].to(self.device, non_blocking=True)
            views = [self._changed(rows, generator) for _ in range(1 + (self.objective.trains_on == "views"))]
            for part in range(0, len(rows), size):
                seen, of = [view[part : part + size] for view in views], labels[part : part + size]
                yield ClassBatch(seen[0], of) if len(seen) == 1 else ViewBatch(seen[0], seen[1], of)

    def _task_rows(self, epoch: int, sampler: BoundSampler[Sampler]) -> Iterator[TaskRows]:
        """The rows of each update of an epoch."""
        left: TaskRows | None = None
        count, size = self.settings.tasks, self.settings.tasks_per_update
        for block in drawn_tasks(
            sampler, range(epoch * count, (epoch + 1) * count), self.items.store, self.items.class_numbers
        ):
            block = block.to(self.place)  # many tasks in one copy: each copy to a GPU takes its time
            rows = block if left is None else left.followed_by(block)
            whole = len(rows) // size * size
            yield from (rows[start : start + size] for start in range(0, whole, size))
            left = rows[whole:]
        if left is not None and len(left):
            yield left

    def _task_batch(self, rows: TaskRows, step: int, generator: torch.Generator) -> TaskBatch:
        tasks, count = rows.to(self.device), rows.support.shape[1]
        both = self._changed(torch.cat([rows.support, rows.query], 1), generator)
        labels = tasks.support_labels, tasks.query_labels
        beside = self._beside(step, generator)
        return TaskBatch(both[:, :count], labels[0], both[:, count:], labels[1], tasks.classes, beside)

    def _beside(self, step: int, generator: torch.Generator) -> ClassBatch | None:
        count = self.objective.items_beside
        if not count:
            return None
        drawn = torch.Generator().manual_seed(seed_for(self.seed, BESIDE, step))
        rows = torch.randint(len(self.items.labels), (count,), generator=drawn).to(self.place, non_blocking=True)
        return ClassBatch(self._changed(rows, generator), self.labels[rows].to(self.device, non_blocking=True))

    def _changed(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        stored = self.items.resident.take(rows.flatten())
        changed = self.augmentation(stored, self.preprocessing, generator)
        return changed.reshape(*rows.shape, *self.preprocessing.shape)

    def _set_lr(self, epoch: float) -> None:
        lr = self.settings.lr_at(epoch, self.settings.epochs)
        for group, factor in zip(self.optimizer.param_groups, self.factors, strict=True):
            group["lr"] = lr * factor

    def _require_finite(self, total: Tensor, epoch: int, number: int) -> None:
        if not torch.isfinite(total):
            raise TrainingFailed(
                f"the loss is not a number any more, by update {number + 1} of epoch {epoch + 1}: lower the learning "
                f"rate ({self.settings.lr:g}) or clip gradients; {self._kept(epoch)}"
            )

    def _kept(self, epoch: int) -> str:
        if self.checkpoint is None or not epoch:
            return "no epoch was finished" if not epoch else "nothing is kept, as no output was given"
        return f"the checkpoint after epoch {epoch} is kept"

    @contextlib.contextmanager
    def _writer(self) -> Iterator[Callable[[Checkpoint], None]]:
        """Give what writes a checkpoint while the next epoch is trained; at the end the last one is on the disk.

        Training never waits for a disk: while one is being written, only the newest of those after it is kept.
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
                    last.result()  # where it could not be written, training ends here
                    last, waiting = thread.submit(checkpoint.write, path), None

            try:
                yield write
            finally:
                last.result()
                if waiting is not None:
                    waiting.write(path)

    def _finish_epoch(self, epoch: int, loss: float, accuracy: float | None) -> Checkpoint:
        """Keep the weights if they are the best, and tell where training stands."""
        before = max((row["accuracy"] for row in self.curves.rows if row["accuracy"] is not None), default=-1.0)
        if accuracy is None or self.settings.keep == "last" or accuracy > before:
            self.best_epoch = epoch + 1
            self.best = _copies(self._weights())
        lr = self.settings.lr_at(epoch, self.settings.epochs)
        self.curves.add({"epoch": epoch + 1, "loss": loss, "lr": lr, "accuracy": accuracy})
        state, rows = _copies(optimizer_tensors(self.optimizer)), tuple(self.curves.rows)
        weights = self.best if self.best_epoch == epoch + 1 else _copies(self._weights())
        return Checkpoint(self.plan, epoch + 1, rows, self.best_epoch, weights, self.best, state)

    def _weights(self) -> dict[str, Tensor]:
        return {name: each for name, each in self.net.state_dict().items() if not name.startswith("head.teacher.")}

    def _resumed(self) -> int:
        """How many epochs are done already."""
        assert self.checkpoint is not None
        found = Checkpoint.read(self.checkpoint)
        load_weights(self.net, found.weights, f"checkpoint {self.checkpoint}")
        restore_optimizer(self.optimizer, found.optimizer)
        self.best, self.best_epoch = dict(found.best), found.best_epoch
        self.curves = Curves(None, found.curve)
        return found.epoch


def _copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same in main memory, whatever becomes of these."""
    copies = {
        name: torch.empty(each.shape, dtype=each.dtype, pin_memory=each.is_cuda).copy_(each.detach(), non_blocking=True)
        for name, each in tensors.items()
    }
    if any(each.is_cuda for each in tensors.values()):
        torch.cuda.synchronize()  # one wait for all of them
    return copies


def _optimizer(groups: list[dict[str, Any]], settings: TrainingSettings, device: torch.device) -> torch.optim.Optimizer:
    decay, fused = settings.weight_decay, device.type == "cuda"  # all weights in one kernel
    if settings.optimizer == "sgd":
        return torch.optim.SGD(
            groups, settings.lr, settings.momentum, nesterov=settings.nesterov, weight_decay=decay, fused=fused
        )
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, settings.lr, weight_decay=decay, fused=fused)
