"""The models of an experiment, which methods that adapt a network adapt."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from shotproof.core.errors import InputError
from shotproof.core.trust import named_by_experiment
from shotproof.pipeline.experiment import Experiment

if TYPE_CHECKING:
    from shotproof.models.model import Model  # imported where one is read: it needs PyTorch


@named_by_experiment()
def read_models(experiment: Experiment) -> dict[str, Model]:
    """The models by name; those of one name are told apart by the names of their files.

    Raises:
        InputError: one is no file of a model and no pretrained backbone, or two are called the same.
    """
    if not experiment.models:
        return {}
    from shotproof.models.model import Model

    read = {given: Model.given(given) for given in experiment.models}
    shared = Counter(model.name for model in read.values())
    found: dict[str, Model] = {}
    for given, model in read.items():
        name = model.name if shared[model.name] == 1 else f"{model.name} [{Path(given).stem}]"
        if name in found:
            raise InputError(f"two models are called '{name}': rename one of the files, results are told apart by it")
        found[name] = replace(model, record=replace(model.record, name=name))
    return found
