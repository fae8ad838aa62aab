"""Several trainings on the same items, of other objectives or seeds: one at a time here, one per device elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.runtime.packed import compute_in_threads
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.models.model import Model
from shotproof.models.objective import Objective
from shotproof.training.train import train


@dataclass(frozen=True)
class Trial:
    """One training of several.

    Attributes:
        objective: What it minimizes, as `train` takes it.
        seed: Which weights it starts from, which tasks, which random changes.
        output: The model to write.
    """

    objective: str | Objective[Any] | None
    seed: int
    output: Path


def train_trials(
    catalog: Catalog, trials: Sequence[Trial], *, runtime: Runtime | None = None, **options: Any
) -> list[Model]:
    """Train several networks on the same items. The same call continues work that was interrupted.

    Args:
        catalog: the items
        trials: what differs; a model that has been trained already is not trained again
        runtime: how to compute; with `engine="ray"`, each trial takes a device of the cluster
        options: what all share, as `train` takes it: backbone, split, recipe, attributes, settings and so on

    Returns:
        The models, in order of the trials; each is the same as `train` gives.

    Raises:
        InputError: two trials have the same output, or as `train` says.

    Example:
        >>> import tempfile
        >>> import shotproof as sp
        >>> folder = Path(tempfile.mkdtemp())
        >>> catalog = sp.ShapesWorld(classes=4, items=6, size=16, train_classes=4).write(folder)
        >>> small = {"way": 2, "shot": 1, "query": 2, "epochs": 1, "tasks": 2, "size": 16}
        >>> trials = [Trial("protonet", seed, folder / f"{seed}.model") for seed in (0, 1)]
        >>> models = train_trials(catalog, trials, backbone="conv64f", val_split=None, **small)
        >>> [model.record.seed for model in models]
        [0, 1]
    """
    outputs = [trial.output.absolute() for trial in trials]
    for output in outputs:
        if outputs.count(output) > 1:
            raise InputError(f"two trainings would write {output}: expected an output for each objective and seed")
    work = _Training(catalog, options, torch.get_num_threads())
    return list(resolve(runtime).map(work, trials, what=None if len(trials) == 1 else "training", needs="device"))


@dataclass(frozen=True)
class _Training:
    """What all trials share, and in how many threads they compute: weights depend on it in their last digits."""

    catalog: Catalog
    options: Mapping[str, Any]
    threads: int

    def __call__(self, trial: Trial) -> Model:
        compute_in_threads(self.threads)
        return train(self.catalog, trial.objective, seed=trial.seed, output=trial.output, **self.options)
