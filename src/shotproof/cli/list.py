"""`shotproof list`: what can be picked by name, of every kind."""

from __future__ import annotations

from typing import Annotated

import typer

from shotproof.cli.console import say


def list_components(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="layouts, detectors, encoders, transforms, samplers, methods, objectives, backbones, augmentations or "
            "recipes; all of them unless given."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print names and options as JSON.")] = False,
) -> None:
    """List what can be picked by name, with one line each.

    Example: shotproof list samplers
    """
    from shotproof.cli.console import print_json, print_table
    from shotproof.pipeline.components import all_registries, registry_of
    from shotproof.training.training_recipes import RECIPES

    recipes = RECIPES if kind in (None, "recipe", "recipes") else {}
    registry = None if kind is None or recipes else registry_of(kind)
    chosen = {f"{registry.kind}s": registry} if registry else all_registries() if kind is None else {}
    if as_json:
        named = [{"name": name, "about": recipe.about} for name, recipe in recipes.items()]
        print_json(
            ({"recipes": named} if named else {})
            | {
                plural: [
                    {
                        "name": name,
                        "about": of.get(name).about,
                        "options": {each.name: each.json_schema() for each in of.get(name).options()},
                    }
                    for name in of
                ]
                for plural, of in chosen.items()
            }
        )
        return
    for plural, of in chosen.items():
        if len(chosen) > 1:
            say(f"{plural}:")
        columns, rows = ["name", "about"], [[name, of.get(name).about] for name in of]
        if of.kind == "method":
            columns = ["name", "family", "needs", "balanced", "about"]
            rows = [_method_row(name, of.get(name)) for name in of]
        print_table("", columns, rows, left=len(columns))
        say()
    if recipes:
        if chosen:
            say("recipes:")
        print_table("", ["name", "about"], [[name, recipe.about] for name, recipe in recipes.items()], left=2)
        say()
    say("shotproof show NAME tells the options of one.")


def _method_row(name: str, method: type) -> list[str]:
    told = (getattr(method, key, "") for key in ("family", "needs", "balanced"))
    family, needs, balanced = ("by its options" if isinstance(one, property) else one for one in told)
    return [name, str(family), str(needs), "yes" if balanced is True else "", str(getattr(method, "about", ""))]
