"""How a network is trained: every setting with its default, checked; objectives and recipes have their own defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shotproof.core import limits
from shotproof.core.options import Checked, option

OPTIMIZERS = ("sgd", "adam", "adamw")
KEPT = ("best", "last")
SCHEDULES = ("constant", "cosine", "step")


@dataclass(frozen=True)
class TrainingSettings(Checked):
    """All that decides a training besides data, objective, backbone and seed.

    Example:
        >>> TrainingSettings(epochs=4, schedule="step", milestones=(2,), decay=0.1, lr=1.0).lr_at(2, 4)
        0.1
    """

    way: int = option(5, "classes per task", within=limits.WAY)
    shot: int = option(5, "support items per class", within=limits.SHOT)
    query: int = option(15, "query items per class", within=limits.QUERY)
    epochs: int = option(100, "rounds, each with a validation and a checkpoint", within=limits.EPOCHS)
    tasks: int = option(2000, "tasks per epoch, of an objective on tasks", least=1)
    tasks_per_update: int = option(4, "tasks of which each update has the mean loss", least=1)
    batch: int = option(128, "items per update, of an objective on classes or views", least=2, most=limits.BATCH.most)
    optimizer: str = option("sgd", "which", choices=OPTIMIZERS)
    lr: float = option(0.05, "the learning rate at the start", above=0)
    momentum: float = option(0.9, "of sgd", least=0, most=1)
    nesterov: bool = option(False, "whether sgd looks ahead")
    weight_decay: float = option(5e-4, "pull of all weights to zero", least=0)
    schedule: str = option("constant", "how the learning rate falls", choices=SCHEDULES)
    milestones: tuple[int, ...] = option((), "epochs after which the schedule step multiplies by decay", least=1)
    decay: float = option(0.1, "what the schedule step multiplies by", above=0, most=1)
    warm_up: float = option(0.0, "epochs over which the learning rate rises from zero", least=0)
    clip: float | None = option(None, "the largest norm of a gradient", above=0)
    size: int | None = option(None, "a side of images, in pixels; None: the backbone's", least=8)
    seconds: float | None = option(None, "length of sounds; None: the backbone's", above=0)
    augment: str = option("auto", "random changes of items; auto: what suits images, sounds or views")
    train_sampler: str = option("random", "which sampler draws the training tasks")
    compile: bool | None = option(
        None, "whether torch.compile makes the backbone faster; None: on a GPU, in trainings that are long enough"
    )
    val_tasks: int = option(200, "tasks by which each epoch is validated", least=1)
    keep: str = option("best", "which weights are kept: those of the best validation, or the last", choices=KEPT)

    def with_values(self, values: Mapping[str, Any], whose: str) -> TrainingSettings:
        """The same with other values; InputError with the nearest name for a setting that there is not."""
        self.require_known(values, f"{whose} has no setting")
        return replace(self, **values)

    def lr_at(self, epoch: float, epochs: int) -> float:
        """The learning rate after so many epochs, whole or not."""
        factor = min(1.0, epoch / self.warm_up) if self.warm_up else 1.0
        if self.schedule == "cosine":
            factor *= (1 + math.cos(math.pi * min(1.0, epoch / epochs))) / 2
        elif self.schedule == "step":
            factor *= self.decay ** sum(epoch >= milestone for milestone in self.milestones)
        return self.lr * factor
