"""Everything that a user picks by name, of every kind: for listings, the docs and the experiment file's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shotproof.core.errors import InputError, UnknownName, did_you_mean
from shotproof.core.options import Component, Option
from shotproof.core.registry import Registry
from shotproof.training.training_recipes import RECIPES, Recipe


def all_registries() -> dict[str, Registry[Any]]:
    """The registry of each kind, by its plural, in the order of the flow."""
    from shotproof.attributes.detector import detectors
    from shotproof.catalog.layout import layouts
    from shotproof.features.encoder import encoders
    from shotproof.features.transforms import transforms
    from shotproof.learners.method import methods
    from shotproof.models.augment import augmentations
    from shotproof.models.backbone import backbones
    from shotproof.models.objective import objectives
    from shotproof.tasks.sampler import samplers

    found: list[Registry[Any]] = [layouts, detectors, encoders, transforms, samplers, methods]
    found += [objectives, backbones, augmentations]
    return {f"{registry.kind}s": registry for registry in found}


def registry_of(kind: str) -> Registry[Any]:
    """The registry of a kind, given in the plural or in the singular."""
    known = all_registries()
    plural = kind if kind in known else f"{kind}s"
    if plural not in known:
        raise UnknownName("kind", kind, [*known, "recipes"])
    return known[plural]


def find_components(name: str) -> list[tuple[str, type[Component]]]:
    """The classes that have this name, with their kinds: a layout and a detector may share one, a recipe has none."""
    known = all_registries()
    found = [(registry.kind, registry.get(name)) for registry in known.values() if _kebab(name, registry)]
    if not found and name not in RECIPES:
        names = sorted({*RECIPES, *(name for registry in known.values() for name in registry)})
        raise InputError(f"nothing is called '{name}'{did_you_mean(name, names)}; shotproof show lists all names")
    return found


def recipe_rows(recipe: Recipe) -> list[tuple[str, str]]:
    """What a recipe sets: for all objectives, for each of its steps or objectives, and where tasks have one shot."""

    def told(settings: Mapping[str, Any]) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in settings.items()) or "its own settings"

    rows = [("all", told(recipe.of_all))] if recipe.of_all else []
    rows += [(f"step {number}: {name}", told(own)) for number, (name, own) in enumerate(recipe.steps, 1)]
    for name, own in recipe.by_objective.items():
        rows.append((name, told(own)))
        if name in recipe.with_one_shot:
            rows.append((f"{name}, one shot", told(recipe.with_one_shot[name])))
    return [*rows, ("any other", "its own settings")] if recipe.any_objective else rows


def default_of(option: Option) -> str:
    """An option's default in words."""
    return "required" if option.required else repr(option.default)


def option_rows(component: type[Component]) -> list[tuple[str, str, str, str]]:
    """One row per option: its name, what it may be, its default, what it does."""
    return [(each.name, each.values, default_of(each), each.help) for each in component.options()]


def usage(name: str, component: type[Component]) -> str:
    """How a user spells it, with its first option where it has any."""
    if component.example:
        return component.example
    argument = "".join(f":{each.name.upper()}" for each in component.options() if each.argument)
    others = [each for each in component.options() if not each.argument and not each.required]
    return f"{name}{argument}({others[0].name}={others[0].default!r})" if others else f"{name}{argument}"


def _kebab(name: str, registry: Registry[Any]) -> bool:
    return name in registry or name.replace("_", "-") in registry
