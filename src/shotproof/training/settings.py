"""Training settings with defaults and checks; objectives and recipes have their own defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shotproof.core import limits
from shotproof.core.options import Checked, option

OPTIMIZERS = ("sgd", "adam", "adamw")
KEEP = ("best", "last")
SCHEDULES = ("constant", "cosine", "step")


@dataclass(frozen=True)
class TrainingSettings(Checked):
    """Settings that decide training, besides the data, objective, backbone and seed.

    Example:
        >>> TrainingSettings(epochs=4, schedule="step", milestones=(2,), decay=0.1, lr=1.0).lr_at(2, 4)
        0.1
    """

    way: int = option(5, "classes per task", within=limits.WAY)
    shot: int = option(5, "support items per class", within=limits.SHOT)
    query: int = option(15, "query items per class", within=limits.QUERY)
    epochs: int = option(100, "number of epochs, each with a validation and a checkpoint", within=limits.EPOCHS)
    tasks: int = option(2000, "tasks per epoch, for objectives on tasks", least=1)
    tasks_per_update: int = option(4, "tasks whose mean loss each update uses", least=1)
    batch: int = option(128, "items per update, for objectives on classes or views", least=2, most=limits.BATCH.most)
    optimizer: str = option("sgd", "optimizer", choices=OPTIMIZERS)
    lr: float = option(0.05, "initial learning rate", above=0)
    momentum: float = option(0.9, "momentum of sgd", least=0, most=1)
    nesterov: bool = option(False, "whether sgd uses Nesterov momentum")
    weight_decay: float = option(5e-4, "weight decay", least=0)
    schedule: str = option("constant", "schedule of the learning rate", choices=SCHEDULES)
    milestones: tuple[int, ...] = option(
        (), "epochs after which the schedule step multiplies the learning rate by decay", least=1
    )
    decay: float = option(0.1, "factor of the schedule step", above=0, most=1)
    warm_up: float = option(0.0, "epochs over which the learning rate rises from zero", least=0)
    clip: float | None = option(None, "largest norm of the gradient; None does not clip", above=0)
    size: int | None = option(None, "side of images in pixels; None uses the backbone's", least=8)
    seconds: float | None = option(None, "length of sounds in seconds; None uses the backbone's", above=0)
    augment: str = option("auto", "augmentation of items; auto chooses what suits images, sounds or views")
    train_sampler: str = option("random", "sampler of the training tasks")
    compile: bool | None = option(
        None, "whether to compile the backbone with torch.compile; None does so on a GPU if training is long enough"
    )
    val_tasks: int = option(200, "validation tasks after each epoch", least=1)
    keep: str = option("best", "weights to keep: those with the best validation accuracy, or the last", choices=KEEP)

    def with_values(self, values: Mapping[str, Any], whose: str) -> TrainingSettings:
        """Return a copy with other values. Raise InputError with the closest name if a setting is unknown.

        Args:
            values: values by setting
            whose: whose values these are, for the message
        """
        self.require_known(values, f"{whose} has no setting")
        return replace(self, **values)

    def lr_at(self, epoch: float, epochs: int) -> float:
        """Return the learning rate after `epoch` of `epochs` epochs; `epoch` may be fractional."""
        factor = min(1.0, epoch / self.warm_up) if self.warm_up else 1.0
        if self.schedule == "cosine":
            factor *= (1 + math.cos(math.pi * min(1.0, epoch / epochs))) / 2
        elif self.schedule == "step":
            factor *= self.decay ** sum(epoch >= milestone for milestone in self.milestones)
        return self.lr * factor
