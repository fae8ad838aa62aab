"""`train`: from a catalog and an objective to a model."""

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
from shotproof.core.runtime.carried import compute_in_threads
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.tables import check_output
from shotproof.features.features import Features
from shotproof.models.backbone import Backbone, backbones
from shotproof.models.model import Model
from shotproof.models.objective import Objective, objectives
from shotproof.training.checkpoint import EarlierTraining, what_is_kept
from shotproof.training.settings import TrainingSettings
from shotproof.training.training_plan import TrainingPlan
from shotproof.training.training_recipes import RECIPES, recipe_named, recipe_settings

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
    """Train a network. The same call continues a training that was interrupted.

    The same catalog, settings and seed give the same weights on the same device, also if training was interrupted.

    Args:
        catalog: the items
        objective: what training minimizes: a spelling such as `protonet(temperature=64)`, a table, or an objective;
            None where the recipe has objectives of its own
        backbone: the network, e.g. `resnet12`; None is that of `from_model`, or the recipe's, or resnet12
        split: the items to train on
        val_split: the items of other classes by whose tasks each epoch is validated; None: no validation, and the last
            weights are kept
        recipe: settings by name, e.g. `fewstab-cub`, or a whole training in several stages, `shotproof`
        from_model: a model, or its file, whose backbone's weights training starts from (and the head's, where the
            objective is the same), or which is its teacher
        seed: which weights to start from, which tasks, which random changes
        output: the model to write; beside it lie the curves (`.jsonl`) and, until training ends, a checkpoint
            (`.checkpoint`), and the models of earlier stages (`.stage1`)
        replace: whether to begin anew if another training has left its model or its checkpoint at the output;
            otherwise that is refused
        attributes, features: what the sampler of training tasks takes
        runtime: device, workers, cache and progress
        settings: values of `TrainingSettings`, e.g. way, shot, query, epochs, tasks, tasks_per_update, lr, for every
            stage; what is not given is the recipe's, or else the objective's

    Returns:
        The model, with the weights of the best validation (or the last, with keep="last").

    Raises:
        UnknownName: there is no such objective, backbone, split or recipe.
        InputError: a setting cannot be used, or training and validation share classes.
        InsufficientData: a class has too few items, or there are too few classes.
        Mismatch: another training has left its model or its checkpoint at the output.
        TrainingFailed: the loss is no number, or memory is too small.
        Interrupted: Ctrl-C ended it; the message says what is kept.

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
    stages = stages_of(objective, recipe, settings)
    start = Model.read(from_model) if isinstance(from_model, str | Path) else from_model
    named = backbone or (recipe_named(recipe).backbone if recipe else None) or BACKBONE
    network = start.backbone if backbone is None and start else backbones.make(named)

    # What cannot be trained is told before the first stage is.
    plans = [
        TrainingPlan(
            catalog, stage.objective, network, stage.settings, split, val_split, start, seed, attributes, features
        )
        for stage in stages
    ]
    files = [None] * len(stages) if output is None else stage_files(Path(output), len(stages))
    for plan, file in zip(plans, files, strict=True):
        if file is not None and not replace:
            known = {name: value for name, value in plan.told().items() if plan is plans[0] or name != "from_model"}
            EarlierTraining.same(file, known, replace)
    done = 0
    try:
        with resolve(runtime) as current:
            model = plans[0].run(current, files[0], replace)
            for done, plan in enumerate(plans[1:], 1):
                model = dataclasses.replace(plan, start=model).run(current, files[done], replace)
            return model
    except KeyboardInterrupt:
        raise Interrupted(what_is_kept(files[: done + 1])) from None


@dataclass(frozen=True)
class Stage:
    """An objective with its settings; it starts from the model of the stage before."""

    objective: Objective[Any]
    settings: TrainingSettings


def stages_of(
    objective: str | Mapping[str, Any] | Objective[Any] | None, recipe: str | None, given: Mapping[str, Any]
) -> list[Stage]:
    """The stages of a training; what is given goes before the recipe's settings, these before the objective's own.

    Raises:
        UnknownName: there is no such objective or recipe.
        InputError: a setting cannot be used, or the recipe has nothing for the objective, or there is no objective.
    """
    given = {name: value for name, value in given.items() if value is not None}
    if objective is not None:
        made = objectives.make(objective)
        shot = {"shot": TrainingSettings().shot, **made.settings, **given}["shot"]
        steps = [(made, {} if recipe is None else recipe_settings(recipe, made.name, shot))]
    elif recipe is not None and (found := recipe_named(recipe)).steps:
        steps = [(objectives.make(name), dict(settings)) for name, settings in found.steps]
    else:
        whole = ", ".join(f"'{name}'" for name, one in RECIPES.items() if one.steps)
        raise InputError(f"what is to be minimized? name an objective, or a recipe that has its own: {whole}")
    return [Stage(each, _settings(each, recipe, settings, given)) for made, settings in steps for each in made.stages()]


def _settings(
    objective: Objective[Any], recipe: str | None, by_recipe: Mapping[str, Any], given: Mapping[str, Any]
) -> TrainingSettings:
    own = TrainingSettings().with_values(objective.settings, f"objective '{objective.name}'")
    return own.with_values(by_recipe, f"recipe '{recipe}'").with_values(given, "training")


def stage_files(output: Path, stages: int) -> list[Path]:
    """Where the model of each stage is written: the last to the output, those before beside it.

    Example:
        >>> [path.name for path in stage_files(Path("some.model"), 2)]
        ['some.stage1.model', 'some.model']
    """
    return [*(output.with_name(f"{output.stem}.stage{number}{output.suffix}") for number in range(1, stages)), output]


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
            raise InputError(f"two trainings would write {output}: expected an output for each objective and seed")
    work = _Training(catalog, options, torch.get_num_threads())
    return list(resolve(runtime).map(work, trials, title=None if len(trials) == 1 else "training", needs="device"))


@dataclass(frozen=True)
class _Training:
    """What all trials share, and in how many threads they compute: weights depend on it in their last digits."""

    catalog: Catalog
    options: Mapping[str, Any]
    threads: int

    def __call__(self, trial: Trial) -> Model:
        compute_in_threads(self.threads)
        return train(self.catalog, trial.objective, seed=trial.seed, output=trial.output, **self.options)
