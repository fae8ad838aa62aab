"""Registries of all components that users select by name, for listings, the docs and the JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shotproof.core.errors import InputError, UnknownName, did_you_mean
from shotproof.core.options import Component, Option
from shotproof.core.registry import Registry
from shotproof.training.training_recipes import RECIPES, Recipe


def all_registries() -> dict[str, Registry[Any]]:
    """Return the registry of each kind, by its plural name, in pipeline order."""
    from shotproof.attributes.detector import detectors
    from shotproof.catalog.layout import layouts
    from shotproof.changes.change import changes
    from shotproof.cures.remedy import remedies
    from shotproof.features.encoder import encoders
    from shotproof.features.transforms import transforms
    from shotproof.learners.method import methods
    from shotproof.masks.cutter import cutters
    from shotproof.models.augment import augmentations
    from shotproof.models.backbone import backbones
    from shotproof.models.objective import objectives
    from shotproof.tasks.sampler import samplers

    registries: list[Registry[Any]] = [layouts, cutters, detectors, encoders, transforms, samplers, changes, methods]
    registries += [objectives, backbones, augmentations, remedies]
    return {registry.plural: registry for registry in registries}


def registry_of(kind: str) -> Registry[Any]:
    """Return the registry of a kind, given in the plural or the singular."""
    registries = all_registries()
    plural = next((name for name, registry in registries.items() if kind in (name, registry.kind)), kind)
    if plural not in registries:
        raise UnknownName("kind", kind, [*registries, "recipes"])
    return registries[plural]


def find_components(name: str) -> list[tuple[str, type[Component]]]:
    """Find the component classes with this name, each with its kind.

    Components of different kinds may share a name. The list is empty for a recipe, which has no class.
    """
    registries = all_registries()
    matches = [
        (registry.kind, registry.get(name)) for registry in registries.values() if _is_registered(name, registry)
    ]
    if not matches and name not in RECIPES:
        names = sorted({*RECIPES, *(name for registry in registries.values() for name in registry)})
        raise InputError(
            f"no component or recipe is named '{name}'{did_you_mean(name, names)}; shotproof show lists all names"
        )
    return matches


def recipe_rows(recipe: Recipe) -> list[tuple[str, str]]:
    """List what a recipe sets: for all objectives, for each step or objective, and for one-shot tasks."""

    def format_settings(settings: Mapping[str, Any]) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in settings.items()) or "its own settings"

    rows = [("all", format_settings(recipe.of_all))] if recipe.of_all else []
    rows += [
        (f"step {number}: {name}", format_settings(objective_settings))
        for number, (name, objective_settings) in enumerate(recipe.steps, 1)
    ]
    for name, objective_settings in recipe.by_objective.items():
        rows.append((name, format_settings(objective_settings)))
        if name in recipe.with_one_shot:
            rows.append((f"{name}, one shot", format_settings(recipe.with_one_shot[name])))
    return [*rows, ("any other", "its own settings")] if recipe.any_objective else rows


def default_of(option: Option) -> str:
    """Format the default of an option for a table."""
    return "required" if option.required else repr(option.default)


def option_rows(component: type[Component]) -> list[tuple[str, str, str, str]]:
    """Return one row per option: name, allowed values, default, help."""
    return [(option.name, option.values, default_of(option), option.help) for option in component.options()]


def usage(name: str, component: type[Component]) -> str:
    """Return an example spelling, with the first option if there is one."""
    if component.example:
        return component.example
    argument = "".join(f":{option.name.upper()}" for option in component.options() if option.argument)
    optional = [option for option in component.options() if not option.argument and not option.required]
    return f"{name}{argument}({optional[0].name}={optional[0].default!r})" if optional else f"{name}{argument}"


def _is_registered(name: str, registry: Registry[Any]) -> bool:
    return name in registry or name.replace("_", "-") in registry
