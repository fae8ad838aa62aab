"""Training of networks: `train`, and `train_trials` for several."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, Interrupted
from shotproof.core.limits import SEED
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.runtime.shared_state import compute_in_threads
from shotproof.core.tables import check_output
from shotproof.features.features import Features
from shotproof.models.backbone import Backbone, backbones
from shotproof.models.model import Model
from shotproof.models.objective import Objective, objectives
from shotproof.training.checkpoint import EarlierTraining, interruption_message
from shotproof.training.settings import TrainingSettings
from shotproof.training.training_plan import TrainingPlan
from shotproof.training.training_recipes import RECIPES, find_recipe, recipe_settings

BACKBONE = "resnet12"


def train(
    catalog: Catalog,
    objective: str | Mapping[str, Any] | Objective[Any] | None = None,
    *,
    backbone: str | Mapping[str, Any] | Backbone | None = None,
    split: str | None = "train",
    val_split: str | None = "val",
    recipe: str | None = None,
    from_model: Model | str | Path | None = None,
    seed: int = 0,
    output: str | Path | None = None,
    replace: bool = False,
    attributes: Attributes | None = None,
    features: Features | None = None,
    runtime: Runtime | None = None,
    **settings: Any,
) -> Model:
    """Train a network. If training was interrupted, the same call resumes it.

    The same catalog, settings and seed give the same weights on the same device, even if training was interrupted.

    Args:
        catalog: the items
        objective: what training minimizes: a spelling such as `protonet(temperature=64)`, a table, or an objective;
            None if the recipe has its own objectives
        backbone: the network, e.g. `resnet12`; None is that of `from_model`, or the recipe's, or resnet12
        split: the split to train on
        val_split: the split, with other classes, for the validation tasks of each epoch; None skips validation and
            keeps the last weights
        recipe: name of a recipe: settings, e.g. `fewstab-cub`, or a whole training in several stages, `shotproof`
        from_model: a model, or its file: its backbone's weights are the start (and its head's, if the objective is the
            same), or it is the teacher
        seed: seed of the initial weights, the tasks and the augmentation
        output: path of the model; beside it are the curves (`.jsonl`), the models of earlier stages (`.stage1`) and,
            until training ends, a checkpoint (`.checkpoint`)
        replace: whether to start over if another training has left its model or checkpoint at the output; otherwise
            that is an error
        attributes, features: data for the sampler of training tasks
        runtime: device, workers, cache and progress
        settings: values of `TrainingSettings`, e.g. way, shot, query, epochs, tasks, tasks_per_update, lr, for every
            stage; by default those of the recipe, or else of the objective

    Returns:
        The model, with the weights of the best validation (or the last, with keep="last").

    Raises:
        UnknownName: the objective, backbone, split or recipe is unknown.
        InputError: a setting cannot be used, or training and validation share classes.
        InsufficientData: a class has too few items, or there are too few classes.
        Mismatch: another training has left its model or its checkpoint at the output.
        TrainingFailed: the loss is not finite, or memory ran out.
        Interrupted: Ctrl-C stopped training; the message says what is kept.

    Example:
        >>> import tempfile
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=4, items=6, size=16, train_classes=4).write(tempfile.mkdtemp())
        >>> small = {"way": 2, "shot": 1, "query": 2, "epochs": 1, "tasks": 2, "size": 16}
        >>> model = sp.train(catalog, "protonet", backbone="conv64f", val_split=None, **small)
        >>> model.record.classes
        ('flower-3', 'gear-8', 'polygon-3', 'star-5')
    """
    SEED.check("seed", seed)
    if output is not None:
        check_output(Path(output))
    stages = make_stages(objective, recipe, settings)
    start = Model.read(from_model) if isinstance(from_model, str | Path) else from_model
    backbone_name = backbone or (find_recipe(recipe).backbone if recipe else None) or BACKBONE
    network = start.backbone if backbone is None and start else backbones.make(backbone_name)

    # All stages are checked before the first is trained.
    plans = [
        TrainingPlan(
            catalog, stage.objective, network, stage.settings, split, val_split, start, seed, attributes, features
        )
        for stage in stages
    ]
    files = [None] * len(stages) if output is None else stage_files(Path(output), len(stages))
    for plan, file in zip(plans, files, strict=True):
        if file is not None and not replace:
            recorded = plan.recorded_plan()
            if plan is not plans[0]:
                del recorded["from_model"]  # the model of the previous stage, which is not known yet
            EarlierTraining.find(file, recorded, replace)
    current = 0
    try:
        with resolve(runtime) as active_runtime:
            model = plans[0].run(active_runtime, files[0], replace)
            for current, plan in enumerate(plans[1:], 1):
                model = dataclasses.replace(plan, start=model).run(active_runtime, files[current], replace)
            return model
    except KeyboardInterrupt:
        raise Interrupted(interruption_message(files[: current + 1])) from None


@dataclass(frozen=True)
class Stage:
    """Objective with its settings; training starts from the model of the previous stage."""

    objective: Objective[Any]
    settings: TrainingSettings


def make_stages(
    objective: str | Mapping[str, Any] | Objective[Any] | None, recipe: str | None, settings: Mapping[str, Any]
) -> list[Stage]:
    """Build the stages of a training. Values of `settings` override the recipe's, and these override the objective's.

    Raises:
        UnknownName: the objective or recipe is unknown.
        InputError: a setting cannot be used, the recipe has no settings for the objective, or there is no objective.
    """
    overrides = {name: value for name, value in settings.items() if value is not None}
    if objective is not None:
        chosen = objectives.make(objective)
        shot = {"shot": TrainingSettings().shot, **chosen.settings, **overrides}["shot"]
        steps = [(chosen, {} if recipe is None else recipe_settings(recipe, chosen.name, shot))]
    elif recipe is not None and find_recipe(recipe).steps:
        steps = [(objectives.make(name), dict(values)) for name, values in find_recipe(recipe).steps]
    else:
        names = ", ".join(f"'{name}'" for name, candidate in RECIPES.items() if candidate.steps)
        raise InputError(f"no objective given: name one, or a recipe that has its own: {names}")
    return [
        Stage(stage, _merge_settings(stage, recipe, values, overrides))
        for step, values in steps
        for stage in step.stages()
    ]


def _merge_settings(
    objective: Objective[Any], recipe: str | None, by_recipe: Mapping[str, Any], overrides: Mapping[str, Any]
) -> TrainingSettings:
    settings = TrainingSettings().with_values(objective.settings, f"objective '{objective.name}'")
    return settings.with_values(by_recipe, f"recipe '{recipe}'").with_values(overrides, "training")


def stage_files(output: Path, stages: int) -> list[Path]:
    """Return the path of each stage's model: the last is the output, the others are beside it.

    Example:
        >>> [path.name for path in stage_files(Path("some.model"), 2)]
        ['some.stage1.model', 'some.model']
    """
    return [*(output.with_name(f"{output.stem}.stage{number}{output.suffix}") for number in range(1, stages)), output]


@dataclass(frozen=True)
class Trial:
    """One of several trainings.

    Attributes:
        objective: The objective, as in `train`.
        seed: Seed of the initial weights, the tasks and the augmentation.
        output: Path of the model.
    """

    objective: str | Objective[Any] | None
    seed: int
    output: Path


def train_trials(
    catalog: Catalog, trials: Sequence[Trial], *, runtime: Runtime | None = None, **options: Any
) -> list[Model]:
    """Train several networks on the same items. If training was interrupted, the same call resumes it.

    Args:
        catalog: the items
        trials: objective, seed and output of each training; models that exist already are not trained again
        runtime: runtime settings; with `engine="ray"`, each trial uses one device of the cluster
        options: arguments of `train` that all trials share: backbone, split, recipe, attributes, settings and so on

    Returns:
        The models, in the order of the trials; each is the same as from `train`.

    Raises:
        InputError: two trials have the same output, or `train` raises it.

    Example:
        >>> import tempfile
        >>> import shotproof as sp
        >>> folder = Path(tempfile.mkdtemp())
        >>> catalog = sp.worlds.ShapesWorld(classes=4, items=6, size=16, train_classes=4).write(folder)
        >>> small = {"way": 2, "shot": 1, "query": 2, "epochs": 1, "tasks": 2, "size": 16}
        >>> trials = [Trial("protonet", seed, folder / f"{seed}.model") for seed in (0, 1)]
        >>> models = train_trials(catalog, trials, backbone="conv64f", val_split=None, **small)
        >>> [model.record.seed for model in models]
        [0, 1]
    """
    outputs = [trial.output.absolute() for trial in trials]
    for output in outputs:
        if outputs.count(output) > 1:
            raise InputError(f"two trainings would write {output}: give each objective and seed its own output")
    work = _Training(catalog, options, torch.get_num_threads())
    return list(resolve(runtime).map(work, trials, title=None if len(trials) == 1 else "training", needs="device"))


@dataclass(frozen=True)
class _Training:
    """Training function for all trials; the number of threads is fixed, as the last digits of weights depend on it."""

    catalog: Catalog
    options: Mapping[str, Any]
    threads: int

    def __call__(self, trial: Trial) -> Model:
        compute_in_threads(self.threads)
        return train(self.catalog, trial.objective, seed=trial.seed, output=trial.output, **self.options)
