"""Where training stands after an epoch: all that is needed to go on as if it had never stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.core.plain_values import typed
from shotproof.core.tables import placed
from shotproof.models.model import read_tensors, write_tensors

KIND = "checkpoint"


def checkpoint_of(output: Path) -> Path:
    """Where the checkpoint of the training of a model lies."""
    return output.with_name(f"{output.name}.checkpoint")


@dataclass(frozen=True)
class Standing:
    """What a checkpoint's metadata says of where training stands."""

    plan: Mapping[str, Any]
    epoch: int
    curve: tuple[Mapping[str, Any], ...]
    best_epoch: int | None = None


@dataclass(frozen=True)
class Checkpoint:
    """After `epoch` epochs: the network's weights, the best ones, the optimizer's state, and the curve so far.

    plan: what is trained, by which settings, on which data; training goes on under the same plan only
    """

    plan: Mapping[str, Any]
    epoch: int
    weights: Mapping[str, Tensor]
    best: Mapping[str, Tensor]
    best_epoch: int | None
    optimizer: Mapping[str, Tensor]
    curve: tuple[Mapping[str, Any], ...]

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        parts = {"weights": self.weights, "best": self.best, "optimizer": self.optimizer}
        tensors = {f"{part}/{name}": each for part, named in parts.items() for name, each in named.items()}
        tensors = {name: each.detach().to("cpu", copy=True).contiguous() for name, each in tensors.items()}
        told = {"plan": dict(self.plan), "epoch": self.epoch, "best_epoch": self.best_epoch, "curve": list(self.curve)}
        write_tensors(path, tensors, KIND, told)

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read one; InputError if it cannot be read."""
        tensors, meta = read_tensors(path, KIND)
        with placed(f"checkpoint {path}, metadata, "):
            stands: Standing = typed(meta, Standing)
        parts: dict[str, dict[str, Tensor]] = {"weights": {}, "best": {}, "optimizer": {}}
        for name, each in tensors.items():
            part, _, rest = name.partition("/")
            if part not in parts:
                raise InputError(f"checkpoint {path}, tensor '{name}': expected one of {', '.join(parts)}")
            parts[part][rest] = each
        return cls(
            stands.plan,
            stands.epoch,
            parts["weights"],
            parts["best"],
            stands.best_epoch,
            parts["optimizer"],
            stands.curve,
        )


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimizer by parameter number and name."""
    state = optimizer.state_dict()["state"]
    return {f"{number}.{key}": each for number, own in state.items() for key, each in own.items() if each is not None}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimizer the state that `optimizer_tensors` told, laid out in memory as its parameters are.

    Fused optimizers demand that; a checkpoint keeps no layout.

    Raises:
        InputError: a tensor belongs to none of the parameters.
    """
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, each in tensors.items():
        number, _, key = name.partition(".")
        if not number.isdecimal() or int(number) >= len(parameters):
            raise InputError(f"the checkpoint's tensor 'optimizer/{name}' is of none of {len(parameters)} parameters")
        own = parameters[int(number)]
        if each.shape == own.shape:
            each = torch.empty_like(own, dtype=each.dtype, device=each.device).copy_(each)
        state.setdefault(int(number), {})[key] = each
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
