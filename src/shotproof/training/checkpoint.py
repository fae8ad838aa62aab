"""Where training stands after an epoch: all that is needed to go on as if it had never stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from shotproof.core.errors import InputError, Mismatch, error_prefix
from shotproof.core.plain_values import format_value, typed
from shotproof.core.records import ModelRecord
from shotproof.models.model import Model, read_tensors, write_tensors

KIND = "checkpoint"
PARTS = ("weights", "best", "optimizer")  # of its tensors


def checkpoint_of(output: Path) -> Path:
    """Where the checkpoint of the training of a model lies."""
    return output.with_name(f"{output.name}.checkpoint")


@dataclass(frozen=True)
class Standing:
    """Where training stands: after `epoch` epochs, with the curve so far.

    plan: what is trained, by which settings, on which data; training goes on under the same plan only
    """

    plan: Mapping[str, Any]
    epoch: int
    curve: tuple[Mapping[str, Any], ...]
    best_epoch: int | None = None


@dataclass(frozen=True)
class Checkpoint(Standing):
    """Where training stands, with the network's weights, the best ones, and the optimizer's state."""

    weights: Mapping[str, Tensor] = field(default_factory=dict)
    best: Mapping[str, Tensor] = field(default_factory=dict)
    optimizer: Mapping[str, Tensor] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        tensors = {f"{part}/{name}": each for part in PARTS for name, each in getattr(self, part).items()}
        tensors = {name: each.detach().to("cpu", copy=True).contiguous() for name, each in tensors.items()}
        write_tensors(path, tensors, KIND, {each.name: getattr(self, each.name) for each in fields(Standing)})

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read one; InputError if it cannot be read."""
        tensors, meta = read_tensors(path, KIND)
        with error_prefix(f"checkpoint {path}, metadata, "):
            stands: Standing = typed(meta, Standing)
        parts: dict[str, Any] = {part: {} for part in PARTS}  # tensors by name, by part
        for name, each in tensors.items():
            part, _, rest = name.partition("/")
            if part not in parts:
                raise InputError(f"checkpoint {path}, tensor '{name}': expected one of {', '.join(parts)}")
            parts[part][rest] = each
        return cls(**vars(stands), **parts)


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


REPLACE = "give another output, or replace what is there (replace=True, --replace)"


@dataclass(frozen=True)
class EarlierTraining:
    """The file that an earlier training left, what was trained there, and the model if training has ended."""

    path: Path
    plan: Mapping[str, Any]
    model: Model | None = None

    @classmethod
    def same(cls, output: Path, plan: Mapping[str, Any], replace: bool) -> Self | None:
        """Find what the same training has left at an output; None if there is nothing.

        Args:
            output: the model that is to be written
            plan: what is to be trained; what it does not tell is not compared
            replace: whether what another training has left may be replaced: its checkpoint is removed at once

        Raises:
            Mismatch: it is of another training; the message names all that differs.
            InputError: it cannot be read, or is something else.
        """
        try:
            earlier = cls._at(output)
        except InputError as error:
            if not replace:
                raise InputError(f"{error}; {REPLACE}") from error
        else:
            difference = "" if earlier is None else earlier._difference(plan)
            if earlier is None or not difference:
                return earlier
            if not replace:
                raise Mismatch(f"{earlier.path} is of another training: {difference}; {REPLACE}")
        checkpoint_of(output).unlink(missing_ok=True)
        return None

    @classmethod
    def _at(cls, output: Path) -> Self | None:
        """What lies at an output. A checkpoint is newer than a model beside it."""
        checkpoint = checkpoint_of(output)
        if checkpoint.is_file():
            return cls(checkpoint, Checkpoint.read(checkpoint).plan)
        if not output.is_file():
            return None
        model = Model.read(output)
        return cls(output, plan_of(model.record), model)

    def _difference(self, plan: Mapping[str, Any]) -> str:
        """How a plan differs, e.g. `seed was 0 and is 7`."""
        before, now = _flat(self.plan), _flat(plan)
        # A model does not tell the contents of its items' files.
        compared = [name for name in now if name != "items" or name in before]
        differs = [name for name in compared if before.get(name) != now[name]]
        return ", ".join(f"{name} was {format_value(before.get(name))} and is {format_value(now[name])}" for name in differs)


def what_is_kept(outputs: Sequence[Path | None]) -> str:
    """Say what Ctrl-C leaves of a training.

    Args:
        outputs: the models of the stages up to the one that was interrupted; None if they are not written
    """
    *before, output = outputs
    if output is None:
        return "interrupted; nothing is kept, as no output was given"
    if checkpoint_of(output).is_file():
        return f"interrupted; finished epochs are kept in {checkpoint_of(output)}, the same command continues"
    if before:
        return f"interrupted before {output} had an epoch; {before[-1]} is kept, the same command continues after it"
    return f"interrupted before {output} had an epoch; nothing of it is kept yet, the same command begins it anew"


def plan_of(record: ModelRecord) -> dict[str, Any]:
    """What is trained, by which settings and on which data, as a checkpoint has it."""
    return {
        "objective": str(record.objective),
        "backbone": str(record.backbone),
        "settings": dict(record.settings),
        "split": record.split,
        "val_split": record.val_split,
        "catalog": record.source("catalog"),
        "attributes": record.source("attributes"),
        "features": record.source("features"),
        "from_model": record.source("model"),
        "seed": record.seed,
    }


def _flat(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Each setting under its own name beside the rest."""
    settings = plan.get("settings")
    own = settings if isinstance(settings, Mapping) else {}
    return {**{name: value for name, value in plan.items() if name != "settings"}, **own}
