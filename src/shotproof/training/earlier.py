"""What an earlier training left at an output: its model, or the checkpoint of one that did not end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from shotproof.core.errors import InputError, Mismatch
from shotproof.core.plain_values import shown
from shotproof.core.records import ModelRecord
from shotproof.models.model import Model
from shotproof.training.checkpoint import Checkpoint, checkpoint_of

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
        return cls(output, _plan_of(model.record), model)

    def _difference(self, plan: Mapping[str, Any]) -> str:
        """How a plan differs, e.g. `seed was 0 and is 7`."""
        before, now = _flat(self.plan), _flat(plan)
        # A model does not tell the contents of its items' files.
        compared = [name for name in now if name != "items" or name in before]
        differs = [name for name in compared if before.get(name) != now[name]]
        return ", ".join(f"{name} was {shown(before.get(name))} and is {shown(now[name])}" for name in differs)


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
    return f"interrupted before {output} had an epoch; nothing is kept yet, the same command begins anew"


def _plan_of(record: ModelRecord) -> dict[str, Any]:
    """What was trained, as a checkpoint tells it."""
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
