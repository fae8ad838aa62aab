"""Checkpoints: the state of training after an epoch, with all that is needed to resume it without a difference."""

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
PARTS = ("weights", "best", "optimizer")  # of the tensors


def checkpoint_path(output: Path) -> Path:
    """Return the path of the checkpoint for a model that is written to `output`."""
    return output.with_name(f"{output.name}.checkpoint")


@dataclass(frozen=True)
class TrainingState:
    """State of training after `epoch` epochs, with the curve so far.

    plan: what is trained, with which settings and on which data; training resumes only with the same plan
    """

    plan: Mapping[str, Any]
    epoch: int
    curve: tuple[Mapping[str, Any], ...]
    best_epoch: int | None = None


@dataclass(frozen=True)
class Checkpoint(TrainingState):
    """State of training, with the network's weights, the best weights, and the optimizer's state."""

    weights: Mapping[str, Tensor] = field(default_factory=dict)
    best: Mapping[str, Tensor] = field(default_factory=dict)
    optimizer: Mapping[str, Tensor] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the checkpoint; if writing fails, no partial file is left."""
        tensors = {f"{part}/{name}": tensor for part in PARTS for name, tensor in getattr(self, part).items()}
        tensors = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}
        meta = {entry.name: getattr(self, entry.name) for entry in fields(TrainingState)}
        write_tensors(path, tensors, KIND, meta)

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read a checkpoint. Raise InputError if it cannot be read."""
        tensors, meta = read_tensors(path, KIND)
        with error_prefix(f"checkpoint {path}, metadata, "):
            state: TrainingState = typed(meta, TrainingState)
        parts: dict[str, Any] = {part: {} for part in PARTS}  # tensors by name, by part
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            if part not in parts:
                begins = ", ".join(f"{expected}/" for expected in parts)
                raise InputError(f"checkpoint {path}, tensor '{name}': expected a name that begins with {begins}")
            parts[part][rest] = tensor
        return cls(**vars(state), **parts)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the tensors of an optimizer's state, named by parameter number and key."""
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{key}": tensor
        for number, tensors in state.items()
        for key, tensor in tensors.items()
        if tensor is not None
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Restore an optimizer's state from `optimizer_tensors`, with the memory layout of its parameters.

    Fused optimizers require this layout, and a checkpoint does not store it.

    Raises:
        InputError: a tensor belongs to none of the parameters.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        number, _, key = name.partition(".")
        if not number.isdecimal() or int(number) >= len(parameters):
            raise InputError(
                f"the checkpoint's tensor 'optimizer/{name}' belongs to none of {len(parameters)} parameters"
            )
        parameter = parameters[int(number)]
        if tensor.shape == parameter.shape:
            tensor = torch.empty_like(parameter, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
        state.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


REPLACE = "choose another output, or replace what is there (replace=True, --replace)"

_CONTINUES = "run the same command again to continue"


@dataclass(frozen=True)
class EarlierTraining:
    """File of an earlier training, with its plan, and the model if training has finished."""

    path: Path
    plan: Mapping[str, Any]
    model: Model | None = None

    @classmethod
    def find(cls, output: Path, plan: Mapping[str, Any], replace: bool) -> Self | None:
        """Find the file of an earlier run of the same training; None if there is none.

        Args:
            output: path of the model to write
            plan: what is trained; settings that it lacks are not compared
            replace: whether files of another training may be replaced; if so, its checkpoint is removed at once

        Raises:
            Mismatch: the file belongs to another training; the message lists all differences.
            InputError: the file cannot be read, or is of another kind.
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
                raise Mismatch(f"{earlier.path} belongs to another training: {difference}; {REPLACE}")
        checkpoint_path(output).unlink(missing_ok=True)
        return None

    @classmethod
    def _at(cls, output: Path) -> Self | None:
        """Read the checkpoint or model at an output; a checkpoint is newer than a model beside it."""
        checkpoint = checkpoint_path(output)
        if checkpoint.is_file():
            return cls(checkpoint, Checkpoint.read(checkpoint).plan)
        if not output.is_file():
            return None
        model = Model.read(output)
        return cls(output, plan_from_record(model.record), model)

    def _difference(self, plan: Mapping[str, Any]) -> str:
        """Describe how a plan differs, e.g. `seed was 0, now 7`."""
        before, now = _flat(self.plan), _flat(plan)
        # A model does not record the contents of its items' files.
        compared = [name for name in now if name != "items" or name in before]
        different = [name for name in compared if before.get(name) != now[name]]
        return ", ".join(
            f"{name} was {format_value(before.get(name))}, now {format_value(now[name])}" for name in different
        )


def interruption_message(outputs: Sequence[Path | None]) -> str:
    """Describe what is kept of a training that was interrupted.

    Args:
        outputs: the models of all stages up to the interrupted one; None if they are not written
    """
    *before, output = outputs
    if output is None:
        return "interrupted; nothing is kept, because no output was given"
    if checkpoint_path(output).is_file():
        return f"interrupted; finished epochs are kept in {checkpoint_path(output)}; {_CONTINUES}"
    unfinished = f"interrupted before the first epoch of {output} was finished"
    if before:
        return f"{unfinished}; {before[-1]} is kept; {_CONTINUES} after it"
    return f"{unfinished}; nothing is kept yet; running the same command again starts over"


def plan_from_record(record: ModelRecord) -> dict[str, Any]:
    """Return the plan of a model: what was trained, with which settings and on which data."""
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
    """Return a plan with its settings as entries of their own."""
    settings = plan.get("settings")
    entries = settings if isinstance(settings, Mapping) else {}
    return {**{name: value for name, value in plan.items() if name != "settings"}, **entries}
