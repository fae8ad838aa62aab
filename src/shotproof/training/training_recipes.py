"""Recipes: named settings with which papers train each objective, and ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shotproof.core.errors import InputError, UnknownName, did_you_mean

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Recipe:
    """Settings for training, by objective.

    about: description in one line
    of_all: settings of all objectives
    by_objective: settings by objective
    with_one_shot: settings that differ for tasks with one shot, by objective
    any_objective: whether objectives without settings here are allowed, with their own settings
    steps: objectives with their settings that are trained one after the other, each from the weights of the previous
        one; a recipe with steps takes no objective
    backbone: default network
    """

    about: str
    of_all: Settings = field(default_factory=dict)
    by_objective: Mapping[str, Settings] = field(default_factory=dict)
    with_one_shot: Mapping[str, Settings] = field(default_factory=dict)
    any_objective: bool = False
    steps: tuple[tuple[str, Settings], ...] = ()
    backbone: str | None = None

    def settings(self, objective: str, shot: int) -> dict[str, Any]:
        """Return the settings for an objective, given the number of shots."""
        named = self.by_objective.get(objective, {})
        return {**self.of_all, **named, **(self.with_one_shot.get(objective, {}) if shot == 1 else {})}


def _halved(every: int, epochs: int = 100) -> dict[str, Any]:
    """Return settings of Adam whose learning rate is halved every `every` epochs."""
    milestones = tuple(range(every, epochs, every))
    return {"optimizer": "adam", "lr": 1e-3, "schedule": "step", "milestones": milestones, "decay": 0.5}


_ADAM = {"optimizer": "adam", "schedule": "constant"}
_SGD_COSINE = {"optimizer": "sgd", "lr": 0.1, "schedule": "cosine", "nesterov": True}
_RFS = {"optimizer": "sgd", "lr": 0.05, "schedule": "step", "milestones": (60, 80), "decay": 0.1, "batch": 64}
_LEO = {"optimizer": "adam", "lr": 1e-3, "schedule": "cosine", "tasks": 2000, "tasks_per_update": 1}
_PARTS = {"augment": "resized-crop(area=0.35)"}

# FewSTAB's table for miniImageNet; the other two recipes list what differs.
_FEWSTAB: dict[str, Settings] = {
    "anil": {**_ADAM, "lr": 1e-3, "tasks": 2000, "tasks_per_update": 4},
    "leo": _LEO,
    "boil": {**_ADAM, "lr": 6e-4, "tasks": 2000, "tasks_per_update": 4},
    "protonet": {**_halved(20), "tasks": 2000, "tasks_per_update": 1},
    "dn4": {**_halved(50), "tasks": 2000, "tasks_per_update": 1},
    "r2d2": {**_SGD_COSINE, "tasks": 2000, "tasks_per_update": 4},
    "can": {**_SGD_COSINE, "tasks": 2000, "tasks_per_update": 4},
    "renet": {**_SGD_COSINE, "tasks": 300, "tasks_per_update": 1},
    "baseline++": {"optimizer": "sgd", "lr": 0.01, "schedule": "cosine", "batch": 128},
    "rfs": _RFS,
}
_MORE_TASKS = ("anil", "leo", "boil", "protonet", "r2d2", "can")
_RENET_TIERED = {"optimizer": "sgd", "lr": 0.1, "nesterov": True, "schedule": "step", "decay": 0.05, "tasks": 1752}

RECIPES: dict[str, Recipe] = {
    "fewstab-cub": Recipe(
        about="FewSTAB, table S4: ResNet-12 at 84 pixels on CUB-200",
        of_all={"epochs": 100},
        by_objective={
            **_FEWSTAB,
            "can": {**_ADAM, "lr": 0.01, "tasks": 100, "tasks_per_update": 4},
            "renet": {**_FEWSTAB["renet"], "tasks": 600},
        },
        with_one_shot={"leo": {"lr": 5e-4, "tasks_per_update": 4}, "renet": {"tasks": 300}},
    ),
    "fewstab-mini": Recipe(
        about="FewSTAB, table S2: ResNet-12 at 84 pixels on miniImageNet",
        of_all={"epochs": 100},
        by_objective=_FEWSTAB,
        with_one_shot={"leo": {"lr": 5e-4}, "can": {"tasks_per_update": 8}},
    ),
    "fewstab-tiered": Recipe(
        about="FewSTAB, table S3: ResNet-12 at 84 pixels on tieredImageNet",
        of_all={"epochs": 100},
        by_objective={
            **_FEWSTAB,
            **{name: {**_FEWSTAB[name], "tasks": 5000} for name in _MORE_TASKS},
            "dn4": {**_halved(50, epochs=200), "epochs": 200, "tasks": 5000, "tasks_per_update": 1},
            "renet": {**_RENET_TIERED, "epochs": 60, "milestones": (40, 50), "tasks_per_update": 1},
            "rfs": {"optimizer": "sgd", "lr": 0.1, "schedule": "cosine", "batch": 128},
        },
        with_one_shot={"leo": {"lr": 5e-4}, "renet": {"epochs": 100, "milestones": (60, 80)}},
    ),
    # MetaCoCo prints no schedules; SpurAudio adopts LibFewShot's training parameters. Both are LibFewShot's, which are
    # also the objectives' defaults.
    "metacoco": Recipe(
        about="MetaCoCo: LibFewShot's settings at 84 pixels, for any objective",
        of_all={"size": 84},
        by_objective={"neg-cosine": {"epochs": 200, "batch": 128, "warm_up": 0.0}},
        any_objective=True,
    ),
    "spuraudio": Recipe(
        about="SpurAudio: LibFewShot's settings on spectrograms of 5 s, 10 queries per class, for any objective",
        of_all={"seconds": 5.0, "query": 10},
        by_objective={"neg-cosine": {"epochs": 200, "batch": 128, "warm_up": 0.0}},
        any_objective=True,
    ),
    "shotproof": Recipe(
        about="ours, for images: RFS with DropBlock and random resized crops, then 3,000 tasks of Meta-Baseline",
        steps=(
            ("rfs", {**_RFS, **_PARTS, "epochs": 100}),
            (
                "meta-baseline",
                {
                    **_PARTS,
                    "shot": 5,
                    "optimizer": "sgd",
                    "lr": 1e-3,
                    "schedule": "cosine",
                    "epochs": 20,
                    "tasks": 150,
                    "tasks_per_update": 1,
                },
            ),
        ),
        backbone="resnet12(warm_up=12000)",
    ),
}


def find_recipe(name: str) -> Recipe:
    """Return a recipe by its name. Raise UnknownName if there is none.

    Example:
        >>> find_recipe("fewstab-cub").settings("protonet", shot=5)["lr"]
        0.001
    """
    if name not in RECIPES:
        raise UnknownName("recipe", name, RECIPES)
    return RECIPES[name]


def recipe_settings(recipe: str, objective: str, shot: int) -> dict[str, Any]:
    """Return the settings of a recipe for an objective that the user chose.

    Raises:
        UnknownName: the recipe is unknown.
        InputError: the recipe has no settings for this objective, or has its own objectives.
    """
    entry = find_recipe(recipe)
    if entry.steps:
        steps = ", then ".join(name for name, _ in entry.steps)
        raise InputError(f"recipe '{recipe}' has its own objectives ({steps}): leave out objective '{objective}'")
    if objective not in entry.by_objective and not entry.any_objective:
        near = did_you_mean(objective, entry.by_objective)
        raise InputError(f"recipe '{recipe}' has no settings for objective '{objective}'{near}")
    return entry.settings(objective, shot)
