from __future__ import annotations

import pytest

from shotproof.core.errors import InputError
from shotproof.models.objective import objectives
from shotproof.training.settings import TrainingSettings
from shotproof.training.train import make_stages
from shotproof.training.training_recipes import RECIPES, Recipe, find_recipe, recipe_settings

PUBLISHED = ["anil", "leo", "boil", "protonet", "dn4", "r2d2", "can", "renet", "baseline++", "rfs"]


def told(recipe: Recipe) -> list[tuple[str, dict[str, object]]]:
    """Every objective that a recipe names, with its settings for one and for five shots."""
    named = [(name, recipe.settings(name, shot)) for name in recipe.by_objective for shot in (1, 5)]
    return [*named, *((name, dict(settings)) for name, settings in recipe.steps)]


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_sets_what_there_is(name: str) -> None:
    recipe = find_recipe(name)
    assert recipe.about
    for objective, settings in told(recipe):
        assert objectives.make(objective).name in objectives
        assert TrainingSettings().with_values(settings, objective).lr > 0
    assert set(recipe.with_one_shot) <= set(recipe.by_objective)


@pytest.mark.parametrize("name", ["fewstab-cub", "fewstab-mini", "fewstab-tiered"])
def test_the_recipes_of_fewstab_are_for_its_ten_methods(name: str) -> None:
    assert sorted(RECIPES[name].by_objective) == sorted(PUBLISHED)


@pytest.mark.parametrize(
    ("recipe", "objective", "shot", "expected"),
    [
        ("fewstab-cub", "can", 5, {"lr": 0.01, "optimizer": "adam", "tasks": 100, "tasks_per_update": 4}),
        ("fewstab-cub", "leo", 1, {"lr": 5e-4, "tasks_per_update": 4, "schedule": "cosine"}),
        ("fewstab-cub", "leo", 5, {"lr": 1e-3, "tasks_per_update": 1}),
        ("fewstab-cub", "renet", 1, {"lr": 0.1, "tasks": 300, "epochs": 100}),
        ("fewstab-cub", "renet", 5, {"tasks": 600}),
        ("fewstab-mini", "can", 1, {"lr": 0.1, "optimizer": "sgd", "tasks_per_update": 8, "tasks": 2000}),
        ("fewstab-mini", "protonet", 5, {"milestones": (20, 40, 60, 80), "decay": 0.5, "tasks": 2000}),
        ("fewstab-tiered", "dn4", 5, {"epochs": 200, "milestones": (50, 100, 150), "tasks": 5000}),
        ("fewstab-tiered", "renet", 1, {"milestones": (60, 80), "epochs": 100, "decay": 0.05}),
        ("fewstab-tiered", "renet", 5, {"milestones": (40, 50), "epochs": 60, "tasks": 1752}),
        ("fewstab-tiered", "rfs", 5, {"lr": 0.1, "schedule": "cosine", "batch": 128}),
        ("metacoco", "neg-cosine", 5, {"size": 84, "epochs": 200, "batch": 128}),
        ("spuraudio", "protonet", 5, {"seconds": 5.0, "query": 10}),
    ],
)
def test_the_papers_values(recipe: str, objective: str, shot: int, expected: dict[str, object]) -> None:
    assert recipe_settings(recipe, objective, shot).items() >= expected.items()


def test_what_is_given_goes_before_the_recipe_and_that_before_the_objective() -> None:
    (stage,) = make_stages("protonet", "fewstab-cub", {"lr": 0.5, "shot": 1})
    assert (stage.settings.lr, stage.settings.shot, stage.settings.tasks_per_update) == (0.5, 1, 1)
    (own,) = make_stages("protonet", None, {})
    assert own.settings.tasks_per_update == TrainingSettings().tasks_per_update != 1


def test_a_recipe_for_any_objective_leaves_the_others_their_own_settings() -> None:
    (stage,) = make_stages("skd", "metacoco", {})
    assert stage.settings == TrainingSettings().with_values({**objectives.make("skd").settings, "size": 84}, "skd")
    with pytest.raises(InputError, match="recipe 'fewstab-cub' has no settings for objective 'skd'"):
        make_stages("skd", "fewstab-cub", {})
