"""What a training takes from the model that it starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shotproof.core.errors import InputError
from shotproof.models.network import FewShotNetwork

if TYPE_CHECKING:
    from shotproof.models.model import Model

TEACHER = "head.teacher."  # a network that helps in training, and stays as it was: no file has it
MOMENTUM = "head.momentum."  # one that follows in training: checkpoints have it, models do not
IN_TRAINING_ONLY = (TEACHER, MOMENTUM)


def take_weights(net: FewShotNetwork, start: Model) -> None:
    """Start from another model: its backbone's weights, and its head's where all of them fit.

    Raises:
        InputError: the backbone is another one.
    """
    own = {name: each for name, each in net.state_dict().items() if not name.startswith(IN_TRAINING_ONLY)}
    given = start.weights
    for name in {name for name in (*own, *given) if name.startswith("backbone.")}:
        if name not in own or name not in given or own[name].shape != given[name].shape:
            raise InputError(
                f"model '{start.name}' cannot be the start: its backbone is {start.record.backbone}, another network"
            )
    body = {name: each for name, each in given.items() if name.startswith("backbone.")}
    head = {name: each for name, each in given.items() if name.startswith("head.")}
    fits = head.keys() == {name for name in own if name.startswith("head.")} and all(
        each.shape == own[name].shape for name, each in head.items()
    )
    net.load_state_dict({**body, **(head if fits else {})}, strict=False)
