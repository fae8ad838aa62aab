"""What is trained one after the other: generations of an objective, or the steps of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError
from shotproof.models.objective import Objective, objectives
from shotproof.training.recipes import RECIPES, recipe_named, recipe_settings
from shotproof.training.settings import TrainingSettings


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
